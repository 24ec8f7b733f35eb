"""Rows get exactly the columns of a schema."""

import pyarrow as pa
import pytest

from table.columns.conform import conform

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])


def test_missing_columns_are_null_others_are_cast_and_strangers_go():
    rows = pa.table({"other": [1, 2], "n": pa.array([1, 2], pa.int32()), "id": ["a", None]})
    found = conform(rows, SCHEMA)
    assert found.schema == SCHEMA
    assert found.to_pylist() == [
        {"id": "a", "n": 1, "_hoodie_is_deleted": None},
        {"id": None, "n": 2, "_hoodie_is_deleted": None},
    ]


@pytest.mark.parametrize(
    ("never_null", "expected"), [((), [None]), (("_hoodie_is_deleted",), [False]), (("n",), [None])]
)
def test_a_missing_flag_that_must_not_be_null_is_false(never_null, expected):
    found = conform(pa.table({"id": ["a"]}), SCHEMA, never_null)
    assert found["_hoodie_is_deleted"].to_pylist() == expected
    assert found["n"].to_pylist() == [None]


def test_no_rows_stay_no_rows():
    assert conform(pa.table({"id": pa.array([], pa.string())}), SCHEMA) == SCHEMA.empty_table()
