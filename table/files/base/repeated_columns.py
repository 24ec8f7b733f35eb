"""The meta columns that hold few values, repeated: as dictionaries on their way through memory (pure)."""

from functools import lru_cache

import numpy as np
import pyarrow as pa

from table.schema.avro_schema import COMMIT_TIME, FILE_NAME, PARTITION_PATH

# few values, repeated: they travel as dictionaries, and no page of them is encoded twice
REPEATED_META_COLUMNS = (COMMIT_TIME, PARTITION_PATH, FILE_NAME)
_REPEATED = pa.dictionary(pa.int32(), pa.string())


@lru_cache(maxsize=64)
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
