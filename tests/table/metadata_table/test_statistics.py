"""Which statistics a table keeps, and what an action adds to them."""

from dataclasses import replace

import pyarrow as pa
import pytest

from table.config.metadata_indexes import COLUMN_STATS, PARTITION_STATS
from table.config.table_config import TableConfig
from table.errors import UnsupportedTableError
from table.files.column_ranges import ColumnRange
from table.metadata_table.column_stats import StatsCodec
from table.metadata_table.index_keys import group_of_key, stats_key
from table.metadata_table.record_codec import schema_of
from table.metadata_table.statistics import (
    Statistics,
    agree_columns,
    find_untold,
    indexed_columns,
    new_statistics,
    ranged_columns,
)

pytestmark = pytest.mark.pure

META = ["_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key"]
SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int32()), ("l", pa.list_(pa.int32())), ("p", pa.string())])
KEPT = Statistics((*META, "id", "n", "p"), is_typed=False, of_partitions=True)


def test_the_meta_columns_and_the_first_32_that_can_be_are_taken():
    assert list(indexed_columns(SCHEMA, is_typed=False)) == [*META, "id", "n", "p"]
    wide = pa.schema([("l", pa.list_(pa.int32())), *((f"c{n}", pa.int64()) for n in range(40))])
    assert list(indexed_columns(wide, is_typed=True)) == [*META, *(f"c{n}" for n in range(32))]


def test_decimals_of_many_digits_have_statistics_in_version_2():
    schema = pa.schema([("c", pa.decimal128(38, 18))])
    assert "c" in indexed_columns(schema, is_typed=True)
    assert "c" not in indexed_columns(schema, is_typed=False)


def config(**changes):
    whole = TableConfig(name="t", table_type="COPY_ON_WRITE", record_key_fields=("id",), partition_fields=("p",))
    return replace(whole, **changes)


def test_a_write_tells_ranges_only_where_statistics_are_kept():
    assert ranged_columns(config(metadata_partitions="files"), SCHEMA) == ()
    assert ranged_columns(config(metadata_partitions="column_stats,files"), SCHEMA) == (*META, "id", "n", "p")
    virtual = config(metadata_partitions="column_stats,files", populate_meta_fields=False)
    assert ranged_columns(virtual, SCHEMA) == ()


def test_a_column_that_a_commit_adds_gets_statistics():
    added = SCHEMA.append(pa.field("new", pa.int64()))
    assert list(agree_columns(KEPT, SCHEMA, None)) == list(KEPT.columns)
    assert list(agree_columns(KEPT, added, SCHEMA)) == [*KEPT.columns, "new"]


@pytest.mark.parametrize(
    ("kept", "schema", "before", "match"),
    [
        (replace(KEPT, columns=KEPT.columns[:-1]), SCHEMA, None, "of chosen columns are not maintained: p"),
        (replace(KEPT, columns=(*KEPT.columns, "q")), SCHEMA, SCHEMA, "of chosen columns are not maintained: q"),
        # a caller that gives no columns of before says that they were the same
        (KEPT, SCHEMA.append(pa.field("new", pa.int64())), None, "not maintained: new"),
        (KEPT, SCHEMA.set(1, pa.field("n", pa.int64())), SCHEMA, "changes the type of n"),
        (KEPT, SCHEMA.remove(1), SCHEMA, "changes the type of n, or leaves it out"),
    ],
)
def test_other_changes_end_the_statistics(kept, schema, before, match):
    with pytest.raises(UnsupportedTableError, match=match):
        agree_columns(kept, schema, before)


def ranges(least, greatest, values=2):
    return {"id": ColumnRange("a", "b", values, 0), "n": ColumnRange(least, greatest, values, 0)}


KINDS = {"id": pa.string(), "n": pa.int32()}


def decoded(records):
    codec = StatsCodec(KINDS, 8, is_typed=False)
    return {key: codec.decode(value, schema_of(8)) for key, value in records.items()}


def test_a_commit_adds_a_record_for_each_file_and_column_and_widens_those_of_its_paths():
    told = {"p0": {"f1": ranges(1, 5), "f2": ranges(-3, 2)}, "": {"f3": ranges(7, 7)}}
    new = new_statistics(KEPT, 8, KINDS, told, {})
    of_files = decoded(new.of_files)
    assert len(of_files) == 6
    assert of_files[stats_key("n", "p0", "f2")].range.least == -3
    of_paths = decoded(new.of_partitions)
    both = of_paths[stats_key("n", "p0")]
    assert (both.name, both.range.least, both.range.greatest) == ("p0", -3, 5)
    assert (both.range.values, both.range.nulls) == (5, 1)  # rows of earlier files may lack the column
    assert not both.is_tight
    assert of_paths[stats_key("n", "")].name == "."
    assert not new.deleted
    assert not new_statistics(replace(KEPT, of_partitions=False), 8, KINDS, told, {}).of_partitions


def test_a_log_file_of_deletes_alone_widens_nothing():
    empty = {"id": ColumnRange(None, None, 0, 0), "n": ColumnRange(None, None, 0, 0)}
    new = new_statistics(KEPT, 8, KINDS, {"p": {"log": empty}}, {})
    assert len(new.of_files) == 2
    assert not new.of_partitions


def test_records_go_to_the_groups_of_their_keys_in_order():
    told = {"p": {f"f{n}": ranges(n, n) for n in range(9)}}
    groups = new_statistics(KEPT, 8, KINDS, told, {"p": ["old1", "old2"]}).by_group(
        {COLUMN_STATS: 2, PARTITION_STATS: 3}
    )
    assert {index for index, _ in groups} == {COLUMN_STATS, PARTITION_STATS}
    for (index, number), records in groups.items():
        keys = [key.decode() for key, _ in records.added]
        assert keys == sorted(keys)
        count = 2 if index == COLUMN_STATS else 3
        assert {group_of_key(key, count) for key in (*keys, *records.deleted.to_pylist())} == {number}
    gone = [key for records in groups.values() for key in records.deleted.to_pylist()]
    assert sorted(gone) == sorted(stats_key(column, "p", name) for column in KINDS for name in ("old1", "old2"))
    assert sum(map(len, groups.values())) == 18 + 4 + 2


def test_files_without_all_ranges_are_found():
    added = {"p": {"f1": 10, "f2": 20}, "q": {"f3": 30}}
    told = {"p": {"f1": ranges(1, 2), "f2": {"id": ColumnRange("a", "a", 1, 0)}}}
    assert find_untold(added, told, KINDS) == {"p": {"f2": 20}, "q": {"f3": 30}}
    assert find_untold(added, told, []) == {}
