"""Which entries of the lists of files an action changes (HoodieTableMetadataUtil.convertMetadataToRecords)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from table.errors import UnsupportedTableError
from table.metadata_table.record_codec import encode_record
from table.metadata_table.records import ALL_PARTITIONS, NO_PARTITION_PATH, ListRecord, RecordType, key_of
from table.timeline.metadata.clean import CleanMetadata
from table.timeline.metadata.commit import CommitMetadata


@dataclass(frozen=True)
class FileChanges:
    """The files that an action added to the table, and those that it deleted.

    Attributes:
        added: partition path -> name -> size in bytes.
        deleted: partition path -> names.
    """

    added: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    deleted: Mapping[str, Iterable[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(self.added.values()) or any(self.deleted.values())

    def encode(self) -> list[tuple[bytes, bytes]]:
        """The keys and values that tell the lists of files about it, ascending by key.

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


def changes_of_commit(metadata: CommitMetadata) -> FileChanges:
    """The files of a commit. File groups that it replaces stay listed until a clean deletes them."""
    added: dict[str, dict[str, int]] = {}
    for stat in metadata.stats:
        if stat.path:
            added.setdefault(stat.partition_path, {})[stat.path.rpartition("/")[2]] = stat.file_size_bytes
    return FileChanges(added)


def changes_of_clean(outcome: CleanMetadata) -> FileChanges:
    """The files that a clean deleted."""
    return FileChanges(deleted=outcome.deleted)
