"""Meta columns with few, repeated values are held in memory as dictionaries (pure)."""

from functools import lru_cache

import numpy as np
import pyarrow as pa

from table.schema.avro_schema import COMMIT_TIME, FILE_NAME, PARTITION_PATH

# few values, repeated: held as dictionaries, so that none of their pages is encoded twice
REPEATED_META_COLUMNS = (COMMIT_TIME, PARTITION_PATH, FILE_NAME)
_REPEATED = pa.dictionary(pa.int32(), pa.string())


@lru_cache(maxsize=64)
def file_schema(schema: pa.Schema) -> pa.Schema:
    """Arrow schema of a base file's rows in memory: repeated strings are dictionaries."""
    return pa.schema(
        [pa.field(f.name, _REPEATED, f.nullable) if f.name in REPEATED_META_COLUMNS else f for f in schema]
    )


def constant_column(value: str, length: int) -> pa.DictionaryArray:
    """A column that holds one string `length` times."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(length, np.int32)), pa.array([value]))


def restamp_carried_rows(rows: pa.Table, file_name: str) -> pa.Table:
    """Rows carried over from the older file, with the new file's name; other columns are unchanged."""
    index = rows.schema.get_field_index(FILE_NAME)
    return rows.set_column(index, rows.schema.field(index), constant_column(file_name, len(rows)))
