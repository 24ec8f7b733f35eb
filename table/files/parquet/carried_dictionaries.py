"""Columns of text that go from one file to the next as the dictionaries that they are stored as (pure).

Neither are their strings made, nor hashed again. What comes of it is what the strings would have become: the same
columns have a dictionary, and no dictionary holds a value that is not in use.
"""

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table.files.base.repeated_columns import REPEATED_META_COLUMNS
from table.files.parquet.dictionary_choice import keeps_dictionary

_CARRIED = pa.dictionary(pa.int32(), pa.string())


def with_dictionaries(schema: pa.Schema, names: Collection[str | None]) -> pa.Schema:
    """The schema (Arrow) with columns of text as dictionaries.

    Args:
        schema: of rows.
        names: the columns that may be.
    """
    return pa.schema([f.with_type(_CARRIED) if f.name in names and pa.types.is_string(f.type) else f for f in schema])


def settled_dictionaries(rows: pa.Table) -> pa.Table:
    """Rows whose columns are dictionaries only where a new file would have them so, without values out of use.

    Args:
        rows: of one row group; the meta columns that repeat stay as they are.
    """
    for number, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type) and field.name not in REPEATED_META_COLUMNS:
            whole = rows.column(number).unify_dictionaries().combine_chunks()  # Arrow writes no second dictionary
            column = pa.chunked_array([_without_unused(whole)], field.type)
            kind = field.type if keeps_dictionary(column) else field.type.value_type
            rows = rows.set_column(number, field.with_type(kind), column.cast(kind))
    return rows


def _without_unused(values: pa.DictionaryArray) -> pa.DictionaryArray:
    places = pc.fill_null(values.indices, -1).to_numpy()
    count = len(values.dictionary)
    used = np.bincount(places + 1, minlength=count + 1)[1:] > 0
    if used.all():
        return values
    moved = np.cumsum(used, dtype=np.int32) - 1
    return pa.DictionaryArray.from_arrays(
        pa.array(moved[places], mask=places < 0), values.dictionary.filter(pa.array(used))
    )
