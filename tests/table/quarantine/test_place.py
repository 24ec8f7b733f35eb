"""Names of the places of bad rows: writers and readers of another process and version find the same ones."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from table.errors import SchemaMismatchError
from table.quarantine.place import REPLAYS, STAGING, TOLD, staging_folder, table_key, table_keys
from table.schema.avro_schema import check_batch_columns

ADDRESSES = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@pytest.mark.parametrize(
    ("base_uri", "name", "key"),
    [
        ("s3a://bucket/lake/t", "t", "t-27e164f3"),
        ("/lake/\u00fc", "t", "t-39c16e67"),
        ("/lake/6", "u", "u-0060d3ea"),
    ],
)
def test_the_key_of_a_table_is_its_name_and_eight_digits_that_no_version_changes(base_uri, name, key):
    assert table_key(base_uri, name) == key


def test_a_table_has_a_key_for_each_scheme_of_its_store():
    keys = table_keys("s3a://bucket/lake/t", "t")
    assert keys[0] == table_key("s3a://bucket/lake/t", "t")
    assert sorted(keys) == sorted(table_keys("s3://bucket/lake/t", "t"))
    assert len(keys) == 3
    assert table_keys("/lake/t", "t") == [table_key("/lake/t", "t")]


@given(ADDRESSES, st.text("ab_", min_size=1, max_size=5))
@settings(deadline=None)
def test_a_key_has_the_tables_name_and_always_eight_digits(base_uri, name):
    key = table_key(base_uri, name)
    assert key.startswith(f"{name}-")
    assert len(key) == len(name) + 9


@pytest.mark.parametrize(
    ("base_uri", "fits"), [("/lake/long", True), ("s3a://lake/long", False)], ids=["a disk", "a store without a limit"]
)
def test_the_key_of_a_long_name_is_a_folder_where_names_have_an_end(base_uri, fits):
    keys = {table_key(base_uri, "ü" * 126 + ending) for ending in "ab"}
    assert len(keys) == 2
    assert all((len(key.encode()) <= 255) is fits for key in keys)


def test_tables_of_one_name_that_share_a_folder_have_keys_of_their_own():
    assert len({table_key(f"/lake/{folder}/t", "t") for folder in "abc"}) == 3


def test_a_commit_has_a_staging_folder_of_its_own_within_that_of_its_table():
    assert staging_folder("t-1", "20260101000000001") == "_staging/t-1/20260101000000001"
    assert staging_folder("t-1", "20260101000000001").startswith(f"{STAGING}/t-1/")


@pytest.mark.parametrize("folder", [STAGING, REPLAYS])
def test_spark_passes_over_what_is_not_published(folder):
    assert folder[0] in "_."


@pytest.mark.parametrize("name", TOLD)
def test_no_table_can_have_a_column_that_tells_of_a_bad_row(name):
    with pytest.raises(SchemaMismatchError, match=f"the batch has the column '{name}', a name that"):
        check_batch_columns(pa.schema([("id", pa.string()), (name, pa.string())]))
