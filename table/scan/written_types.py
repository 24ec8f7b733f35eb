"""With which types base files were written, by the schemas of the commits that wrote them. No base file is opened."""

from collections.abc import Callable, Collection, Mapping, Sequence

import pyarrow as pa

from table.errors import CorruptFileError, StorageError, TimelineMovedError
from table.schema.avro_schema import META_COLUMNS, from_avro, relaxed_type, without_meta_columns
from table.snapshot import Snapshot

Differences = tuple[pa.Field, ...]
Load = Callable[[str], pa.Schema | None]

# nothing is widened to these; a column of another type may have been narrower before
_NEVER_WIDER = (pa.types.is_boolean, pa.types.is_int32, pa.types.is_binary, pa.types.is_date32, pa.types.is_timestamp)


def find_written_types(
    snapshot: Snapshot | None, columns: pa.Schema, times: Collection[str]
) -> Mapping[str, Differences | None]:
    """For the instants that wrote base files, which columns these files hold with other types than the table has now.

    Reads one commit of the timeline or the archive as a rule: types only widen, so what the oldest commit and the
    present schema have alike, all commits between have. Where they differ, the change is searched by halves.

    Args:
        snapshot: the table; None: nothing is known of its commits.
        columns: the columns that are read, with their present types.
        times: instant times of commits.

    Returns:
        Instant time -> those columns with the types in the files; None where the commit's schema is not found. A column
        that a file lacks is none of them.
    """
    present = pa.schema([field for field in columns if field.name not in META_COLUMNS and _may_be_wider(field.type)])
    if not len(present):
        return dict.fromkeys(times, ())
    if snapshot is None:
        return dict.fromkeys(times, None)
    found = search_schemas(sorted(times), present, _Loader(snapshot).load)
    return {time: None if schema is None else differences(schema, present) for time, schema in found.items()}


def search_schemas(times: Sequence[str], present: pa.Schema, load: Load) -> dict[str, pa.Schema | None]:
    """The schema of each of some commits; loads few of them (pure, but for `load`).

    Args:
        times: of the commits, ascending.
        present: the columns in question as they are now, behind the last commit.
        load: loads the schema of one commit; None where it is not known.
    """
    known: list[pa.Schema | None] = [load(time) for time in times[:1]] + [None] * (len(times) - 1)

    def search(low: int, high: int) -> None:
        """Fills what lies between two commits that are known; `len(times)` is the present."""
        above = known[high] if high < len(times) else present
        if _are_alike(known[low], above, present):
            known[low + 1 : high] = [known[low]] * (high - low - 1)
        elif high - low > 1:
            middle = (low + high) // 2
            known[middle] = load(times[middle])
            search(low, middle)
            search(middle, high)

    if times:
        search(0, len(times))
    return dict(zip(times, known, strict=True))


def differences(written: pa.Schema, present: pa.Schema) -> Differences:
    """The columns of a file whose types a reader has to widen (pure).

    Args:
        written: the columns of the file.
        present: the columns that are read.
    """
    both = [(written.field(field.name), field) for field in present if field.name in written.names]
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


def _are_alike(below: pa.Schema | None, above: pa.Schema | None, present: pa.Schema) -> bool:
    """Whether two commits have the same columns, so that those between have them, too."""
    if below is None or above is None:
        return below is above
    names = {field.name for field in present}
    same = {name: relaxed_type(below.field(name).type) for name in names & {*below.names}}
    return same == {name: relaxed_type(above.field(name).type) for name in names & {*above.names}}


class _Loader:
    """Loads the schemas of commits from the timeline, or from the archive."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._active = {instant.time: instant for instant in snapshot.timeline.completed_writes}

    def load(self, time: str) -> pa.Schema | None:
        """The schema of a commit; None where neither has it. A damaged archive fails no reader."""
        try:
            text = self._schema_text(time)
            return without_meta_columns(from_avro(text)) if text else None
        except (CorruptFileError, StorageError, TimelineMovedError, FileNotFoundError):
            return None

    def _schema_text(self, time: str) -> str | None:
        if time in self._active:
            return self._snapshot.commits.read_outline(self._active[time]).extra.get("schema")
        archived = self._snapshot.table.archived_timeline.find_commit(time)
        return archived.metadata.extra.get("schema") if archived is not None else None
