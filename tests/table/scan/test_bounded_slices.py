"""What statistics guarantee for the rows of a slice: never more than what holds."""

from datetime import date, datetime, timezone
from decimal import Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.files.column_ranges import ColumnRange, ranges_of_rows
from table.scan.bounded_slices import boundable_columns, slice_guarantee
from table.scan.predicate import which_may_hold
from table.view.file_group import BaseFile, FileSlice, LogFile

pytestmark = pytest.mark.pure

BASE = BaseFile("p", "base", "f-0", "1", 10)
LOG = LogFile("p", "log", "f-0", "1", 1, "", "", 10)
SLICE = FileSlice("p", "f-0", "1", BASE, (LOG,))
FILES = ("p/base", "p/log")
ALL = Context(prec=77)
VALUES = {
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-9, 9),
    pa.int64(): st.integers(-(2**60), 2**60),
    pa.string(): st.text(max_size=3),
    pa.date32(): st.dates(date(1960, 1, 1), date(2040, 1, 1)),
    pa.timestamp("us", "UTC"): st.datetimes(datetime(1960, 1, 1), datetime(2040, 1, 1)).map(  # noqa: DTZ001
        lambda moment: moment.replace(tzinfo=timezone.utc)
    ),
    pa.decimal128(9, 2): st.integers(-(10**6), 10**6).map(lambda number: Decimal(number).scaleb(-2)),
    pa.decimal128(38, 4): st.integers(-(10**38) + 1, 10**38 - 1).map(lambda number: Decimal(number).scaleb(-4, ALL)),
}


def test_columns_of_other_types_and_floats_bound_nothing():
    schema = pa.schema([("n", pa.int64()), ("d", pa.float64()), ("l", pa.list_(pa.int64())), ("unasked", pa.int64())])
    schema = schema.append(pa.field("x", pa.binary()))  # Hudi orders bytes as signed ones
    assert boundable_columns(schema, frozenset(["n", "d", "l", "x", "not there"])) == {"n": pa.int64()}


@pytest.mark.parametrize(("greatest", "is_bounded"), [("z", True), ("\ud7ff", True), ("\uffff", False), ("😀", False)])
def test_strings_that_java_may_order_otherwise_bound_nothing(greatest, is_bounded):
    """By UTF-16 units U+1F600 comes before U+FFFF: a range of both that Hudi made ends with U+FFFF."""
    told = ColumnRange("a", greatest, 2, 0)
    assert (guarantee_of(told, told, pa.string()) is not None) == is_bounded


@st.composite
def columns(draw):
    kind = draw(st.sampled_from(list(VALUES)))
    rows = st.lists(st.none() | VALUES[kind], max_size=4).map(lambda values: pa.table({"c": pa.array(values, kind)}))
    return kind, draw(rows), draw(rows), draw(VALUES[kind])


@given(columns())
def test_no_row_contradicts_the_guarantee(given_columns):
    kind, base, log, value = given_columns
    schema, field, scalar = pa.schema([("c", kind)]), pc.field("c"), pa.scalar(value, kind)
    ranges = {(path, "c"): ranges_of_rows([rows], ["c"])["c"] for path, rows in zip(FILES, (base, log), strict=True)}
    known = slice_guarantee(SLICE, {"c": kind}, ranges)
    rows = pa.concat_tables([base, log])
    conditions = [field == scalar, field != scalar, field.is_null(), field.is_valid(), ~(field == scalar)]
    if not pa.types.is_boolean(kind):
        conditions += [field > scalar, field <= scalar, ~(field > scalar), field.isin([scalar])]
    for condition in conditions:
        if known is not None and not which_may_hold(condition, [known], schema):
            assert len(rows.filter(condition)) == 0


def guarantee_of(base, log, kind=None):
    found = {("p/base", "c"): base, ("p/log", "c"): log}
    ranges = {key: told for key, told in found.items() if told is not None}
    return slice_guarantee(SLICE, {"c": kind or pa.int64()}, ranges)


RANGE, EMPTY = ColumnRange(1, 5, 3, 0), ColumnRange(None, None, 0, 0)


@pytest.mark.parametrize(
    ("base", "log", "is_bounded"),
    [
        (RANGE, RANGE, True),
        (RANGE, EMPTY, True),  # a log file of deletes alone
        (RANGE, None, False),
        (None, RANGE, False),
        (EMPTY, EMPTY, False),
        # Hudi 1.1.1 takes a footer without bounds for one of nulls alone
        (ColumnRange(None, None, 3, 3), RANGE, False),
        (ColumnRange(None, None, 3, 1), RANGE, False),
    ],
)
def test_a_slice_is_bounded_if_each_of_its_files_is(base, log, is_bounded):
    assert (guarantee_of(base, log) is not None) == is_bounded


@pytest.mark.parametrize(
    ("least", "kind"), [("1", pa.int64()), (1, pa.string()), (True, pa.int32()), (1, pa.bool_()), (2**40, pa.int32())]
)
def test_statistics_of_another_type_bound_nothing(least, kind):
    told = ColumnRange(least, least, 1, 0)
    assert guarantee_of(told, told, kind) is None


def test_several_columns_bound_a_slice_together():
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    ranges = {("p/base", "a"): RANGE, ("p/base", "b"): ColumnRange(10, 20, 3, 2)}
    known = slice_guarantee(FileSlice("p", "f-0", "1", BASE), {"a": pa.int64(), "b": pa.int64()}, ranges)
    a, b = pc.field("a"), pc.field("b")
    wanted = [(a == 3, True), (a == 6, False), (b == 9, False), (b.is_null(), True), ((a == 3) & (b == 30), False)]
    assert [bool(which_may_hold(condition, [known], schema)) for condition, _ in wanted] == [may for _, may in wanted]
