"""The rows of one table out of a routed batch."""

from decimal import Decimal

import pyarrow as pa
import pytest

from streaming.router.table_rows import Columns, choose_columns
from table.errors import InvalidRecordError

SCHEMA = pa.schema([("n", pa.int64()), ("id", pa.int64()), ("a", pa.string())])


def taken(texts):
    batch = pa.RecordBatch.from_pydict({"n": list(range(len(texts))), "body": texts})
    return pa.Table.from_batches(Columns(SCHEMA, "body").take([batch])).to_pylist()


def test_each_text_is_the_row_beside_which_it_stands():
    found = taken(['{"id": 1, "a": "x"}', None, "", "  ", '{\n"id":\n2}\n', '{"id": 3, "z": 9}'])
    assert [(row["n"], row["id"]) for row in found] == [(0, 1), (1, None), (2, None), (3, None), (4, 2), (5, 3)]


@pytest.mark.parametrize(
    "text", ['{"id": 1} {"id": 2}', "[1]", "nonsense", '{"id": "x"}', '{"id": 1.5}', '{"id": ' + "9" * 30 + "}"]
)
def test_a_text_that_is_not_one_object_of_these_columns_is_refused_wherever_it_stands(text):
    # an empty text beside two objects in one must not shift rows
    for texts in ([text, " "], [" ", text], ['{"id": 7}', text, None]):
        with pytest.raises(InvalidRecordError, match="JSON text"):
            taken(texts)


def test_decimals_are_those_of_the_text_and_an_error_names_its_column():
    schema = pa.schema([("m", pa.decimal128(20, 2)), ("f", pa.float64())])

    def take(text):
        batch = pa.RecordBatch.from_pydict({"body": [text]})
        return pa.Table.from_batches(Columns(schema, "body").take([batch])).to_pylist()

    whole = Decimal("123456789012345678.91")
    assert take(f'{{"m": {whole}, "f": 0.1}}') == take(f'{{"m": "{whole}", "f": 0.1}}') == [{"m": whole, "f": 0.1}]
    with pytest.raises(InvalidRecordError, match="m as decimal"):
        take('{"m": "much"}')


@pytest.mark.parametrize("unfolded", [None, "s"])
def test_what_is_required_within_a_struct_is_null_where_the_struct_is(unfolded):
    inner = pa.struct([pa.field("n", pa.int32(), nullable=False)])
    arriving = pa.schema([("id", pa.string()), ("s", inner)])
    sent = pa.schema([("id", pa.string()), ("s", pa.struct([("n", pa.int32())]))])  # as Spark sends it
    batch = pa.RecordBatch.from_pylist([{"id": "a", "s": None}, {"id": "b", "s": {"n": 1}}], sent)
    names = frozenset(["id", (unfolded and "n") or "s"])
    (taken,) = choose_columns(arriving, unfolded, None, names, frozenset()).take([batch])
    name, values = ("n", [None, 1]) if unfolded else ("s", [None, {"n": 1}])
    assert taken.to_pydict() == {"id": ["a", "b"], name: values}


def test_the_marker_of_deletes_counts_for_a_table_whose_columns_are_named():
    arriving = pa.schema([("_hoodie_is_deleted", pa.bool_()), ("other", pa.int64()), ("body", pa.string())])
    batch = pa.RecordBatch.from_pylist([{"_hoodie_is_deleted": True, "other": 1, "body": '{"id": 7}'}], arriving)
    given = pa.schema([("id", pa.int64())])
    (taken,) = choose_columns(arriving, "body", given, frozenset(), frozenset()).take([batch])
    assert taken.to_pylist() == [{"id": 7, "_hoodie_is_deleted": True}]
