"""Rows that lack a value: each gets the reasons that hold for it, whatever chunks they arrive in."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.task.bad_rows import NO_KEY, explain_nulls, find_bad_rows
from table.schema.avro_schema import RECORD_KEY

NULL_X = "column x is null where the schema allows none"
NULL_TS = "the ordering field ts is null"
KEYS = st.sampled_from([None, "", " ", "k", "\u00fc"])
ROWS = st.lists(st.tuples(KEYS, st.sampled_from([None, 0]), st.sampled_from([None, ""])), max_size=30)


def table_of(rows, cut=0):
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    schema = pa.schema([(RECORD_KEY, pa.string()), ("ts", pa.int64()), ("x", pa.string())])
    whole = pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema)
    return pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])


def reasons_of(key, ts, x):
    missing = {NO_KEY: not key, NULL_X: x is None, NULL_TS: ts is None}
    return "; ".join(reason for reason, is_so in missing.items() if is_so)


@pytest.mark.parametrize(
    ("required", "ordering", "reasons"),
    [
        ([], [], {}),
        (["x"], [], {"x": NULL_X}),
        (["x"], ["ts"], {"x": NULL_X, "ts": NULL_TS}),
        (["ts", "x"], ["ts"], {"ts": NULL_TS, "x": NULL_X}),
    ],
)
def test_a_null_ordering_field_is_named_as_such_also_where_the_schema_requires_the_column(required, ordering, reasons):
    explained = explain_nulls(required, ordering)
    assert explained == reasons
    assert list(explained) == list(reasons)


@given(ROWS, st.integers(0, 30))
@settings(deadline=None)
def test_each_row_gets_all_reasons_that_hold_for_it_and_no_other(rows, cut):
    found = list(find_bad_rows(table_of(rows, cut), explain_nulls(["x"], ["ts"])))
    said = [[part.reason for part in found if part.rows[number]] for number in range(len(rows))]
    expected = [reasons_of(*row) for row in rows]
    assert said == [[reason] if reason else [] for reason in expected]
    assert len({part.reason for part in found}) == len(found)
    assert all(part.rows.any() for part in found)


@given(ROWS, st.data())
@settings(deadline=None)
def test_exempt_rows_are_not_found_and_the_others_are_found_as_without_them(rows, data):
    exempt = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), np.bool_)
    required = explain_nulls(["x"], ["ts"])
    everything = {part.reason: part.rows for part in find_bad_rows(table_of(rows), required)}
    checked = {part.reason: part.rows for part in find_bad_rows(table_of(rows), required, exempt)}
    left = {reason: flags & ~exempt for reason, flags in everything.items()}
    assert {reason: flags.tolist() for reason, flags in checked.items()} == {
        reason: flags.tolist() for reason, flags in left.items() if flags.any()
    }


def test_a_column_that_is_not_required_may_be_null():
    assert list(find_bad_rows(table_of([("k", None, None)]), {})) == []


def test_rows_without_any_chunk_are_not_bad():
    schema = pa.schema([(RECORD_KEY, pa.string()), ("x", pa.string())])
    assert list(find_bad_rows(pa.Table.from_batches([], schema), explain_nulls(["x"]))) == []
