"""Which columns get a dictionary: those whose values repeat (pure).

Arrow builds the dictionary of every column it is told to and gives it up only when it has outgrown a page.
Until then each value is hashed, and where few repeat the file holds the values and, besides, the places where
they are. Parquet's Java writer looks at its first page and gives up there (FallbackValuesWriter); here a
sample tells before anything is encoded.
"""

import math

import numpy as np
import pyarrow as pa

_SAMPLE_ROWS = 4096
_WORTH = 0.6  # a dictionary pays when it takes less than this share of the values alone, which compress better
_HALVINGS = 40


def values_repeat(column: pa.ChunkedArray, parts: int = 1) -> bool:
    """Whether a dictionary of a column takes clearly less room than its values.

    Args:
        column: what is to be written.
        parts: row groups that it is written as, a dictionary each.

    Returns:
        True also where there is nothing to be found out: nested columns, dictionaries, few rows.
    """
    told = pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type) or pa.types.is_boolean(column.type)
    if told or len(column) < _SAMPLE_ROWS:
        return True
    # from all over the column: neighbours are more alike than others
    spread = np.linspace(0, len(column) - 1, _SAMPLE_ROWS).astype(np.int64)
    sample = column.take(pa.array(spread)).combine_chunks().drop_null()
    if not len(sample):
        return True
    value_bytes = sample.nbytes / len(sample)
    rows = (len(column) - column.null_count) / parts
    held = min(rows, estimate_distinct(len(sample), len(sample.unique()), rows))
    places = math.ceil(math.log2(held)) / 8 if held > 1 else 0
    return bool(held * value_bytes + rows * places < _WORTH * rows * value_bytes)


def estimate_distinct(sampled: int, found: int, rows: float) -> float:
    """How many distinct values `rows` rows hold, where `sampled` of them hold `found`, if all are as frequent.

    Where some are more frequent than others there are more than this: the dictionary gets the benefit.
    """
    if found >= sampled:
        return rows
    # of D values n draws meet D (1 - exp(-n / D)); solved for n / D
    low, high = 0.0, sampled / found + 1
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if -math.expm1(-middle) / middle > found / sampled else (low, middle)
    total = sampled / high
    return -total * math.expm1(-rows / total)
