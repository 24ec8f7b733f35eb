"""Statistics of column chunks: what is written into a footer is what pyarrow reads from it."""

import pyarrow as pa
import pytest
from parquet_bytes import data_of, footer_of, joined, metadata_of, parquet_of

from table.files.parquet import field_ids as ids
from table.files.parquet.chunk_statistics import (
    TextStatistics,
    chunk_memory_bytes,
    has_inexact_bound,
    lacks_bounds,
    with_bounds,
    with_statistics_replaced,
    with_text_statistics,
)
from table.files.parquet.row_groups import chunks_of, with_columns
from table.files.parquet.thrift_compact import BINARY, FALSE, I64, STRUCT, Field, decode_struct, encode_struct

LONG = "x" * 5000  # Arrow leaves out bounds of such length
SCHEMA = pa.schema([("long", pa.string()), ("short", pa.string()), ("null", pa.string()), ("n", pa.int64())])
VALUES = [[LONG, LONG + "z", None, LONG], ["b", None, "c", "c"], [None] * 4, [3, None, None, 1]]
ROWS = pa.table(VALUES, SCHEMA)
KNOWN = {"short": (1, "b", "c"), "null": (4, None, None), "n": (2, 1, 3)}  # nulls, least, greatest


def read_back(file, group):
    """(nulls, least, greatest) of each column that has statistics, as pyarrow reads them."""
    known = metadata_of(joined(data_of(file), footer_of(file), [group])).row_group(0)
    chunks = map(known.column, range(known.num_columns))
    told = {chunk.path_in_schema: chunk.statistics for chunk in chunks if chunk.statistics is not None}
    return {name: (held.null_count, held.min, held.max) for name, held in told.items()}


def with_statistics(chunk, held):
    """The chunk with these statistics; None: without any."""
    meta = {number: field for number, field in chunk[ids.CHUNK_META].value.items() if number != ids.STATISTICS}
    meta |= {} if held is None else {ids.STATISTICS: Field(STRUCT, held)}
    return {**chunk, ids.CHUNK_META: Field(STRUCT, dict(sorted(meta.items())))}


def chunk_of(values):
    """The chunk of a column with these values."""
    [group] = footer_of(parquet_of(pa.table({"a": values}))).row_groups
    return chunks_of(group)[0]


@pytest.mark.parametrize("exact", [(True, True), (True, False), (False, True)])
def test_only_a_chunk_of_text_that_lacks_bounds_gets_them_and_its_nulls_stay(exact):
    file, bounds = parquet_of(ROWS), tuple(zip((b"A", b"y"), exact, strict=True))
    [group] = footer_of(file).row_groups
    made = with_bounds(group, {(name.encode(),): bounds for name in ROWS.column_names})
    assert read_back(file, made) == KNOWN | {"long": (1, "A", "y")}
    assert list(map(lacks_bounds, chunks_of(group))) == [True, False, False, False]
    assert not any(map(lacks_bounds, chunks_of(made)))
    stored = chunks_of(decode_struct(encode_struct(made)))
    assert list(map(has_inexact_bound, stored)) == [not all(exact), False, False, False]
    assert with_bounds(group, {(b"other",): bounds}) == group


@pytest.mark.parametrize(("held", "least", "greatest"), [(ids.LOWER, "b", "y"), (ids.UPPER, "A", "b")])
def test_the_bound_that_a_chunk_has_stays_and_the_other_one_is_added(held, least, greatest):
    file = parquet_of(ROWS.select(["short"]))
    [group] = footer_of(file).row_groups
    half = with_statistics(chunks_of(group)[0], {ids.NULLS: Field(I64, 1), held: Field(BINARY, b"b")})
    made = with_bounds(with_columns(group, [half]), {(b"short",): ((b"A", True), (b"y", False))})
    assert read_back(file, made) == {"short": (1, least, greatest)}
    assert has_inexact_bound(chunks_of(made)[0]) is (held == ids.LOWER)


BOTH = {ids.LOWER: Field(BINARY, b""), ids.UPPER: Field(BINARY, b"")}


@pytest.mark.parametrize(
    ("column", "held", "lacks"),
    [
        ("short", BOTH, False),
        ("short", {ids.LOWER: BOTH[ids.LOWER], ids.NULLS: Field(I64, 1)}, True),
        ("short", {ids.NULLS: Field(I64, 3)}, True),
        ("short", {ids.NULLS: Field(I64, 4)}, False),  # there are no other values
        ("short", {}, True),
        ("short", None, True),
        ("n", None, False),
    ],
)
def test_a_chunk_lacks_bounds_if_it_has_text_and_not_both_of_them(column, held, lacks):
    assert lacks_bounds(with_statistics(chunk_of(ROWS.column(column)), held)) is lacks


@pytest.mark.parametrize("bounds", [None, ((b"a", True), (b"zz", True))])
def test_a_chunk_of_text_without_statistics_gets_what_it_is_told(bounds):
    file = parquet_of(ROWS, write_statistics=["n", "short", "null"])
    [group] = footer_of(file).row_groups
    made = with_text_statistics(group, {(b"long",): TextStatistics(3, bounds), (b"other",): TextStatistics(9, None)})
    told = (3, None, None) if bounds is None else (3, "a", "zz")
    assert read_back(file, made) == KNOWN | {"long": told}


def test_a_text_is_replaced_in_the_statistics_where_it_is_a_whole_bound():
    file = parquet_of(pa.table({"name": ["old", "older", None]}))
    [group] = footer_of(file).row_groups
    made = with_statistics_replaced(chunks_of(group)[0], b"old", b"a new one")
    assert read_back(file, with_columns(group, [made])) == {"name": (1, "a new one", "older")}
    without = with_statistics(chunks_of(group)[0], None)
    assert with_statistics_replaced(without, b"old", b"a new one") == without


@pytest.mark.parametrize(
    "values",
    [
        pa.array(range(1000), pa.int32()),
        pa.array([7] * 1000, pa.timestamp("us")),
        pa.array(["twelve bytes"] * 1000),
        pa.array(["c", "three"] * 500),
        pa.array([b""] * 1000),
    ],
    ids=lambda values: str(values.type),
)
def test_the_memory_of_values_is_that_of_arrow_however_few_are_stored(values):
    assert 0 <= values.nbytes - chunk_memory_bytes(chunk_of(values), repeated=["b"]) <= 4  # the end of the last text


CUT = {ids.UPPER_EXACT: Field(FALSE, False)}
WIDE = {ids.LOWER: Field(BINARY, b"x" * 99), ids.UPPER: Field(BINARY, b"x" * 99)}


@pytest.mark.parametrize(
    ("held", "repeated"), [(None, []), ({ids.LOWER: BOTH[ids.LOWER]}, []), (WIDE | CUT, []), (WIDE, ["a"])]
)
def test_texts_whose_length_no_bounds_tell_and_those_kept_in_a_dictionary_take_four_bytes_each(held, repeated):
    chunk = with_statistics(chunk_of(pa.array(["some text"] * 1000)), held)
    assert chunk_memory_bytes(chunk, repeated) == 4 * 1000


def test_texts_take_at_least_the_bytes_that_they_take_in_the_file():
    chunk = chunk_of(pa.array(["x" * 4000, *(f"{number:050}" for number in range(1000)), "z"]))
    stored = chunk[ids.CHUNK_META].value[ids.UNCOMPRESSED].value
    assert stored > 50_000
    assert chunk_memory_bytes(with_statistics(chunk, BOTH), []) == stored
