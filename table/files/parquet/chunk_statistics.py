"""The statistics of column chunks as they stand in Parquet footers: bounds and nulls (pure)."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from table.files.parquet.field_ids import (
    BYTE_ARRAY,
    CHUNK_META,
    COLUMNS,
    LOWER,
    LOWER_EXACT,
    NULLS,
    NUM_VALUES,
    OLD_LOWER,
    OLD_UPPER,
    STATISTICS,
    TYPE,
    UNCOMPRESSED,
    UPPER,
    UPPER_EXACT,
    WIDTHS,
)
from table.files.parquet.row_groups import chunk_path, chunks_of, field_value
from table.files.parquet.thrift_compact import BINARY, FALSE, I64, LIST, STRUCT, TRUE, Field, Items, Struct

# lower and upper bound of a chunk; each flag says whether the bound is exact
Bounds = tuple[tuple[bytes, bool], tuple[bytes, bool]]


def chunk_memory_bytes(chunk: Struct, repeated: Collection[str]) -> int:
    """About how many bytes of memory (Arrow) a chunk's values take; with a dictionary its stored size does not say.

    Args:
        chunk: the chunk.
        repeated: top-level columns whose values are kept as a dictionary.
    """
    meta = field_value(chunk, CHUNK_META)
    count, stored = int(field_value(meta, NUM_VALUES)), int(field_value(meta, UNCOMPRESSED))
    width = WIDTHS.get(field_value(meta, TYPE))
    if width is not None:
        return width * count
    bounds = field_value(meta, STATISTICS) if STATISTICS in meta else {}
    path = b".".join(chunk_path(chunk)).decode()
    # bounds that were cut come from a few long values and do not tell the usual length
    if path in repeated or has_inexact_bound(chunk) or not (UPPER in bounds and LOWER in bounds):
        return max(stored, 4 * count)
    return max(stored, (4 + (len(bounds[LOWER].value) + len(bounds[UPPER].value)) // 2) * count)


def with_statistics_replaced(chunk: Struct, old: bytes, new: bytes) -> Struct:
    """A chunk whose statistics have the string `new` in the place of `old`."""
    meta = dict(field_value(chunk, CHUNK_META))
    if STATISTICS in meta:
        held = meta[STATISTICS].value
        changed = {number: Field(kind, new if value == old else value) for number, (kind, value) in held.items()}
        meta[STATISTICS] = Field(STRUCT, changed)
    return {**chunk, CHUNK_META: Field(STRUCT, meta)}


def _statistics_of(chunk: Struct) -> Struct:
    meta = field_value(chunk, CHUNK_META)
    held: Struct = meta[STATISTICS].value if STATISTICS in meta else {}
    return held


class TextStatistics(NamedTuple):
    """Statistics of a chunk of text.

    Attributes:
        nulls: number of nulls.
        bounds: bounds of the other values; None if there are none, or if the bounds would be too long.
    """

    nulls: int
    bounds: Bounds | None


def with_text_statistics(group: Struct, statistics: Mapping[tuple[bytes, ...], TextStatistics]) -> Struct:
    """A row group whose chunks of text have these statistics.

    Args:
        group: the row group; its writer made no statistics for these chunks.
        statistics: path of a column -> its statistics.
    """
    chunks = [
        _told(chunk, statistics[chunk_path(chunk)]) if chunk_path(chunk) in statistics else chunk
        for chunk in chunks_of(group)
    ]
    return {**group, COLUMNS: Field(LIST, Items(STRUCT, chunks))}


def _told(chunk: Struct, statistics: TextStatistics) -> Struct:
    held: Struct = {NULLS: Field(I64, statistics.nulls)}
    meta = {**field_value(chunk, CHUNK_META), STATISTICS: Field(STRUCT, held)}
    counted = {**chunk, CHUNK_META: Field(STRUCT, dict(sorted(meta.items())))}
    return counted if statistics.bounds is None else _bounded(counted, statistics.bounds)


def lacks_bounds(chunk: Struct) -> bool:
    """Whether the chunk of a string or binary column has values, but its statistics have no bound."""
    meta, held = field_value(chunk, CHUNK_META), _statistics_of(chunk)
    if field_value(meta, TYPE) != BYTE_ARRAY or (LOWER in held and UPPER in held):
        return False
    return NULLS not in held or int(held[NULLS].value) < int(field_value(meta, NUM_VALUES))


def has_inexact_bound(chunk: Struct) -> bool:
    """Whether the statistics of a chunk mark a bound as not exact, that is, not one of its values."""
    held = _statistics_of(chunk)
    return any(number in held and held[number].value is False for number in (UPPER_EXACT, LOWER_EXACT))


def with_open_bounds(chunk: Struct, lowest: bytes, highest: bytes) -> Struct:
    """A chunk whose upper bound is the highest value. Where its lower bound is the same, it gets the lowest.

    Args:
        chunk: the chunk; without bounds it stays as it is.
        lowest: the least value of the type, encoded.
        highest: the greatest value of the type, encoded.
    """
    held = _statistics_of(chunk)
    if UPPER not in held:
        return chunk
    ours: Struct = {UPPER: Field(BINARY, highest), UPPER_EXACT: Field(FALSE, False)}
    if held[LOWER].value == highest:
        ours |= {LOWER: Field(BINARY, lowest), LOWER_EXACT: Field(FALSE, False)}
    for old, new in ((OLD_UPPER, UPPER), (OLD_LOWER, LOWER)):
        if old in held and new in ours:
            ours[old] = ours[new]
    meta = {**field_value(chunk, CHUNK_META), STATISTICS: Field(STRUCT, dict(sorted({**held, **ours}.items())))}
    return {**chunk, CHUNK_META: Field(STRUCT, meta)}


def with_bounds(group: Struct, bounds: Mapping[tuple[bytes, ...], Bounds]) -> Struct:
    """A row group in which chunks without bounds get these; existing bounds stay.

    Args:
        group: the row group.
        bounds: path of a column -> bounds of its chunk.
    """
    chunks = [
        _bounded(chunk, bounds[chunk_path(chunk)]) if chunk_path(chunk) in bounds and lacks_bounds(chunk) else chunk
        for chunk in chunks_of(group)
    ]
    return {**group, COLUMNS: Field(LIST, Items(STRUCT, chunks))}


def _bounded(chunk: Struct, bounds: Bounds) -> Struct:
    (lower, is_lower_exact), (upper, is_upper_exact) = bounds
    ours: Struct = {
        UPPER: Field(BINARY, upper),
        LOWER: Field(BINARY, lower),
        UPPER_EXACT: Field(TRUE if is_upper_exact else FALSE, is_upper_exact),
        LOWER_EXACT: Field(TRUE if is_lower_exact else FALSE, is_lower_exact),
    }
    held = _statistics_of(chunk)
    for bound, exact in ((UPPER, UPPER_EXACT), (LOWER, LOWER_EXACT)):
        if bound in held:
            del ours[bound], ours[exact]
    meta = {**field_value(chunk, CHUNK_META), STATISTICS: Field(STRUCT, dict(sorted({**held, **ours}.items())))}
    return {**chunk, CHUNK_META: Field(STRUCT, dict(sorted(meta.items())))}
