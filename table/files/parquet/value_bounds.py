"""Bounds of column chunks with long values, for which Arrow's writer makes none (pure).

Arrow drops a least or greatest value of more than 4,096 bytes from the statistics of a chunk. When Hudi builds
column statistics, it takes a chunk without bounds for a chunk without values. Filters then lose its rows, short values
included. The format allows a bound that is not a value of the chunk (``is_min_value_exact``, ``is_max_value_exact``
in parquet.thrift), so this module cuts long values: the least to a prefix, the greatest to a
prefix whose last byte or character is the next greater one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table.files.parquet.chunk_statistics import Bounds
from table.files.parquet.dictionary_choice import leaves

BOUND_BYTES = 256
MOST_BOUND_BYTES = 1024 * 1024  # readers refuse footers with strings of 100 MB
ARROW_KEEPS = 4096

_GREATEST = "\U0010ffff"
_BEFORE_SURROGATES, _AFTER_SURROGATES = 0xD7FF, 0xE000

Path = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Extremes:
    """Least and greatest value of a column chunk.

    Attributes:
        least: in the order of unsigned bytes.
        greatest: in the same order.
        is_text: whether the values are UTF-8.
    """

    least: bytes
    greatest: bytes
    is_text: bool


def lower_bound(value: bytes, *, is_text: bool) -> tuple[bytes, bool]:
    """A bound of at most `BOUND_BYTES` bytes, not greater than the value in the order of unsigned bytes.

    Args:
        value: any bytes.
        is_text: whether the bound has to be UTF-8; a value that is not UTF-8 is cut as bytes.

    Returns:
        The bound, and whether it is the value itself.
    """
    if len(value) <= BOUND_BYTES:
        return value, True
    if is_text and _decode(value) is not None:
        return value[:BOUND_BYTES].decode(errors="ignore").encode(), False  # drops a character that was cut in two
    return value[:BOUND_BYTES], False


def upper_bound(value: bytes, *, is_text: bool) -> tuple[bytes, bool]:
    """A bound that is not less than the value in the order of unsigned bytes.

    It is longer than `BOUND_BYTES` if none of the value's first `BOUND_BYTES` bytes has a greater byte or character.

    Args:
        value: any bytes.
        is_text: whether the bound has to be UTF-8; a value that is not UTF-8 is cut as bytes.

    Returns:
        The bound, and whether it is the value itself.
    """
    if len(value) <= BOUND_BYTES:
        return value, True
    text = _decode(value) if is_text else None
    if text is not None:
        head = value[:BOUND_BYTES].decode(errors="ignore").rstrip(_GREATEST)
        head = head or text[: _leading(text, _GREATEST) + 1]
        return (value, True) if head.endswith(_GREATEST) else ((head[:-1] + _next(head[-1])).encode(), False)
    raw = value[:BOUND_BYTES].rstrip(b"\xff") or value[: len(value) - len(value.lstrip(b"\xff")) + 1]
    return (value, True) if raw.endswith(b"\xff") else (raw[:-1] + bytes([raw[-1] + 1]), False)


def _decode(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _leading(text: str, character: str) -> int:
    return len(text) - len(text.lstrip(character))


def _next(character: str) -> str:
    """The next character: UTF-8 orders as code points do, and has no surrogates."""
    point = ord(character)
    return chr(_AFTER_SURROGATES if point == _BEFORE_SURROGATES else point + 1)


def long_extremes(rows: pa.Table, group_rows: int) -> list[dict[Path, Extremes]]:
    """Extremes of the chunks in which Arrow may leave out a bound, a dict for each row group.

    In columns without a long value only the lengths of values are read.

    Args:
        rows: the rows that are written.
        group_rows: rows of each row group but the last.
    """
    long = [name for name, column in zip(rows.column_names, rows.columns, strict=True) if _has_long(column)]
    starts = range(0, len(rows), max(1, group_rows))
    return [find_extremes([rows.select(long).slice(start, group_rows)]) if long else {} for start in starts]


def find_extremes(batches: Iterable[pa.Table]) -> dict[Path, Extremes]:
    """Extremes of all string and binary columns, by their paths in Parquet.

    Args:
        batches: the rows of a row group.

    Returns:
        The extremes, without columns that have no values.
    """
    found: dict[Path, Extremes] = {}
    for rows in batches:
        for name, column in zip(rows.column_names, rows.columns, strict=True):
            for path, some in _extremes_of(name, column):
                known = found.get(path, some)
                least, greatest = min(known.least, some.least), max(known.greatest, some.greatest)
                found[path] = Extremes(least, greatest, some.is_text)
    return found


def _extremes_of(name: str, column: pa.ChunkedArray) -> Iterator[tuple[Path, Extremes]]:
    for chunk in column.chunks:
        for path, values in leaves(name, chunk):
            plain = _used(values) if pa.types.is_dictionary(values.type) else values
            if not _is_binary(plain.type):
                continue
            ends = pc.min_max(plain)
            if ends["min"].is_valid:
                least, greatest = (ends[end].as_buffer().to_pybytes() for end in ("min", "max"))
                yield tuple(path.encode().split(b".")), Extremes(least, greatest, is_text(plain.type))


def _used(values: pa.DictionaryArray) -> pa.Array:
    """The dictionary values that occur in the column."""
    if len(values.dictionary) == 1 and values.null_count < len(values):
        return values.dictionary
    places = values.indices.drop_null().to_numpy()
    used = np.bincount(places, minlength=len(values.dictionary)) > 0
    return values.dictionary if used.all() else values.dictionary.filter(pa.array(used))


def is_text(kind: pa.DataType) -> bool:
    """Whether a type (Arrow) is that of strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _has_long(column: pa.ChunkedArray) -> bool:
    return any(_may_have_long(chunk) and _longest(chunk) > ARROW_KEEPS for chunk in column.chunks)


def _may_have_long(values: pa.Array) -> bool:
    """Whether a column has enough bytes for a long value: most columns of small files do not."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _may_have_long(values.dictionary)
    return bool(pa.types.is_nested(kind) or (_is_binary(kind) and values.nbytes > ARROW_KEEPS))


def _longest(values: pa.Array) -> int:
    """Bytes of the longest string or binary; in a nested column also counts values hidden by a null."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _longest(values.dictionary)
    if pa.types.is_struct(kind):
        return max((_longest(values.field(number)) for number in range(kind.num_fields)), default=0)
    if pa.types.is_nested(kind):
        if not len(values):
            return 0
        # a slice shares its elements with the whole array: only the slice's elements are read
        first, last = values.offsets[0].as_py(), values.offsets[len(values)].as_py()
        parts = (values.keys, values.items) if pa.types.is_map(kind) else (values.values,)
        return max(_longest(part.slice(first, last - first)) for part in parts)
    return int(pc.max(pc.binary_length(values)).as_py() or 0) if _is_binary(kind) else 0


def as_bounds(extremes: Mapping[Path, Extremes]) -> dict[Path, Bounds]:
    """Lower and upper bound of each column; each flag says whether the bound is exact.

    A column with a bound of more than `MOST_BOUND_BYTES` is left out: readers would refuse such a footer.
    """
    bounds = {}
    for path, found in extremes.items():
        lower = lower_bound(found.least, is_text=found.is_text)
        upper = upper_bound(found.greatest, is_text=found.is_text)
        if len(upper[0]) <= MOST_BOUND_BYTES:
            bounds[path] = lower, upper
    return bounds
