"""Chooses the columns that get a dictionary: columns whose values repeat (pure).

Arrow builds a dictionary for every column that it is asked to, and gives it up only when the dictionary has outgrown
a page. Before that, Arrow hashes each value. If few values repeat, the file holds the values and their indices as well.
Parquet's Java writer decides after its first page (FallbackValuesWriter); this module takes a sample before anything
is encoded.
"""

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from table.columns.cast import entries_of

DICTIONARY_BYTES = 4 * 1024 * 1024  # of a column in a row group, at most: Arrow gives up a larger one half way
_SAMPLE = 1024
_TOGETHER = 4
_GOLDEN = (5**0.5 - 1) / 2
_ENOUGH = 10_000  # fewer values are not sampled
_WORTH = 0.6  # a dictionary pays if it takes less than this share of the plain values, which compress better
_HALVINGS = 40
TOLD_ROWS = 16_384  # from this many rows in a row group, this project and not Arrow makes a dictionary's statistics
_CHEAP_VALUES = 1000  # a dictionary of at most so many values is kept however few rows there are
_CHEAP_SHARE = 2  # a larger dictionary is kept only with so many rows for each value


def columns_with_dictionary(rows: pa.Table, parts: int = 1) -> list[str]:
    """The columns whose dictionary takes clearly less room than their values.

    Args:
        rows: the rows to be written.
        parts: number of row groups they are written as, each with its own dictionary.

    Returns:
        Paths as Parquet has them, down to the parts of nested columns. Columns with few values, and
        columns that are dictionaries already, are among them.
    """
    found = []
    spread = _spread(len(rows))
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if pa.types.is_dictionary(column.type) or (len(rows) < _ENOUGH and not pa.types.is_nested(column.type)):
            found.append(name)
            continue
        chunk = _sampled(column, spread)
        scale = len(rows) / max(1, len(spread)) / parts
        found += [path for path, values in leaves(name, chunk) if _repeat(values.drop_null(), scale)]
    return found


def keeps_dictionary(column: pa.ChunkedArray) -> bool:
    """Whether a dictionary column is best encoded as one: as plain strings it would get a dictionary, too.

    Arrow hashes each value of a dictionary, but looks up strings row by row: if few rows have the same value, strings
    cost less. If Arrow makes the statistics, it counts which values occur in each thousand rows. And Arrow would not
    give up half way a dictionary that comes ready-made and is too large.
    """
    held = [chunk.dictionary for chunk in column.chunks]
    values = sum(map(len, held))
    most = max(_CHEAP_VALUES, len(column) // _CHEAP_SHARE) if len(column) >= TOLD_ROWS else _CHEAP_VALUES
    if values > most or sum(dictionary.nbytes for dictionary in held) >= DICTIONARY_BYTES:
        return False
    if len(column) < _ENOUGH:
        return True
    spread = _spread(len(column))
    sample = _sampled(column, spread).cast(column.type.value_type)
    return _repeat(sample.drop_null(), len(column) / len(spread))


def _sampled(column: pa.ChunkedArray, spread: pa.Array) -> pa.Array:
    sample = column.take(spread).combine_chunks()
    return pa.concat_arrays(sample.chunks) if isinstance(sample, pa.ChunkedArray) else sample


def _spread(count: int) -> pa.Array:
    """Positions of short runs of rows across the column, at uneven distances because the data may be periodic."""
    if count <= _SAMPLE:
        return pa.array(np.arange(count))
    places = np.arange(_SAMPLE // _TOGETHER)
    apart = count / len(places)
    starts = (places * apart + places * _GOLDEN % 1 * (apart - _TOGETHER)).astype(np.int64)
    return pa.array((starts[:, None] + np.arange(_TOGETHER)).ravel())


def leaves(path: str, values: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """The parts of a column that Parquet stores one by one, each with its path; the column itself if it is not nested.

    Args:
        path: path of the column.
        values: the column; of a nested column only elements that belong to a row are returned.
    """
    kind = values.type
    if pa.types.is_struct(kind):
        for field, part in zip(kind, values.flatten(), strict=True):
            yield from leaves(f"{path}.{field.name}", part)
    elif pa.types.is_map(kind):
        yield from leaves(f"{path}.key_value", entries_of(values).flatten())
    elif pa.types.is_nested(kind):
        yield from leaves(f"{path}.list.element", values.flatten())
    else:
        yield path, values


def _repeat(values: pa.Array, scale: float) -> bool:
    """Whether a dictionary pays for `scale` times as many values like these."""
    rows = len(values) * scale
    if rows < _ENOUGH or pa.types.is_boolean(values.type):
        return True
    sample = values.take(_spread(len(values))).dictionary_encode()
    value_bytes = values.nbytes / len(values)
    places = sample.indices.to_numpy()
    # if equal values lie together, a sample meets many values once: the number of changes bounds the distinct values
    changes = (float(np.mean(places[1:] != places[:-1])) - 1 / _TOGETHER) / (1 - 1 / _TOGETHER)
    found = estimate_distinct(len(sample), len(sample.dictionary), rows)
    held = max(1.0, min(rows, found, rows * changes))
    taken = held * value_bytes
    place_bytes = math.ceil(math.log2(held)) / 8
    return bool(taken <= DICTIONARY_BYTES and taken + rows * place_bytes < _WORTH * rows * value_bytes)


def estimate_distinct(sampled: int, found: int, rows: float) -> float:
    """How many distinct values `rows` rows hold if `sampled` of them hold `found` and all values are equally frequent.

    If some values are more frequent than others, there are more distinct values than this: the estimate favours the
    dictionary.
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
