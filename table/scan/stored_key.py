"""Finds out how the record keys in a table's files are spelled, for writers that must spell them in the same way."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from table.config.key_generator import KeyEncoding, encoding_of_version
from table.files.base.stored_file import StoredBaseFile
from table.files.names import BASE_FILE_EXTENSION
from table.keys.arrow_keys import compute_record_keys
from table.keys.keygen import KeyRules
from table.scan.read_slice import SliceContext, read_slice
from table.schema.avro_schema import META_FIELDS, RECORD_KEY, relaxed
from table.snapshot import Snapshot


def with_key_encoding(snapshot: Snapshot) -> Snapshot:
    """A snapshot whose properties say how its record keys are spelled; the table itself is not changed.

    A table without rows gets the spelling of its version. Only tables are looked at that do not say it yet.

    Raises:
        CorruptFileError, StorageError: the file that was opened is damaged, or the store fails.
    """
    config = snapshot.config
    is_told = config.key_encoding is not None or not config.populate_meta_fields
    if is_told or not config.has_complex_key_of_one_field:
        return snapshot
    encoding = _find_encoding(snapshot) or encoding_of_version(config.version)
    table = replace(snapshot.table, config=replace(config, key_encoding=encoding))
    return Snapshot(table, snapshot.timeline, commits=snapshot.commits)


def encoding_of(rows: pa.Table, field: str) -> KeyEncoding:
    """How the record key of the first row is spelled (pure).

    Args:
        rows: rows with their record keys and, if the files have it, the column of the key.
        field: the key's only field.
    """
    first = rows.slice(0, 1)
    key = str(first.column(RECORD_KEY)[0])
    if not key.startswith(f"{field}:"):
        return KeyEncoding.VALUE_ONLY
    if field.partition(".")[0] not in rows.column_names:
        return KeyEncoding.FIELD_PREFIXED
    value = compute_record_keys(KeyRules((field,)), first)[0].as_py()  # it may begin so itself
    return KeyEncoding.VALUE_ONLY if key == value else KeyEncoding.FIELD_PREFIXED


def _find_encoding(snapshot: Snapshot) -> KeyEncoding | None:
    """The spelling in the newest file with a row; None for a table without rows."""
    field = snapshot.config.record_key_fields[0]
    columns = [column for column in snapshot.load_schema() or () if column.name == field.partition(".")[0]]
    wanted = relaxed(pa.schema([META_FIELDS[2], *columns]))
    return next((encoding_of(rows, field) for rows in _read_rows(snapshot, wanted) if len(rows)), None)


def _read_rows(snapshot: Snapshot, wanted: pa.Schema) -> Iterator[pa.Table]:
    """Rows of base files, of the newest commits first; of log files only where there is no base file."""
    for instant in reversed(snapshot.timeline.completed_writes):
        for stat in snapshot.commits.read(instant).stats:
            if stat.path.endswith(BASE_FILE_EXTENSION) and snapshot.storage.exists(stat.path):
                with StoredBaseFile(snapshot.storage, stat.path) as file:
                    yield from file.read_batches(wanted)
    context = SliceContext(snapshot.table, snapshot.slicing, snapshot.load_schema())
    for _, groups in snapshot.walk_file_groups():
        for group in groups:
            yield from read_slice(context, group.merged_slice, wanted)
