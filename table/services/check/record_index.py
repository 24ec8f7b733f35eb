"""Compares the record index of the metadata table with keys of base files: Hudi's upserts trust it."""

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa

from table.config.metadata_indexes import RECORD_INDEX
from table.errors import CorruptFileError, StorageError
from table.files.base.stored_file import StoredBaseFile
from table.hudi_table import HudiTable
from table.metadata_table.file_lists import Failures
from table.metadata_table.metadata_table import METADATA_FOLDER
from table.metadata_table.read_record_index import RecordIndex, see_record_index
from table.services.check.file_lists import ADVICE
from table.services.check.finding import Finding, Kind, Repair, Severity
from table.storage.interface import Storage
from table.timeline.timeline import Timeline
from table.view.file_group import BaseFile, DataFile


def check_record_index(
    table: HudiTable, timeline: Timeline, files: Iterable[BaseFile], list_all: Callable[[], Iterable[DataFile]]
) -> list[Finding]:
    """Finds keys that the index does not have, or has in a file group that does not hold them.

    If a table has a key twice, the index names one of its places.

    Args:
        table: the table.
        timeline: its timeline, as the files were listed.
        files: base files of the newest snapshot whose keys are looked up.
        list_all: lists all its files.

    Raises:
        StorageError: the store fails.
    """
    if RECORD_INDEX not in table.config.metadata_indexes:
        return []
    try:
        index = see_record_index(table.storage, table.config, table.known_lists).as_of(timeline)
        groups = {(file.partition_path, file.file_id): file for file in list_all() if isinstance(file, BaseFile)}
        wrong = [why for file in files for why in _wrong(table.storage, file, index, groups)]
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


def _wrong(
    storage: Storage, file: BaseFile, index: RecordIndex, groups: Mapping[tuple[str, str], BaseFile]
) -> Iterable[str]:
    keys = _read_keys(storage, file)
    found = index.find(keys)
    elsewhere: dict[tuple[str, str], list[str]] = {}
    for key in keys.to_pylist():
        location = found.get(key)
        if location is None:
            yield f"{key!r}, which it lacks"
        elif (place := (location.partition_path, location.file_id)) != (file.partition_path, file.file_id):
            elsewhere.setdefault(place, []).append(key)
    for place, told in elsewhere.items():
        held = set(_read_keys(storage, groups[place]).to_pylist()) if place in groups else set()
        lost = (key for key in told if key not in held)
        yield from (f"{key!r}, which is in {file.path}, and not in {'/'.join(place)}" for key in lost)


def _read_keys(storage: Storage, file: BaseFile) -> pa.Array:
    """The keys of a file; none where it cannot be read, which the check of contents says."""
    try:
        with StoredBaseFile(storage, file.path, file.size_bytes) as stored:
            return pa.chunked_array(stored.read_keys(range(len(stored.group_rows))), pa.string()).combine_chunks()
    except (CorruptFileError, FileNotFoundError, StorageError):
        return pa.array([], pa.string())
