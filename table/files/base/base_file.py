"""Rows of base files on their way through memory, and the smallest questions to a file."""

import numpy as np
import pyarrow as pa

from table.columns.cast import cast_column
from table.errors import CorruptFileError
from table.schema.avro_schema import COMMIT_TIME, FILE_NAME, PARTITION_PATH
from table.storage.interface import Storage

# few values, repeated: they travel as dictionaries, and no page of them is encoded twice
REPEATED_META_COLUMNS = (COMMIT_TIME, PARTITION_PATH, FILE_NAME)
_REPEATED = pa.dictionary(pa.int32(), pa.string())

READ_BATCH_ROWS = 65_536


def file_schema(schema: pa.Schema) -> pa.Schema:
    """Arrow schema of a base file's rows on their way through memory: repeated strings as dictionaries."""
    return pa.schema(
        [pa.field(f.name, _REPEATED, f.nullable) if f.name in REPEATED_META_COLUMNS else f for f in schema]
    )


def constant_column(value: str, length: int) -> pa.DictionaryArray:
    """A column that holds one string `length` times."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(length, np.int32)), pa.array([value]))


def restamp_carried_rows(rows: pa.Table, file_name: str) -> pa.Table:
    """Carried over rows keep all their columns but the file name, which is the new file's."""
    index = rows.schema.get_field_index(FILE_NAME)
    return rows.set_column(index, rows.schema.field(index), constant_column(file_name, len(rows)))


def rows_bytes(rows: pa.Table) -> int:
    """About how many bytes of memory these rows take, not those they were sliced from.

    Arrow's own ``nbytes`` crashes on some sliced nested columns as Spark sends them (pyarrow 26).
    """
    return sum(_chunk_bytes(chunk) for column in rows.columns for chunk in column.chunks)


def _chunk_bytes(chunk: pa.Array) -> int:
    if not pa.types.is_nested(chunk.type):
        return int(chunk.nbytes)
    if pa.types.is_struct(chunk.type):
        fields = (chunk.field(number).slice(chunk.offset, len(chunk)) for number in range(chunk.type.num_fields))
        return sum(_chunk_bytes(field) for field in fields)
    offsets = chunk.buffers()[1]
    whole = max(len(chunk), offsets.size // 4 - 1) if offsets is not None else len(chunk)
    return int(chunk.get_total_buffer_size() * len(chunk) / max(1, whole))


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with exactly these columns: missing ones null, others cast."""
    columns = []
    for field in schema:
        index = rows.schema.get_field_index(field.name)
        if index < 0:
            columns.append(pa.nulls(len(rows), field.type))
        else:
            column = rows.column(index)
            columns.append(cast_column(column, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def read_footer_bytes(storage: Storage, path: str) -> int:
    """Length of a base file's footer: its last eight bytes tell.

    Raises:
        CorruptFileError: when the file does not end as a Parquet file does.
    """
    with storage.open_input(path) as source:
        size = source.size()
        source.seek(max(0, size - 8))
        tail = source.read(8)
    if len(tail) < 8 or tail[4:] != b"PAR1":
        raise CorruptFileError(f"{path} of {storage.base_uri!r} is not a Parquet file")
    return int.from_bytes(tail[:4], "little") + 8
