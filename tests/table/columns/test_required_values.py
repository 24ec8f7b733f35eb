"""Parts of nested columns in which a schema allows no null."""

import pyarrow as pa
import pytest

from table.columns.required_values import find_nulls, required_columns

DEEP = pa.list_(pa.field("element", pa.struct([pa.field("x", pa.int64(), nullable=False)])))
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("a.b", pa.int64()),
        ("s", pa.struct([pa.field("a", pa.int64(), nullable=False), ("b", pa.string())])),
        ("l", pa.list_(pa.field("element", pa.int32(), nullable=False))),
        ("m", pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False))),
        ("deep", DEEP),
    ]
)


def test_required_parts_are_named_by_their_paths():
    assert required_columns(SCHEMA) == ("id", "s.a", "l.element", "m.value", "deep.element.x")


@pytest.mark.parametrize(("name", "kind", "values", "bad"), [
    ("id", pa.string(), ["a", None], [1]),
    ("s.a", SCHEMA.field("s").type, [{"a": 1}, {"a": None}, None, {"a": None, "b": "x"}], [1, 3]),
    ("l.element", SCHEMA.field("l").type, [[1], [], None, [1, None, 2], [None]], [3, 4]),
    ("m.value", SCHEMA.field("m").type, [[("k", "v")], None, [("k", None)], []], [2]),
    ("deep.element.x", DEEP, [[{"x": 1}], [None], [{"x": 2}, {"x": None}], None], [2]),
    ("gone.x", pa.string(), ["a"], []),
])  # fmt: skip
@pytest.mark.parametrize("behind", [0, 2])
def test_rows_with_a_null_there_are_found(name, kind, values, bad, behind):
    column = name.partition(".")[0] if name != "gone.x" else "other"
    loose = pa.array([*values[:1] * behind, *values], kind, from_pandas=False) if behind else pa.array(values, kind)
    rows = pa.table({column: loose.slice(behind)})  # a slice begins within its buffers
    assert find_nulls(rows, name).nonzero()[0].tolist() == bad


def test_a_column_whose_name_has_a_dot_comes_first():
    rows = pa.table({"s.a": pa.array([None, 1]), "s": pa.array([{"a": 1}, {"a": None}])})
    assert find_nulls(rows, "s.a").tolist() == [True, False]
