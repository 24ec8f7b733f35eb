"""Which entries of the lists of files an action changes (HoodieTableMetadataUtil.convertMetadataToRecords)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from table.errors import UnsupportedTableError
from table.files.column_ranges import Ranges
from table.metadata_table.record_codec import encode_record
from table.metadata_table.record_index import KeysByGroup
from table.metadata_table.records import ALL_PARTITIONS, NO_PARTITION_PATH, ListRecord, RecordType, key_of
from table.metadata_table.statistics import RangesByFile
from table.timeline.metadata.clean import CleanMetadata
from table.timeline.metadata.commit import CommitMetadata, WriteStat

_KEEPS_KEYS = ("COMPACT", "LOG_COMPACT")  # operations that move rows within their file groups
_MOVES_KEYS = "CLUSTER"  # all rows of the groups that it replaces are in those that it writes


@dataclass(frozen=True)
class FileChanges:
    """The files that an action added to the table, and those that it deleted.

    Attributes:
        added: partition path -> name -> size in bytes.
        deleted: partition path -> names.
        ranges: of the columns of added files, as far as the process knows them: partition path -> name -> ranges.
        schema: Avro schema of the added files' columns (JSON); "" where none was added.
        load_before: loads the columns of the table before the action (Arrow); None: they were the same.
        keys: the record keys that each file group gets and loses; None: the process does not know them.
    """

    added: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    deleted: Mapping[str, Iterable[str]] = field(default_factory=dict)
    ranges: RangesByFile = field(default_factory=dict)
    schema: str = ""
    load_before: Callable[[], pa.Schema | None] | None = None
    keys: KeysByGroup | None = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(self.added.values()) or any(self.deleted.values())

    def encode(self) -> list[tuple[bytes, bytes]]:
        """The records about it for the lists of files, ascending by key.

        A commit names its partition paths in the record of all partition paths. A clean does not.

        Raises:
            UnsupportedTableError: see `check_paths`.
        """
        check_paths({*self.added, *self.deleted})
        records: dict[str, dict[str, tuple[int, bool]]] = {}
        for path, sizes in self.added.items():
            records.setdefault(key_of(path), {}).update({name: (size, False) for name, size in sizes.items()})
        for path, names in self.deleted.items():
            records.setdefault(key_of(path), {}).update(dict.fromkeys(names, (0, True)))
        values = {
            key: encode_record(RecordType.FILES, ListRecord(dict(sorted(entries.items()))))
            for key, entries in records.items()
            if entries
        }
        if self.added:
            paths = {key_of(path): (0, False) for path in sorted(self.added)}
            values[ALL_PARTITIONS] = encode_record(RecordType.ALL_PARTITIONS, ListRecord(paths))
        return sorted((key.encode(), value) for key, value in values.items())


def check_paths(paths: Iterable[str]) -> None:
    """Refuses a partition path with the name of the record that lists all partition paths (pure).

    Raises:
        UnsupportedTableError: there is such a path; its files cannot be listed.
    """
    if ALL_PARTITIONS in paths or NO_PARTITION_PATH in paths:
        raise UnsupportedTableError(f"a partition path has the name {ALL_PARTITIONS!r} or {NO_PARTITION_PATH!r}")


@dataclass(frozen=True)
class Written:
    """What is known of the files of a commit besides its metadata.

    Attributes:
        stats: write stats as the tasks reported them, with ranges if they were asked for. A process that ends the
            commit of another one has none.
        load_before: loads the columns of the table before the commit without meta columns (Arrow); None: they were
            the same.
    """

    stats: Iterable[WriteStat] = ()
    load_before: Callable[[], pa.Schema | None] | None = None


def changes_of_commit(metadata: CommitMetadata, written: Written) -> FileChanges:
    """The files of a commit. File groups that it replaces stay listed until a clean deletes them.

    Args:
        metadata: the commit, as its end record has it.
        written: what is known of the files besides.
    """
    added: dict[str, dict[str, int]] = {}
    for stat in metadata.stats:
        if stat.path:
            files = added.setdefault(stat.partition_path, {})
            files[_name_of(stat)] = stat.file_size_bytes
            files.update((path.rpartition("/")[2], size) for path, size in stat.change_files.items())
    ranges: dict[str, dict[str, Ranges]] = {}
    for stat in written.stats:
        if stat.path and stat.ranges is not None:
            ranges.setdefault(stat.partition_path, {})[_name_of(stat)] = stat.ranges
    schema = metadata.extra.get("schema", "")
    keys = _keys_of_commit(metadata, written)
    return FileChanges(added, ranges=ranges, schema=schema, load_before=written.load_before, keys=keys)


def _keys_of_commit(metadata: CommitMetadata, written: Written) -> KeysByGroup | None:
    """The keys that each file group gets and loses; None where those of a file, or of a replaced one, are unknown."""
    if metadata.operation in _KEEPS_KEYS:
        return {}
    keys = {(stat.partition_path, stat.file_id): stat.keys for stat in written.stats if stat.keys is not None}
    is_known = all((stat.partition_path, stat.file_id) in keys for stat in metadata.stats)
    is_whole = not metadata.replaced or metadata.operation == _MOVES_KEYS
    return keys if is_known and is_whole else None


def changes_keys(metadata: CommitMetadata) -> bool:
    """Whether a commit may add or delete keys (pure). Compactions and clusterings move rows alone."""
    return metadata.operation not in (*_KEEPS_KEYS, _MOVES_KEYS)


def _name_of(stat: WriteStat) -> str:
    return stat.path.rpartition("/")[2]


def changes_of_clean(outcome: CleanMetadata) -> FileChanges:
    """The files that a clean deleted."""
    return FileChanges(deleted=outcome.deleted)
