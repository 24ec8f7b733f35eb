"""Meta columns with few values: dictionaries in memory, one string for all rows, a new file name for carried rows."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parquet_bytes import metadata_of, parquet_of, rows_of_file

from table.files.base.repeated_columns import constant_column, file_schema, restamp_carried_rows
from table.schema.avro_schema import FILE_NAME, with_meta_columns

PLACES = pa.dictionary(pa.int32(), pa.string())
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)


def test_commit_time_partition_path_and_file_name_are_dictionaries_and_all_other_columns_stay():
    columns = [pa.field("id", pa.string(), nullable=False), pa.field("l", pa.list_(pa.string()))]
    found = file_schema(with_meta_columns(pa.schema(columns)))
    assert {field.name: field.type for field in found} == {
        "_hoodie_commit_time": PLACES,
        "_hoodie_commit_seqno": pa.string(),
        "_hoodie_record_key": pa.string(),
        "_hoodie_partition_path": PLACES,
        "_hoodie_file_name": PLACES,
        "id": pa.string(),
        "l": pa.list_(pa.string()),
    }
    assert list(found)[5:] == columns


@pytest.mark.parametrize("nullable", [True, False])
def test_a_column_that_becomes_a_dictionary_may_be_null_as_before(nullable):
    assert file_schema(pa.schema([pa.field(FILE_NAME, pa.string(), nullable)])).field(0).nullable is nullable


@given(NAMES, st.integers(0, 300))
@settings(deadline=None)
def test_a_constant_column_is_its_string_many_times_held_once(text, length):
    column = constant_column(text, length)
    column.validate(full=True)
    assert column.type == file_schema(pa.schema([(FILE_NAME, pa.string())])).field(0).type
    assert column.to_pylist() == [text] * length
    assert column.dictionary.to_pylist() == [text]


def test_a_file_holds_a_constant_column_once_and_reads_as_its_strings():
    column = constant_column("f" * 1000, 5000)
    file = parquet_of(pa.table({"c": column}), store_schema=False, compression="none", write_statistics=False)
    assert rows_of_file(file).column("c").to_pylist() == ["f" * 1000] * 5000
    assert metadata_of(file).row_group(0).column(0).total_uncompressed_size < 2 * 1000


@given(st.lists(st.sampled_from(["old", "older", None]), max_size=9), st.integers(0, 3), st.integers(0, 9), NAMES)
@settings(deadline=None)
def test_carried_rows_name_the_new_file_and_no_other_column_changes(old, place, cut, name):
    columns = [("n", pa.array(range(len(old)), pa.int64())), ("t", pa.array(["t"] * len(old))), ("d", pa.array(old))]
    columns.insert(place, (FILE_NAME, pa.array(old, pa.string()).cast(PLACES)))
    rows = pa.table(dict(columns))
    rows = pa.concat_tables([rows.slice(0, cut), rows.slice(cut)])
    found = restamp_carried_rows(rows, name)
    assert found.schema == rows.schema
    assert found.column(FILE_NAME).to_pylist() == [name] * len(old)
    assert found.drop_columns(FILE_NAME) == rows.drop_columns(FILE_NAME)
