"""Keys are found in rows that are in no table, and a row whose key cannot be told is counted apart."""

import pyarrow as pa
import pytest

from table.keys.search import KeyCount, count_keys, missing_key_columns

KEYS = pa.array(["7", "id:8,sub:b", "e"])
CASES = {
    "text": (["id"], {"id": ["e", "f", None, ""]}, KeyCount(1, 2)),
    "numbers, as the table spells them": (["id"], {"id": pa.array([7, 8], pa.int32())}, KeyCount(1, 0)),
    "a dictionary": (["id"], {"id": pa.array(["e", "x"]).dictionary_encode()}, KeyCount(1, 0)),
    "two columns": (["id", "sub"], {"id": ["8", "8"], "sub": ["b", "c"]}, KeyCount(1, 0)),
    "two columns, both empty": (["id", "sub"], {"id": [None, "8"], "sub": ["", "b"]}, KeyCount(1, 1)),
    "one of two columns": (["id", "sub"], {"id": ["8"]}, KeyCount(0, 1)),
    "a field of a struct": (["who.id"], {"who": [{"id": "e"}, {"id": "f"}, None]}, KeyCount(1, 1)),
    "a column within another": (["id"], {"payload": [{"id": "e"}]}, KeyCount(0, 1)),
    "a type that makes no key": (["id"], {"id": [["e"]]}, KeyCount(0, 1)),
    "no rows": (["id"], {"id": pa.array([], pa.string())}, KeyCount(0, 0)),
}


@pytest.mark.parametrize(("fields", "columns", "found"), CASES.values(), ids=CASES)
def test_rows_with_a_key_are_counted_and_those_whose_key_cannot_be_told(fields, columns, found):
    assert count_keys(pa.table(columns), fields, KEYS) == found


def test_hudis_complex_key_generator_names_a_single_field_in_some_versions():
    assert count_keys(pa.table({"id": ["7"]}), ["id"], pa.array(["id:7"])) == KeyCount(1, 0)


def test_columns_of_a_key_that_are_missing():
    rows = pa.table({"who": [{"id": "e"}], "a.b": ["x"]})
    assert missing_key_columns(rows, ["who.id", "a.b", "c", "d.e"]) == ("c", "d.e")
