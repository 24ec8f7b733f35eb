"""Blocks of partial updates (IS_PARTIAL): what a record lacks stays as it was."""

import random

import pytest
from log_files import SCHEMA, data_block, delete_block, partial_block, read, record, shown, write_base, write_log

from table import CorruptFileError, UnsupportedTableError
from table.config.merge_mode import MergeMode
from table.files.log.framing import BlockType, Header, LogBlock
from table.records.merge import MergeRules

KINDS = (BlockType.AVRO_DATA, BlockType.PARQUET_DATA)
COMMIT_TIME = MergeRules(MergeMode.COMMIT_TIME, orders_deletes=True)
MEMORY = (1 << 27, 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("memory_bytes", MEMORY)
def test_what_a_record_lacks_is_that_of_the_base_file(tmp_path, kind, memory_bytes):
    write_base(tmp_path, [record(key, 5, "base", 0.5) for key in "abcd"])
    write_log(tmp_path, 1, [partial_block("2", [record("a", 6, "new"), record("b", 4, "late")], ["ts", "v"], kind)])
    write_log(tmp_path, 2, [partial_block("3", [record("c", 6, None, 1.5)], ["ts", "w"], kind)])
    rows = read(tmp_path, ("1", "2", "3"), memory_bytes=memory_bytes)
    assert shown(rows) == [("a", 6, "new", 0.5), ("b", 5, "base", 0.5), ("c", 6, "base", 1.5), ("d", 5, "base", 0.5)]
    [row] = [row for row in rows if row["id"] == "a"]
    assert row["_hoodie_commit_time"] == "2"


def test_a_null_in_a_column_that_the_record_has_is_a_null(tmp_path):
    write_base(tmp_path, [record("a", 5, "base", 0.5)])
    write_log(tmp_path, 1, [partial_block("2", [record("a", 6, None)], ["ts", "v"])])
    assert shown(read(tmp_path, ("1", "2"))) == [("a", 6, None, 0.5)]


def test_records_of_several_blocks_add_up_before_they_meet_the_base_file(tmp_path):
    write_base(tmp_path, [record(key, 5, "base", 0.5) for key in "abc"])
    write_log(tmp_path, 1, [partial_block("2", [record(key, 6, "v2") for key in "abc"], ["ts", "v"])])
    write_log(tmp_path, 2, [partial_block("3", [record("a", 7, None, 3.5), record("b", 5, None, 3.5)], ["ts", "w"])])
    write_log(tmp_path, 3, [data_block("4", [record("c", 8, "whole")])])
    rows = read(tmp_path, ("1", "2", "3", "4"))
    assert shown(rows) == [("a", 7, "v2", 3.5), ("b", 6, "v2", 3.5), ("c", 8, "whole", None)]
    # the columns that are asked for may be none of those that a record has
    assert [row["w"] for row in read(tmp_path, ("1", "2"), columns=["w"])] == [0.5] * 3


def test_where_arrival_decides_no_order_is_looked_at(tmp_path):
    write_base(tmp_path, [record("a", 5, "base", 0.5)])
    write_log(tmp_path, 1, [partial_block("2", [record("a", 0, "v2")], ["v"])])
    write_log(tmp_path, 2, [partial_block("3", [record("a", 1, None, 3.5)], ["ts", "w"])])
    assert shown(read(tmp_path, ("1", "2", "3"), rules=COMMIT_TIME)) == [("a", 1, "v2", 3.5)]


def test_a_deleted_record_lends_nothing(tmp_path):
    write_log(tmp_path, 1, [data_block("1", [record("a", 5, "old", 0.5)]), delete_block("1", [("a", 6)])])
    write_log(tmp_path, 2, [partial_block("2", [record("a", 7, "new")], ["id", "ts", "v"])])
    assert shown(read(tmp_path, ("1", "2"))) == [("a", 7, "new", None)]


def test_what_cannot_be_merged_is_refused(tmp_path):
    write_base(tmp_path, [record("a", 5, "base")])
    block = partial_block("2", [record("a", 6, "new")], ["ts", "v"])
    write_log(tmp_path, 1, [block])
    fills = MergeRules(MergeMode.PARTIAL_UPDATE, ("ts",), orders_deletes=True)
    with pytest.raises(UnsupportedTableError, match=r"\.log\.1.*IS_PARTIAL.*fills nulls, too"):
        read(tmp_path, ("1", "2"), rules=fills)
    write_log(tmp_path, 1, [partial_block("2", [record("a", 6, "new")], ["v"])])
    with pytest.raises(UnsupportedTableError, match=r"\.log\.1.*IS_PARTIAL.*lack the ordering field 'ts'"):
        read(tmp_path, ("1", "2"))
    header = {name: text for name, text in block.header.items() if name != Header.SCHEMA}
    write_log(tmp_path, 1, [LogBlock(block.type, header, block.content)])
    with pytest.raises(CorruptFileError, match=r"\.log\.1.*partial updates"):
        read(tmp_path, ("1", "2"))


def later(old, new):
    """The two records of a key in their order of arrival, as one: who has the greater order has the say."""
    first, second = (old, new) if new["ts"] >= old["ts"] else (new, old)
    return first | second


@pytest.mark.parametrize("memory_bytes", MEMORY)
def test_random_blocks_are_merged_with_each_other_and_then_with_the_base_file(tmp_path, memory_bytes):
    rng = random.Random(memory_bytes)
    base = [record(f"k{n}", rng.randint(0, 9), f"base{n}", n / 2) for n in range(40)]
    write_base(tmp_path, base)
    expected = {row["id"]: {name: row[name] for name in ("ts", "v", "w")} for row in base}
    logged = {}
    for number in range(2, 8):
        names = ["ts", *rng.sample(["v", "w"], rng.randint(0, 2))]
        keys = rng.sample(sorted(expected), 20)
        records = [record(key, rng.randint(0, 12), rng.choice([None, f"v{number}"]), number / 4) for key in keys]
        write_log(tmp_path, number, [partial_block(str(number), records, names)])
        for one in records:
            part = {name: one[name] for name in names}
            logged[one["id"]] = later(logged[one["id"]], part) if one["id"] in logged else part
    for key, part in logged.items():
        expected[key] = later(expected[key], part)
    rows = read(tmp_path, [*"1234567"], memory_bytes=memory_bytes)
    assert shown(rows) == sorted((key, row["ts"], row["v"], row["w"]) for key, row in expected.items())
    assert {name for row in rows for name in row} == set(SCHEMA.names)
