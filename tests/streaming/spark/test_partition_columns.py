"""Which partition columns Spark may read from the names of folders."""

from dataclasses import replace

import pyarrow as pa
import pytest

from streaming.spark.partition_columns import are_told_by_folders, column_that_is_the_path
from table.config.table_config import TableConfig

HIVE = TableConfig("t", ("id",), ("day", "p"), hive_style=True)
SCHEMA = pa.schema([("id", pa.string()), ("day", pa.string()), ("p", pa.string()), ("n", pa.int64())])
WHOLE = "day=2026-01-02/p=a"


def test_names_of_folders_tell_columns_of_text():
    assert are_told_by_folders(HIVE, SCHEMA, [WHOLE, "day=x/p=__HIVE_DEFAULT_PARTITION__"])


@pytest.mark.parametrize(
    "path",
    ["2026-01-02/a", "day=2026-01-02", "day=a/b/p=a", "p=a/day=b", "day=a%3Ab/p=a", "day=/p=a", "day=\ufffd/p=a", ""],
)
def test_one_other_folder_is_enough_to_read_the_files(path):
    assert not are_told_by_folders(HIVE, SCHEMA, [WHOLE, path])


@pytest.mark.parametrize(
    "changed",
    [
        {"hive_style": False},
        {"keygen_type": "TIMESTAMP"},
        {"partition_fields": ()},
        {"partition_fields": ("day", "n")},
        {"partition_fields": ("day", "s.p")},
        {"partition_fields": ("day", "gone")},
    ],
)
def test_other_tables_are_read_from_their_files(changed):
    assert not are_told_by_folders(replace(HIVE, **changed), SCHEMA, ["day=a/n=1"])


def test_a_column_of_text_is_the_path_where_nothing_was_added_to_it():
    plain = replace(HIVE, partition_fields=("day",), hive_style=False)
    assert column_that_is_the_path(plain, SCHEMA, ["a", "b/c"]) == "day"
    for changed in (
        {"hive_style": True},
        {"url_encode": True},
        {"partition_fields": ("n",)},
        {"keygen_type": "CUSTOM"},
    ):
        assert column_that_is_the_path(replace(plain, **changed), SCHEMA, ["1"]) is None
    assert column_that_is_the_path(plain, SCHEMA, ["a", "__HIVE_DEFAULT_PARTITION__"]) is None
    assert column_that_is_the_path(HIVE, SCHEMA, [WHOLE]) is None
