"""Columns that are added to the rows of a batch: their order, and that no column of a table has their names."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.plan.columns import TASK_COLUMN, arriving_schema, tagged_schema
from table.errors import SchemaMismatchError
from table.schema.avro_schema import check_batch_columns

COLUMNS = pa.schema([("id", pa.string()), ("n", pa.int64())])
ROUTE = ["_hoodie_record_key", "_hoodie_partition_path", "_hudistream_slot"]
TAG = ["_hudistream_file", "_hudistream_removes", "_hudistream_lookup", "_hudistream_problem"]
TYPES = [pa.string(), pa.int32(), pa.decimal128(9, 2), pa.list_(pa.field("element", pa.int64(), nullable=False))]
TABLES = st.lists(st.tuples(st.sampled_from(TYPES), st.booleans()), max_size=5).map(
    lambda kinds: pa.schema([pa.field(f"c{number}", *kind) for number, kind in enumerate(kinds)])
)


@pytest.mark.parametrize(("numbered", "number"), [(False, []), (True, ["_hudistream_arrival"])])
def test_after_the_first_exchange_key_path_and_slot_come_behind_the_tables_columns(numbered, number):
    assert arriving_schema(COLUMNS, numbered=numbered).names == ["id", "n", *ROUTE, *number]


def test_after_the_second_exchange_the_tag_comes_last_and_no_row_has_an_arrival_number():
    assert tagged_schema(COLUMNS).names == ["id", "n", *ROUTE, *TAG]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_hoodie_record_key", pa.string()),
        ("_hoodie_partition_path", pa.string()),
        ("_hudistream_slot", pa.int32()),
        ("_hudistream_file", pa.string()),
        ("_hudistream_removes", pa.bool_()),
        ("_hudistream_lookup", pa.string()),
        ("_hudistream_problem", pa.string()),
    ],
)
def test_each_added_column_has_its_type_and_may_be_null(name, kind):
    assert tagged_schema(COLUMNS).field(name) == pa.field(name, kind)


def test_arrival_numbers_are_longs():
    assert arriving_schema(COLUMNS, numbered=True).field("_hudistream_arrival").type == pa.int64()


@given(TABLES, st.booleans())
@settings(deadline=None)
def test_the_tables_own_columns_stay_as_they_are_and_in_front(columns, numbered):
    for schema in (arriving_schema(columns, numbered=numbered), tagged_schema(columns)):
        assert pa.schema(list(schema)[: len(columns)]) == columns
        assert len(set(schema.names)) == len(schema)


@pytest.mark.parametrize("name", [*ROUTE, *TAG, "_hudistream_arrival", TASK_COLUMN])
def test_a_batch_that_has_a_column_of_such_a_name_is_refused(name):
    assert name in {*arriving_schema(COLUMNS, numbered=True).names, *tagged_schema(COLUMNS).names, TASK_COLUMN}
    with pytest.raises(SchemaMismatchError, match=f"the batch has the column '{name}', a name that"):
        check_batch_columns(pa.schema([("id", pa.string()), (name, pa.string())]))
