"""Compares the metadata table's statistics of columns with footers: Hudi skips a file whose statistics rule it out."""

from collections.abc import Iterable, Mapping

import pyarrow as pa

from table.config.metadata_indexes import COLUMN_STATS, PARTITION_STATS
from table.config.table_config import load_table_config
from table.errors import CorruptFileError, StorageError
from table.files.base.stored_file import StoredBaseFile
from table.files.column_ranges import ColumnRange, as_read, covers
from table.hudi_table import HudiTable
from table.metadata_table.file_lists import Failures
from table.metadata_table.metadata_table import METADATA_FOLDER
from table.metadata_table.read_statistics import RangesOfFiles, StatisticsIndex
from table.options.choices import TableType
from table.schema.avro_schema import with_meta_columns
from table.services.check.file_lists import ADVICE
from table.services.check.finding import Finding, Kind, Repair, Severity
from table.storage.interface import Storage
from table.view.file_group import BaseFile


def check_statistics(table: HudiTable, schema: pa.Schema, files: Iterable[BaseFile]) -> list[Finding]:
    """Finds statistics in which a file or one of its values is missing. Those of a partition path must cover all its
    files, in copy-on-write tables.

    Args:
        table: the table.
        schema: its columns without meta columns (Arrow).
        files: base files of the newest snapshot.

    Raises:
        StorageError: the store fails while footers are read.
    """
    if COLUMN_STATS not in table.config.metadata_indexes:
        return []
    asked = list(files)
    kinds = {field.name: field.type for field in with_meta_columns(schema)}
    try:
        index = StatisticsIndex(table.storage, table.config)
        stored = index.ranges(kinds, asked)
        of_paths = _load_partition_ranges(table, kinds, {file.partition_path for file in asked})
    except Failures as error:
        if not _are_kept(table.storage):
            return []
        text = f"the statistics of the metadata table cannot be read: {error}"
        return [Finding(Kind.METADATA_TABLE, Severity.WARNING, METADATA_FOLDER, text, Repair.POSSIBLE, advice=ADVICE)]
    wrong = []
    for file in asked:
        found = _ranges_of(table.storage, file, index.columns)
        real = {name: as_read(one, kinds[name]) for name, one in found.items()}
        wrong += [f"{file.path}: {why}" for why in _wrong_of_file(file, real, stored)]
        wrong += [f"{file.partition_path or '.'}: {why}" for why in _wrong_of_path(file.partition_path, real, of_paths)]
    if not wrong or not _are_kept(table.storage):
        return []
    text = (
        f"{len(wrong)} statistics of the metadata table are wrong, among them {wrong[0]}: Hudi's filters lose its rows"
    )
    return [Finding(Kind.METADATA_TABLE, Severity.ERROR, METADATA_FOLDER, text, Repair.POSSIBLE, advice=ADVICE)]


def _are_kept(storage: Storage) -> bool:
    """Whether no writer has dropped the statistics since the table was opened."""
    now = load_table_config(storage)
    return now is not None and COLUMN_STATS in now.metadata_indexes


def _load_partition_ranges(
    table: HudiTable, kinds: Mapping[str, pa.DataType], paths: Iterable[str]
) -> Mapping[tuple[str, str], ColumnRange]:
    """Those of a copy-on-write table. Hudi 1.0.2 leaves base files below a pending compaction out of its own ranges."""
    if PARTITION_STATS not in table.config.metadata_indexes or table.config.table_type == TableType.MERGE_ON_READ:
        return {}
    return StatisticsIndex(table.storage, table.config, PARTITION_STATS).partition_ranges(kinds, paths)


def _ranges_of(storage: Storage, file: BaseFile, columns: tuple[str, ...]) -> Mapping[str, ColumnRange]:
    """Ranges by the footer of a file; none where it cannot be read, which the check of contents says."""
    try:
        with StoredBaseFile(storage, file.path, file.size_bytes) as stored:
            return stored.ranges(columns) or {}
    except (CorruptFileError, FileNotFoundError, StorageError):
        return {}


def _wrong_of_file(file: BaseFile, real: Mapping[str, ColumnRange], stored: RangesOfFiles) -> Iterable[str]:
    for name, found in real.items():
        known = stored.get((file.path, name))
        if known is not None:
            yield from _not_covered(name, found, known)
        elif found.values:  # Hudi tells nothing of a file without rows
            yield f"none of the column {name!r}"


def _wrong_of_path(
    path: str, real: Mapping[str, ColumnRange], stored: Mapping[tuple[str, str], ColumnRange]
) -> Iterable[str]:
    """A partition path without statistics is not ruled out by Hudi."""
    for name, found in real.items():
        known = stored.get((path, name))
        if known is None:
            continue
        yield from _not_covered(name, found, known)
        if found.nulls and not known.nulls:
            yield f"the column {name!r} has nulls, and the statistics none"
        if found.nulls < found.values and known.nulls == known.values:
            yield f"the column {name!r} has values, and the statistics only nulls"


def _not_covered(name: str, found: ColumnRange, known: ColumnRange) -> Iterable[str]:
    begins, ends = covers(known, found)
    if not begins:
        yield f"the column {name!r} begins with {found.least!r}, and the statistics with {known.least!r}"
    elif not ends:
        yield f"the column {name!r} ends with {found.greatest!r}, and the statistics with {known.greatest!r}"
