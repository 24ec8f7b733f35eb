"""With which types base files were written, by the schemas of the commits that wrote them. No base file is opened."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from table.errors import CorruptFileError, StorageError, TimelineMovedError
from table.options.choices import TableType
from table.schema.avro_schema import META_COLUMNS, from_avro, relaxed_type, without_meta_columns
from table.snapshot import SERVICE_OPERATIONS, Snapshot
from table.timeline.instant import Action

MOST_LOADS = 64  # commits; files of others are taken for unknown

Differences = tuple[pa.Field, ...]
Load = Callable[[str], "Written | None"]

# nothing is widened to these; a column of another type may have been narrower before
_NEVER_WIDER = (pa.types.is_boolean, pa.types.is_int32, pa.types.is_binary, pa.types.is_date32, pa.types.is_timestamp)


def find_written_types(
    snapshot: Snapshot | None, columns: pa.Schema, times: Collection[str]
) -> Mapping[str, Differences | None]:
    """For the instants that wrote base files, which columns these files hold with other types than the table has now.

    Reads one commit of the timeline or the archive as a rule: types only widen, so a column that has its present type
    at the oldest write has it ever since.

    Args:
        snapshot: the table; None: nothing is known of its commits.
        columns: the columns that are read, with their present types.
        times: instant times of commits.

    Returns:
        Instant time -> those columns with the types in the files; None where the commit's schema is not found. A column
        that a file does not have is none of them.
    """
    present = pa.schema([field for field in columns if field.name not in META_COLUMNS and _may_be_wider(field.type)])
    if not len(present) or not times:
        return dict.fromkeys(times, ())
    if snapshot is None:
        return dict.fromkeys(times, None)
    loader = _Loader(snapshot)
    found = search_schemas(sorted(times), present, loader.load, loader.load_write_before(min(times)))
    return {time: None if one is None else differences(one.columns, present) for time, one in found.items()}


@dataclass(frozen=True)
class Written:
    """The columns of the base files of a commit.

    Attributes:
        columns: with their types.
        is_service: whether a compaction or a clustering wrote them. It may have been requested long before it ran, so
            its types say nothing about writes that were requested later.
    """

    columns: pa.Schema
    is_service: bool = False


def search_schemas(
    times: Sequence[str], present: pa.Schema, load: Load, before: Written | None = None
) -> dict[str, Written | None]:
    """The columns of each of some commits; loads few of them, and at most `MOST_LOADS` (pure, but for `load`).

    Args:
        times: of the commits, ascending.
        present: the columns in question as they are now, after the last commit.
        load: loads one commit; None where it is not known.
        before: a write that is not later than the first commit; None: none is known.
    """
    now, loads = Written(present), MOST_LOADS
    known: dict[int, Written | None] = {-1: before, len(times): now}

    def search(low: int, high: int) -> None:
        """Fills what lies between two commits that are known; `len(times)` is the present."""
        nonlocal loads
        if high - low <= 1:
            return
        if _settles(known[low], known[high], present):
            known.update(dict.fromkeys(range(low + 1, high), known[low]))
            return
        middle = (low + high) // 2
        known[middle] = load(times[middle]) if loads > 0 else None
        loads -= 1
        search(middle, high)  # the newest first: most files are of new commits
        search(low, middle)

    search(-1, len(times))
    return {time: known[number] for number, time in enumerate(times)}


def _settles(below: Written | None, above: Written | None, present: pa.Schema) -> bool:
    """Whether all commits between two have the columns of the first, with their present types."""
    if below is None or above is None or below.is_service or differences(below.columns, present):
        return False
    return all((name in below.columns.names) == (name in above.columns.names) for name in present.names)


def differences(written: pa.Schema, present: pa.Schema) -> Differences:
    """The columns of a file whose types a reader has to widen (pure).

    Args:
        written: the columns of the file.
        present: the columns that are read.
    """
    names = {*written.names}
    both = [(written.field(field.name), field) for field in present if field.name in names]
    return tuple(pa.field(old.name, relaxed_type(old.type)) for old, new in both if not reads_as(old.type, new.type))


def reads_as(written: pa.DataType, present: pa.DataType) -> bool:
    """Whether no value of a column has to be widened: only fields of structs were added (pure)."""
    if pa.types.is_struct(written) and pa.types.is_struct(present):
        held = {field.name: field.type for field in written}
        return all(reads_as(held[field.name], field.type) for field in present if field.name in held)
    if pa.types.is_list(written) and pa.types.is_list(present):
        return reads_as(written.value_type, present.value_type)
    if pa.types.is_map(written) and pa.types.is_map(present):
        return reads_as(written.key_type, present.key_type) and reads_as(written.item_type, present.item_type)
    return bool(written.equals(present))


def _may_be_wider(present: pa.DataType) -> bool:
    return not any(is_kind(present) for is_kind in _NEVER_WIDER)


class _Loader:
    """Loads the schemas of commits from the timeline, or from the archive."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._active = {instant.time: instant for instant in snapshot.timeline.completed_writes}
        is_logged = snapshot.config.table_type == TableType.MERGE_ON_READ
        self._write = Action.DELTA_COMMIT if is_logged else Action.COMMIT  # services have other actions

    def load(self, time: str) -> Written | None:
        """The columns of a commit; None where neither has it. A damaged archive fails no reader."""
        with suppress(CorruptFileError, StorageError, TimelineMovedError, FileNotFoundError):
            if time in self._active:
                found = self._snapshot.commits.read_outline(self._active[time])
                return _written(found.operation, found.extra)
            commits = self._snapshot.table.archived_timeline.find_commits(time)
            return _written(commits[-1].metadata.operation, commits[-1].metadata.extra) if commits else None
        return None

    def load_write_before(self, time: str) -> Written | None:
        """The columns of the newest write that is known and not later than a commit; None: there is none."""
        with suppress(CorruptFileError, StorageError, TimelineMovedError, FileNotFoundError):
            active = [one for at, one in self._active.items() if at <= time and one.action is self._write]
            if active:
                return self.load(max(one.time for one in active))
            commits = self._snapshot.table.archived_timeline.find_commits(time)
            found = (_written(one.metadata.operation, one.metadata.extra) for one in reversed(commits))
            return next((one for one in found if one is not None and not one.is_service), None)
        return None


def _written(operation: str, extra: Mapping[str, str]) -> Written | None:
    text = extra.get("schema")
    return Written(without_meta_columns(from_avro(text)), operation in SERVICE_OPERATIONS) if text else None
