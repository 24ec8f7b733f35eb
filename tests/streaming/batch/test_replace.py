"""Overwrites and deleted partitions: replace commits, as Hudi's readers and writers understand them."""

import os
import shutil

import pyarrow as pa
import pytest
from engine import OPTIONS, Engine, key_set, rows
from faults import FaultyStorage, Fuse, PowerCut
from oracles import hudi_rs
from snapshots import assert_clean, contents
from values import tuples

from streaming.arrow_sink import write_hudi
from streaming.plan.replacement import existing_paths, matching_paths
from table import InvalidConfigError, clean, read_table
from table.hudi_table import HudiTable
from table.options.groups import CleanSettings
from table.storage.local import LocalStorage
from table.timeline.instant import Action

OPERATION = "hoodie.datasource.write.operation"


def engine(path, operation, fuse=None, **options):
    storage = FaultyStorage(LocalStorage(str(path)), fuse) if fuse is not None else LocalStorage(str(path))
    return Engine(storage, {OPERATION: operation, **options})


@pytest.mark.parametrize(
    ("wanted", "found"),
    [(["b"], ("b",)), (["d=*"], ("d=1", "d=2")), (["*"], ("b", "d=1", "d=2")), (["b", "b*"], ("b",))],
)
def test_paths_by_name_and_pattern(wanted, found):
    assert matching_paths(wanted, ["b", "d=1", "d=2"]) == found


def test_a_path_that_is_not_there_is_named():
    with pytest.raises(InvalidConfigError, match=r"no partition path 'x\*'; among those it has are: b"):
        matching_paths(["x*"], ["b"])


def test_an_overwrite_replaces_the_partition_paths_it_comes_for(tmp_path):
    engine(tmp_path / "t", "insert").write(0, rows(range(30)))
    new = rows(range(100, 105), lambda _: "p1", v="new")
    engine(tmp_path / "t", "insert_overwrite").write(None, new)
    assert contents(tmp_path / "t") == sorted(tuples(rows([n for n in range(30) if n % 3 != 1])) + tuples(new))
    instant = HudiTable.open(tmp_path / "t").load_timeline().completed_writes[-1]
    assert instant.action is Action.REPLACE_COMMIT
    # the stream goes on, and joins no file that is out of sight
    engine(tmp_path / "t", "insert").write(1, rows(range(200, 230)))
    assert len(contents(tmp_path / "t")) == 55


def test_an_overwritten_table_holds_what_came_and_nothing_else(tmp_path):
    engine(tmp_path / "t", "insert").write(0, rows(range(30)))
    new = rows(range(5), lambda _: "p9", v="new")
    engine(tmp_path / "t", "insert_overwrite_table").write(None, new)
    assert contents(tmp_path / "t") == sorted(tuples(new))


def test_partitions_are_deleted_by_their_rows_or_by_name(tmp_path):
    engine(tmp_path / "t", "insert").write(0, rows(range(30)))
    engine(tmp_path / "t", "delete_partition").write(None, rows([1]).select(["id", "p"]))
    assert {row[1] for row in contents(tmp_path / "t")} == {"p0", "p2"}
    named = engine(tmp_path / "t", "delete_partition", **{"hoodie.datasource.write.partitions.to.delete": "p2"})
    named.write(None, rows([0]))
    assert {row[1] for row in contents(tmp_path / "t")} == {"p0"}


def test_rows_name_no_partition_path_of_a_table_without_partitions(tmp_path):
    write_hudi(tmp_path / "t", rows(range(9)), key="id")
    with pytest.raises(InvalidConfigError, match="no partition columns"):
        write_hudi(tmp_path / "t", rows([1]), key="id", operation="delete_partition")
    assert read_table(tmp_path / "t").num_rows == 9
    everything = {"hoodie.datasource.write.partitions.to.delete": "*"}
    write_hudi(tmp_path / "t", rows([1]), key="id", operation="delete_partition", options=everything)
    assert read_table(tmp_path / "t").num_rows == 0


def test_replaced_files_are_cleaned_in_their_time(tmp_path):
    engine(tmp_path / "t", "insert").write(0, rows(range(30)))
    engine(tmp_path / "t", "insert_overwrite_table").write(None, rows(range(3)))
    for number in range(1, 4):
        engine(tmp_path / "t", "insert").write(number, rows([1000 + number]))
    before = contents(tmp_path / "t")
    clean(HudiTable.open(tmp_path / "t"), CleanSettings(commits_retained=1, grace_ms=0))
    left = [name for _, _, names in os.walk(tmp_path / "t") for name in names if name.endswith(".parquet")]
    replaced = HudiTable.open(tmp_path / "t").load_timeline().completed_of(Action.COMMIT)[0].time
    assert not any(replaced in name for name in left)
    assert contents(tmp_path / "t") == before


