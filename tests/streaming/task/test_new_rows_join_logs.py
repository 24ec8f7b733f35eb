"""New rows join the log files of small slices, as Flink's writer packs them (DeltaWriteProfile)."""

import random

import pytest
from engine import Engine, form_of, rows
from record_index import assert_record_index_is_right
from snapshots import contents
from tiers import quick

from table import InvalidConfigError
from table.hudi_table import HudiTable
from table.options.groups import CompactionSettings
from table.services.compaction.compaction import compact, request_compaction
from table.snapshot import Snapshot

PACKED = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.compaction.async.enable": "false",
    "hudistream.new.rows.join.logs": "true",
}
OPERATION = "hoodie.datasource.write.operation"


def sink(path, version, **more):
    return Engine(path, {**form_of(version, "MERGE_ON_READ"), **PACKED, **more})


def groups_of(path):
    """Partition path -> for each of its file groups whether it has a base file, and how many log files."""
    snapshot = Snapshot.load(HudiTable.open(path))
    return {
        partition: [(found.merged_slice.base_file is not None, len(found.merged_slice.log_files)) for found in groups]
        for partition, groups in snapshot.walk_file_groups()
    }


def in_each(group):
    return {path: [group] for path in ("p0", "p1", "p2")}


@pytest.mark.parametrize("version", [6, 8, 9])
def test_batches_of_new_rows_open_no_file_groups(tmp_path, version):
    path = str(tmp_path / "t")
    for number in range(4):
        summary = sink(path, version).write(number, rows(range(number * 9, number * 9 + 9), ts=number))
        assert (summary.rows, summary.rows_updated) == (9, 0)
    assert groups_of(path) == in_each((True, 3))
    assert {row[0] for row in contents(path)} == {f"k{number}" for number in range(36)}
    assert_record_index_is_right(path)
    compact(HudiTable.open(path))
    assert groups_of(path) == in_each((True, 0))
    assert len(contents(path)) == 36


def test_without_the_option_each_batch_of_new_rows_opens_some(tmp_path):
    path = str(tmp_path / "t")
    sink(path, 8).write(0, rows(range(9)))
    sink(path, 8).write(1, rows(range(9, 18)))
    sink(path, 8, **{"hudistream.new.rows.join.logs": "false"}).write(2, rows(range(18, 27)))
    assert all(len(found) == 2 for found in groups_of(path).values())


def test_a_slice_that_is_pending_compaction_takes_rows_too(tmp_path):
    path = str(tmp_path / "t")
    sink(path, 8).write(0, rows(range(9), ts=0))
    sink(path, 8).write(1, rows(range(9), ts=1))
    assert request_compaction(HudiTable.open(path), CompactionSettings())
    sink(path, 8).write(2, rows(range(5, 18), ts=2))
    assert all(len(found) == 1 for found in groups_of(path).values())
    compact(HudiTable.open(path), schedules=False)
    sink(path, 8).write(3, rows(range(12, 20), ts=3))
    assert len(contents(path)) == len({row[0] for row in contents(path)}) == 20
    assert_record_index_is_right(path)


def test_a_slice_is_full_by_its_base_file_and_a_part_of_its_log_files(tmp_path):
    """A byte of log files counts as a third of a byte, and the limit is that of a full file, and not of a small one."""
    path = str(tmp_path / "t")
    first = sink(path, 8)
    first.write(0, rows(range(300), lambda _: "p", ts=0))
    snapshot = Snapshot.load(HudiTable.open(path))
    [(_, [group])] = list(snapshot.walk_file_groups())
    size = group.latest_base_file.size_bytes
    grown = {"hoodie.parquet.max.file.size": str(size + 300), "hoodie.parquet.small.file.limit": "1"}
    counted = {"hoodie.logfile.to.parquet.compression.ratio": "0.001"}
    for number in range(1, 3):  # log files that take no room
        sink(path, 8, **grown, **counted).write(number, rows([300 + number], lambda _: "p", ts=number))
    assert groups_of(path) == {"p": [(True, 2)]}
    sink(path, 8, **grown, **{"hoodie.logfile.to.parquet.compression.ratio": "1"}).write(
        3, rows([400], lambda _: "p", ts=3)
    )
    assert sorted(groups_of(path)["p"]) == [(True, 0), (True, 2)]


def test_rows_that_do_not_fit_into_memory_join_logs(tmp_path):
    path = str(tmp_path / "t")
    sink(path, 8).write(0, rows(range(9), ts=0))
    sink(path, 8, **{"hudistream.task.memory.bytes": "1"}).write(1, rows(range(5, 40), ts=1, v="new"))
    assert groups_of(path) == in_each((True, 1))
    found = {row[0]: row[3] for row in contents(path)}
    assert len(found) == len(contents(path)) == 40
    assert all((found[f"k{number}"] == "new") is (number >= 5) for number in range(40))
    assert_record_index_is_right(path)


@pytest.mark.parametrize(
    ("version", "seed"), quick(1, [(9, 2), (6, 0), (8, 1), *((v, s) for v in (6, 8, 9) for s in range(3, 9))])
)
def test_batches_in_turns_give_what_a_dictionary_gives(tmp_path, version, seed):
    path, draw, model = str(tmp_path / "t"), random.Random(seed), {}
    for number in range(12):
        keys = draw.sample(range(30), 8)
        operation = draw.choice(("upsert", "upsert", "delete")) if number else "upsert"
        joins = draw.choice(("true", "true", "false"))
        ts = draw.choice((number, number, number - 4))
        summary = sink(path, version, **{OPERATION: operation, "hudistream.new.rows.join.logs": joins}).write(
            number, rows(keys, ts=ts, v=f"b{number}")
        )
        new = [key for key in keys if f"k{key}" not in model]
        if operation == "upsert":
            assert summary.rows == len(new)
        for key in keys:
            name = f"k{key}"
            if operation == "delete":
                model.pop(name, None)
            elif name not in model or model[name][1] <= ts:
                model[name] = (f"p{key % 3}", ts, f"b{number}")
        assert {row[0]: row[1:] for row in contents(path)} == model
        assert len(contents(path)) == len(model)
        assert_record_index_is_right(path)
        if draw.random() < 0.2:
            compact(HudiTable.open(path))


def test_another_index_is_refused():
    with pytest.raises(InvalidConfigError, match=r"join\.logs=true and hoodie\.index\.type=BLOOM: that index looks"):
        Engine(
            "/nowhere", {**PACKED, "hoodie.index.type": "BLOOM", "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
        )


def test_a_copy_on_write_table_is_refused():
    with pytest.raises(InvalidConfigError, match="a copy-on-write table has no log files"):
        Engine("/nowhere", {**PACKED, "hoodie.datasource.write.table.type": "COPY_ON_WRITE"})
