"""Compares the record index of the metadata table with the keys of rows: Hudi's upserts trust it."""

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa

from table.config.metadata_indexes import RECORD_INDEX
from table.errors import CorruptFileError, StorageError, UnsupportedTableError
from table.hudi_table import HudiTable
from table.metadata_table.file_lists import Failures
from table.metadata_table.metadata_table import METADATA_FOLDER
from table.metadata_table.read_record_index import RecordIndex, see_record_index
from table.scan.read_slice import SliceContext
from table.scan.slice_keys import read_slice_keys
from table.services.check.file_lists import ADVICE
from table.services.check.finding import Finding, Kind, Repair, Severity
from table.timeline.timeline import Timeline
from table.view.file_group import DataFile, FileSlice

Group = tuple[str, str]  # partition path, file id


def check_record_index(
    context: SliceContext, timeline: Timeline, files: Iterable[DataFile], load_slices: Callable[[], Iterable[FileSlice]]
) -> list[Finding]:
    """Finds keys that the index does not have, or has in a file group that does not hold them.

    If a table has a key twice, the index names one of its places.

    Args:
        context: of the newest snapshot.
        timeline: its timeline, as the files were listed.
        files: files of the newest snapshot: the keys of their file groups are looked up.
        load_slices: lists the slices that readers merge.

    Raises:
        StorageError: the store fails.
    """
    table = context.table
    if RECORD_INDEX not in table.config.metadata_indexes:
        return []
    try:
        index = see_record_index(table.storage, table.config, table.known_lists).as_of(timeline)
        slices = {(one.partition_path, one.file_id): one for one in load_slices()}
        chosen = dict.fromkeys((file.partition_path, file.file_id) for file in files)
        wrong = [why for group in chosen if group in slices for why in _wrong(context, group, index, slices)]
    except Failures as error:
        if _has_changed(table, timeline):
            return []
        text = f"the record index of the metadata table cannot be read: {error}"
        return [Finding(Kind.METADATA_TABLE, Severity.WARNING, METADATA_FOLDER, text, Repair.POSSIBLE, advice=ADVICE)]
    if not wrong or _has_changed(table, timeline):
        return []
    text = (
        f"the record index of the metadata table is wrong about {len(wrong)} keys, among them {wrong[0]}: Hudi writes "
        "such a key twice, or into a file group that is gone"
    )
    return [Finding(Kind.METADATA_TABLE, Severity.ERROR, METADATA_FOLDER, text, Repair.POSSIBLE, advice=ADVICE)]


def _has_changed(table: HudiTable, timeline: Timeline) -> bool:
    """Whether something was written meanwhile: the index may be of a newer snapshot than the files."""
    return table.load_timeline().files != timeline.files


def _wrong(context: SliceContext, group: Group, index: RecordIndex, slices: Mapping[Group, FileSlice]) -> Iterable[str]:
    keys = _read_keys(context, slices[group])
    found = index.find(keys)
    elsewhere: dict[Group, list[str]] = {}
    for key in keys.to_pylist():
        location = found.get(key)
        if location is None:
            yield f"{key!r}, which it lacks"
        elif (place := (location.partition_path, location.file_id)) != group:
            elsewhere.setdefault(place, []).append(key)
    for place, told in elsewhere.items():
        held = set(_read_keys(context, slices[place]).to_pylist()) if place in slices else set()
        lost = (key for key in told if key not in held)
        yield from (f"{key!r}, which is in {'/'.join(group)}, and not in {'/'.join(place)}" for key in lost)


def _read_keys(context: SliceContext, found: FileSlice) -> pa.Array:
    """The keys of a slice; none where it cannot be read, which the check of contents says."""
    try:
        return read_slice_keys(context, found)
    except (CorruptFileError, UnsupportedTableError, FileNotFoundError, StorageError):
        return pa.array([], pa.string())