@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.slow)], ids=["some calls", "every call"])
@pytest.mark.parametrize(
    ("operation", "after", "block"),
    [
        ("upsert", False, ""),
        ("upsert", True, ""),
        ("upsert", False, "1000"),  # row groups are patched
        ("upsert", True, "1000"),
        ("delete", False, ""),
        ("insert_overwrite", False, ""),
        ("insert_overwrite", True, ""),
        ("insert_overwrite_table", False, ""),
        ("delete_partition", False, ""),
    ],
)
def test_a_change_stopped_at_a_call_is_whole_or_absent(tmp_path, operation, after, block, step):
    options = {"hoodie.parquet.block.size": block} if block else {}
    change = rows([*range(0, 20, 2), 100], lambda number: f"p{number % 2}", ts=5, v="new")
    if operation == "delete_partition":
        change = change.slice(0, 1)
    replayed = 1 if operation in ("upsert", "delete") else None
    prepared = tmp_path / "prepared"
    engine(prepared, "insert", **options).write(0, rows(range(20), lambda number: f"p{number % 2}"))
    before = contents(prepared)
    counted = Fuse()
    shutil.copytree(prepared, tmp_path / "count")
    counting = engine(tmp_path / "count", operation, counted, **options)
    summary = counting.write(replayed, change)
    assert (summary.bytes_copied > 0) == bool(block)
    wanted = contents(tmp_path / "count")
    assert wanted != before
    for number in range(1, len(counted.calls) + 1, step):
        path = tmp_path / str(number)
        shutil.copytree(prepared, path)
        with pytest.raises(PowerCut):
            engine(path, operation, Fuse(number, after), **options).write(replayed, change)
        seen = contents(path)
        assert seen in (before, wanted), f"call {number}: a reader sees part of the change"
        if replayed is not None or seen == before:
            engine(path, operation, **options).write(replayed, change)
        assert contents(path) == wanted, f"call {number}: the replay does not give exactly the rows"
        engine(path, "insert").write(2, rows([500], lambda _: "other"))
        assert contents(path) == sorted([*wanted, ("k500", "other", 0, "v")])
        assert_clean(str(path))


@pytest.mark.slow
@pytest.mark.hudi
def test_hudi_reads_our_replacements_and_goes_on(hudi, tmp_path):
    path = str(tmp_path / "t")

    def agree():
        ours = contents(path)
        for theirs in (hudi.read(path), pa.Table.from_batches(hudi_rs.read(path).to_batches()).to_pylist()):
            assert sorted(tuple(row[name] for name in ("id", "p", "ts", "v")) for row in theirs) == ours

    engine(path, "insert").write(0, rows(range(30)))
    engine(path, "insert_overwrite").write(None, rows(range(100, 105), lambda _: "p1"))
    agree()
    engine(path, "delete_partition").write(None, rows([2]))
    agree()
    theirs = {key: value for key, value in OPTIONS.items() if key.startswith("hoodie.datasource") or "name" in key}
    hudi.write(path, rows(range(9), ts=9, v="hudi"), {**theirs, OPERATION: "upsert", "hoodie.index.type": "BLOOM"})
    agree()
    hudi.write(path, rows(range(300, 303), lambda _: "p0"), {**theirs, OPERATION: "insert_overwrite"})
    agree()
    engine(path, "upsert").write(7, rows(range(300, 310), lambda _: "p0", ts=10, v="ours"))
    agree()
    engine(path, "insert_overwrite_table").write(None, rows(range(3)))
    agree()
    assert len(contents(path)) == 3


def test_characters_of_other_patterns_mean_themselves():
    assert matching_paths(["a?*"], ["a?1", "ab1"]) == ("a?1",)
    assert matching_paths(["[ab]*"], ["a", "[ab]c"]) == ("[ab]c",)


def test_the_partition_path_of_a_row_is_no_pattern():
    assert existing_paths(["*", "*"], ["*", "a", "b"]) == ("*",)
    assert existing_paths(["a*"], ["a*", "ab"]) == ("a*",)
    with pytest.raises(InvalidConfigError, match=r"no partition path 'a\*'"):
        existing_paths(["a*"], ["ab"])


@pytest.mark.parametrize("value", ["*", "a*"])
def test_rows_delete_their_own_partition_path_alone(tmp_path, value):
    path = str(tmp_path / "t")
    engine = Engine(path)
    engine.write(0, rows(range(4), lambda number: [value, "ab", "ac", "b"][number]))
    delete = Engine(path, {"hoodie.datasource.write.operation": "delete_partition"})
    engine.writer.stop()
    delete.write(1, rows([0], lambda _: value))
    assert key_set(read_table(path)) == ["k1", "k2", "k3"]
    delete.writer.stop()
