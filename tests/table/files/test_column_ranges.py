"""Ranges of columns: from footers, from rows, and put together."""

import json
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.files.column_ranges import (
    ColumnRange,
    as_read,
    covers,
    decode_ranges,
    encode_ranges,
    is_ranged,
    ranges_of_file,
    ranges_of_footer,
    ranges_of_rows,
    widen,
)

pytestmark = pytest.mark.pure

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc)
MICROS = 1_767_323_045_000_006
COLUMNS = {
    "b": (pa.bool_(), [True, False, None], (False, True)),
    "i": (pa.int32(), [3, -4, None], (-4, 3)),
    "l": (pa.int64(), [1 << 40, None, 2], (2, 1 << 40)),
    "f": (pa.float32(), [0.5, None, 2.5], (0.5, 2.5)),
    "d": (pa.float64(), [None, 0.25, 7.0], (0.25, 7.0)),
    "s": (pa.string(), ["b", "ä", None], ("b", "ä")),
    "x": (pa.binary(), [b"\x00\xff", b"\x80", None], ("\x00\xff", "\x80")),
    "c": (pa.decimal128(10, 2), [Decimal("-1.25"), Decimal("7.5"), None], (-125, 750)),
    "e": (
        pa.decimal128(38, 9),
        [Decimal("-12345678901234567890123456789.012345678"), None, Decimal(1)],
        (-12345678901234567890123456789012345678, 10**9),
    ),
    "t": (pa.date32(), [date(1969, 12, 31), date(1970, 1, 3), None], (-1, 2)),
    "m": (pa.timestamp("us", "UTC"), [MOMENT, None, MOMENT], (MICROS, MICROS)),
}
ROWS = pa.table({name: pa.array(values, kind) for name, (kind, values, _) in COLUMNS.items()})


def file_of(rows, **options):
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, **options)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("name", COLUMNS)
def test_a_footer_and_the_rows_give_the_same_range(name):
    _, values, (least, greatest) = COLUMNS[name]
    nulls = values.count(None)
    data = file_of(ROWS)
    [of_file] = ranges_of_file(pq.read_metadata(pa.BufferReader(data)), [name]).values()
    [of_rows] = ranges_of_rows([ROWS.slice(0, 1), ROWS.slice(1)], [name]).values()
    wanted = ColumnRange(least, greatest, 3, nulls)
    assert (of_rows.least, of_rows.greatest, of_rows.values, of_rows.nulls) == (least, greatest, 3, nulls)
    assert ColumnRange(of_file.least, of_file.greatest, of_file.values, of_file.nulls) == wanted
    assert of_file.size > 0
    assert of_file.uncompressed > 0
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") :]
    assert ranges_of_footer(footer, [name]) == {name: of_file}


def test_row_groups_are_widened_and_columns_that_are_not_there_are_left_out():
    rows = pa.table({"n": [5, 1, 9, 7], "nothing": pa.nulls(4, pa.int64())})
    found = ranges_of_file(pq.read_metadata(pa.BufferReader(file_of(rows, row_group_size=2))), ["n", "nothing", "no"])
    assert found.keys() == {"n", "nothing"}
    assert (found["n"].least, found["n"].greatest, found["n"].values) == (1, 9, 4)
    assert (found["nothing"].least, found["nothing"].nulls) == (None, 4)


def test_a_file_that_does_not_bound_its_values_has_no_ranges():
    for options in ({"write_statistics": False}, {}):
        rows = pa.table({"s": ["a", "b" * 5000]})  # Arrow leaves out bounds of long values
        assert ranges_of_file(pq.read_metadata(pa.BufferReader(file_of(rows, **options))), ["s"]) is None


def test_long_values_of_rows_are_cut_as_those_of_footers():
    long = pa.table({"s": ["a" * 9000, "é" * 9000], "x": [b"\xff" * 300 + b"a", b"\x01" * 9000]})
    told = ranges_of_rows([long], ["s", "x"])
    assert (told["s"].least, told["s"].greatest) == ("a" * 256, "é" * 127 + "ê")
    assert told["x"].least == "\x01" * 256
    assert told["x"].greatest == "\xff" * 300 + "b"
    assert ranges_of_rows([pa.table({"x": [b"\xff" * (2**20 + 1)]})], ["x"]) == {}


def test_a_range_with_a_nan_ends_at_infinity():
    nan, infinite = float("nan"), float("inf")
    [mixed] = ranges_of_rows([pa.table({"d": [1.0, nan, 3.0]})], ["d"]).values()
    assert (mixed.least, mixed.greatest) == (1.0, infinite)
    [open_at_both_ends] = ranges_of_rows([pa.table({"d": [infinite, nan]})], ["d"]).values()
    assert (open_at_both_ends.least, open_at_both_ends.greatest) == (-infinite, infinite)
    alone = pa.table({"d": [nan, nan]})
    [stored] = ranges_of_file(pq.read_metadata(pa.BufferReader(file_of(alone))), ["d"]).values()
    for found in (stored, *ranges_of_rows([alone], ["d"]).values()):
        assert (found.least, found.greatest) == (infinite, infinite)
        both = widen([ColumnRange(1.0, 2.0, 1, 0), found])
        assert (both.least, both.greatest) == (1.0, infinite)


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int32()), pa.struct([("a", pa.int32())]), pa.time64("us"), pa.timestamp("ms"), pa.int16()]
)
def test_other_types_have_no_ranges(kind):
    assert not is_ranged(kind)
    told = ranges_of_rows([pa.table({"o": pa.nulls(2, kind)}), pa.table({"p": [1]})], ["o", "nowhere", "p"])
    assert told == {"nowhere": ColumnRange(None, None, 3, 3), "p": ColumnRange(1, 1, 3, 2)}


def test_values_in_a_dictionary_are_those_of_the_column():
    rows = pa.table({"c": pa.array(["b", "b", None]).dictionary_encode()})
    assert ranges_of_rows([rows], ["c"]) == {"c": ColumnRange("b", "b", 3, 1)}


VALUES = st.one_of(st.integers(-(10**37), 10**37), st.text(), st.floats(allow_nan=False), st.booleans())
RANGES = st.builds(ColumnRange, VALUES, VALUES, st.integers(0, 9), st.integers(0, 9), st.integers(0), st.integers(0))


@given(st.none() | st.dictionaries(st.text(), RANGES))
def test_ranges_travel_as_json(ranges):
    assert decode_ranges(json.loads(json.dumps(encode_ranges(ranges)))) == ranges


@given(st.lists(st.lists(st.integers() | st.none())))
def test_widened_ranges_are_those_of_all_values(groups):
    def range_of(values):
        some = [value for value in values if value is not None]
        return ColumnRange(min(some, default=None), max(some, default=None), len(values), values.count(None))

    assert widen([range_of(values) for values in groups]) == range_of([value for values in groups for value in values])


def test_integers_of_a_column_that_became_a_float_are_compared_as_readers_see_them():
    stored, told = ColumnRange(1, 2**63 - 1, 2, 0), ColumnRange(1.0, float(2**63 - 1), 2, 0)
    assert covers(ColumnRange(float(2**63 - 1), float(2**63 - 1), 1, 0), stored) == (False, True)
    least = ColumnRange(2**63 - 1, 2**63 - 1, 1, 0)
    assert covers(told, as_read(least, pa.float64())) == (True, True)
    assert as_read(least, pa.int64()) == least
