"""The rows of one table out of a routed batch."""

import pyarrow as pa
import pytest

from streaming.router.table_rows import Columns
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
