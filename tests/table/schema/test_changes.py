"""How a schema changed, in words."""

import pyarrow as pa
import pytest

from table.schema.changes import describe_changes

BEFORE = pa.schema([("id", pa.string()), ("n", pa.int32()), ("s", pa.struct([("a", pa.int64())]))])


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (BEFORE, ()),
        (pa.schema(list(BEFORE)[::-1]), ()),
        (pa.schema([field.with_nullable(False) for field in BEFORE]), ()),
        (BEFORE.append(pa.field("x", pa.date32())), ("column x added (date32[day])",)),
        (BEFORE.set(1, pa.field("n", pa.int64())), ("column n was int32, is int64",)),
        (BEFORE.remove(1), ("column n removed",)),
        (
            BEFORE.set(2, pa.field("s", pa.struct([("a", pa.float64()), ("b", pa.string())]))),
            ("column s.a was int64, is double", "column s.b added (string)"),
        ),
        (BEFORE.set(2, pa.field("s", pa.string())), (f"column s was {BEFORE.field(2).type}, is string",)),
    ],
)
def test_each_change_is_a_sentence(after, told):
    assert describe_changes(BEFORE, after) == told


def test_a_new_table_has_no_changes():
    assert describe_changes(None, BEFORE) == ()


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        (pa.list_(pa.field("item", pa.int64())), pa.list_(pa.field("element", pa.int64(), nullable=False)), True),
        (pa.list_(pa.int64()), pa.list_(pa.float64()), False),
        (pa.list_(pa.struct([("a", pa.int64())])), pa.list_(pa.struct([("a", pa.int64()), ("b", pa.int64())])), False),
        (pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.field("v", pa.int64())), True),
        (pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.string()), False),
    ],
)
def test_names_of_elements_do_not_matter(old, new, same):
    assert (describe_changes(pa.schema([("c", old)]), pa.schema([("c", new)])) == ()) is same
