"""Columns of text that are carried from one file to the next as stored dictionaries (pure).

Their strings are neither made nor hashed again. The new file is the same as with strings: the same columns have a
dictionary, and no dictionary holds an unused value.
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
        schema: schema of the rows.
        names: the columns that may become dictionaries.
    """
    return pa.schema([f.with_type(_CARRIED) if f.name in names and pa.types.is_string(f.type) else f for f in schema])


def settled_dictionaries(rows: pa.Table) -> pa.Table:
    """Rows with a dictionary only in columns that get one in a new file, and without unused values in it.

    Args:
        rows: rows of one row group; the repeated meta columns stay as they are.
    """
    for number, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type) and field.name not in REPEATED_META_COLUMNS:
            whole = rows.column(number).unify_dictionaries().combine_chunks()  # Arrow writes one dictionary only
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
