"""What a batch writes into a merge-on-read table: log files of its own, and base files where Hudi has them."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from engine import Engine, rows
from snapshots import contents

from table import InvalidConfigError, StorageError, read_table
from table.files.log.framing import BlockType, Header, scan_blocks
from table.files.names import parse_base_file, parse_log_file
from table.hudi_table import HudiTable
from table.schema.avro_schema import DELETE_MARKER, META_COLUMNS, without_meta_columns

MERGE_ON_READ = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.datasource.compaction.async.enable": "false",
}


def engine_of(path, **options):
    return Engine(str(path), {**MERGE_ON_READ, **options})


def write(path, batch, number, **options):
    engine = engine_of(path, **options)
    try:
        return engine.write(number, batch)
    finally:
        engine.writer.stop()


def in_one_path(keys, ts=0, v="v"):
    return rows(keys, partition=lambda number: "p", ts=ts, v=v)


def log_files(path):
    names = [parse_log_file(name) for name in os.listdir(Path(path) / "p")]
    return sorted((name for name in names if name is not None), key=lambda name: (name.file_id, name.version))


def base_files(path):
    names = [parse_base_file(name) for name in os.listdir(Path(path) / "p")]
    return sorted((name for name in names if name is not None), key=lambda name: name.instant_time)


def stats_of(path, time):
    text = (Path(path) / ".hoodie" / f"{time}.deltacommit").read_text()
    return [stat for of_path in json.loads(text)["partitionToWriteStats"].values() for stat in of_path]


def blocks_of(path, log):
    with (Path(path) / "p" / str(log)).open("rb") as stream:
        return [place.block for place in scan_blocks(stream)]


@pytest.mark.parametrize("form", ["avro", "parquet"])
@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE", "BUCKET", "GLOBAL_SIMPLE"])
def test_changes_go_to_a_fresh_log_file_of_each_commit_and_are_read(tmp_path, index, form):
    options = {
        "hoodie.index.type": index,
        "hoodie.logfile.data.block.format": form,
        "hoodie.simple.index.update.partition.path": "false",
    }
    path = tmp_path / "t"
    write(path, in_one_path(range(20)), 0, **options)
    assert not log_files(path)
    write(path, in_one_path(range(5, 15), ts=2, v="w"), 1, **options)
    write(path, in_one_path(range(10, 12), ts=1, v="late"), 2, **options)
    write(path, in_one_path(range(12, 14)), 3, **options, **{"hoodie.datasource.write.operation": "delete"})
    summary = write(path, in_one_path(range(14, 16), ts=3, v="again"), 4, **options)
    assert (summary.rows_updated, summary.files_created, summary.files_topped_up) == (2, 0, 0)
    assert summary.log_files == len({log.file_id for log in log_files(path)}) or index == "BUCKET"
    wanted = {f"k{n}": "v" for n in range(20)} | {f"k{n}": "w" for n in range(5, 15)} | {"k14": "again", "k15": "again"}
    del wanted["k12"], wanted["k13"]
    assert {key: v for key, _, _, v in contents(str(path))} == wanted
    for group in {log.file_id for log in log_files(path)}:
        mine = [log for log in log_files(path) if log.file_id == group]
        assert [log.version for log in mine] == list(range(1, len(mine) + 1))
        assert {log.base_instant_time for log in mine} == {base_files(path)[0].instant_time}
        writers = [{block.header[Header.INSTANT_TIME] for block in blocks_of(path, log)} for log in mine]
        assert all(len(one) == 1 for one in writers)
        assert len(set.union(*writers)) == len(mine)
    assert len({base.instant_time for base in base_files(path)}) == 1


def test_a_delta_commits_stats_are_those_of_hudi(tmp_path):
    path = tmp_path / "t"
    first = write(path, in_one_path(range(9)), 0)
    for number in (1, 2):
        summary = write(path, in_one_path(range(3), ts=number), number)
    [base] = base_files(path)
    [stat] = stats_of(path, summary.instant_time)
    log = str(log_files(path)[1])
    size = (path / "p" / log).stat().st_size
    wanted = {
        "fileId": base.file_id, "path": f"p/{log}", "prevCommit": first.instant_time, "prevBaseFile": None,
        "numWrites": 3, "numInserts": 0, "numUpdateWrites": 3, "numDeletes": 0, "partitionPath": "p",
        "totalWriteBytes": size, "fileSizeInBytes": size, "logVersion": 2, "logOffset": 0, "baseFile": str(base),
        "logFiles": [str(name) for name in log_files(path)], "recordsStats": {"val": None}, "totalWriteErrors": 0,
    }  # fmt: skip
    assert {key: stat[key] for key in wanted} == wanted


def test_records_name_their_commit_and_file_group(tmp_path):
    path = tmp_path / "t"
    write(path, in_one_path(range(3)), 0)
    summary = write(path, in_one_path(range(1), ts=1), 1)
    [row] = [row for row in read_table(str(path), meta_columns=True).to_pylist() if row["id"] == "k0"]
    assert row["_hoodie_commit_time"] == summary.instant_time
    assert row["_hoodie_commit_seqno"].startswith(summary.instant_time + "_")
    assert row["_hoodie_file_name"] == log_files(path)[0].file_id


def test_new_rows_join_a_base_file_only_while_it_has_no_log_files(tmp_path):
    path = tmp_path / "t"
    write(path, in_one_path(range(9)), 0)
    write(path, in_one_path([0, 50], ts=1, v="w"), 1)
    # beside new rows changes are merged into the small file that takes them
    assert (len(base_files(path)), len(log_files(path))) == (2, 0)
    write(path, in_one_path([1], ts=1, v="w"), 2)
    assert len(log_files(path)) == 1
    write(path, in_one_path([2, 51], ts=1, v="w"), 3)
    assert [log.version for log in log_files(path)] == [1, 2]
    assert len({base.file_id for base in base_files(path)}) == 2
    write(path, in_one_path([52]), 4, **{"hoodie.datasource.write.operation": "insert"})
    groups = {base.file_id for base in base_files(path)}
    assert len(groups) == 2, "an insert fills the one without log files"
    assert sorted(key for key, *_ in contents(str(path))) == sorted(f"k{n}" for n in [*range(9), 50, 51, 52])


def test_one_writer_goes_on_with_what_it_remembers(tmp_path):
    path = tmp_path / "t"
    engine = engine_of(path)
    for number in range(6):
        engine.write(number, in_one_path(range(number, number + 4), ts=number, v=f"{number}"))
    engine.writer.stop()
    wanted = {f"k{n}": str(min(n, 5)) for n in range(9)}
    assert {key: v for key, _, _, v in contents(str(path))} == wanted


@pytest.mark.parametrize(("block", "file", "files", "blocks"), [(1, 1, 4, 1), (1, 1 << 30, 1, 4), (1 << 20, 1, 1, 1)])
def test_blocks_and_files_end_at_their_size(tmp_path, monkeypatch, block, file, files, blocks):
    from table.files.log import avro_data

    monkeypatch.setattr(avro_data, "_BATCH_ROWS", 3)
    path = tmp_path / "t"
    write(path, in_one_path(range(20)), 0)
    sizes = {"hoodie.logfile.data.block.max.size": block, "hoodie.logfile.max.size": file}
    summary = write(path, in_one_path(range(12), ts=1, v="w"), 1, **sizes)
    logs = log_files(path)
    assert [log.version for log in logs] == list(range(1, files + 1))
    assert [len(blocks_of(path, log)) for log in logs] == [blocks] * files
    stats = stats_of(path, summary.instant_time)
    assert [stat["logFiles"] for stat in stats] == [[str(log) for log in logs[: n + 1]] for n in range(files)]
    assert sum(stat["numUpdateWrites"] for stat in stats) == 12
    assert [v for *_, v in contents(str(path))].count("w") == 12


def test_rows_beyond_the_memory_of_a_task_go_to_the_same_logs(tmp_path):
    for index in ("BLOOM", "BUCKET"):
        path = tmp_path / index
        options = {"hoodie.index.type": index, "hudistream.task.memory.bytes": "2000"}
        write(path, in_one_path(range(300)), 0, **options)
        write(path, in_one_path(range(100, 350), ts=1, v="w"), 1, **options)
        found = {key: v for key, _, _, v in contents(str(path))}
        assert found == {f"k{n}": "w" if n >= 100 else "v" for n in range(350)}
        versions = [log.version for log in log_files(path)]
        assert versions == ([1, 1] if index == "BUCKET" else [])


def marked(batch, deleted):
    flags = [key in deleted for key in batch.column("id").to_pylist()]
    return batch.append_column(DELETE_MARKER, pa.array(flags))


def test_deletes_are_blocks_with_their_order(tmp_path):
    path = tmp_path / "t"
    write(path, marked(in_one_path(range(6), ts=5), ()), 0)
    write(path, marked(in_one_path(range(2), ts=7), {"k0"}), 1)
    assert [block.type for block in blocks_of(path, log_files(path)[0])] == [BlockType.AVRO_DATA, BlockType.DELETE]
    assert "k0" not in {key for key, *_ in contents(str(path))}
    write(path, marked(in_one_path(range(1), ts=8), ()), 3)
    assert "k0" in {key for key, *_ in contents(str(path))}
    write(path, marked(in_one_path([77], ts=8), {"k77"}), 4)  # of a key that the table does not have
    assert len(log_files(path)) == 2


def test_a_pending_compaction_of_hudi_gets_the_new_log_files(golden, utc):
    path, expected = golden("mor_compaction_pending")
    [compaction] = [i.time for i in HudiTable.open(path).load_timeline().pending]
    new = {row["id"]: {**row, "name": "ours", "ts": 99} for row in expected["rows"][::5]}
    table = read_table(path, meta_columns=True)
    batch = pa.Table.from_pylist(list(new.values()), without_meta_columns(table.schema))
    options = {
        "hoodie.table.name": "mor_compaction_pending",
        "hoodie.datasource.write.partitionpath.field": "region",
    }
    before = set(Path(path).glob("*/.*.log.*"))
    engine = Engine(path, {**MERGE_ON_READ, **options})
    engine.write(0, batch)
    engine.writer.stop()
    made = [parse_log_file(file.name) for file in set(Path(path).glob("*/.*.log.*")) - before]
    assert {log.base_instant_time for log in made} == {compaction}
    assert {log.version for log in made} == {2}
    found = {row["id"]: row for row in read_table(path, meta_columns=True).drop_columns(META_COLUMNS).to_pylist()}
    assert found == {row["id"]: row for row in expected["rows"]} | new


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hoodie.index.type": "GLOBAL_BLOOM"}, "hoodie.bloom.index.update.partition.path=false"),
        ({"hoodie.index.type": "GLOBAL_SIMPLE"}, "hoodie.simple.index.update.partition.path=false"),
        (
            {
                "hoodie.index.type": "BUCKET",
                "hoodie.datasource.write.operation": "insert",
                "hoodie.datasource.write.insert.drop.duplicates": "true",
            },
            "use another index, or upsert",
        ),
    ],
)
def test_what_would_need_older_records_is_refused(tmp_path, options, message):
    with pytest.raises(InvalidConfigError, match=message):
        write(tmp_path / "t", in_one_path(range(3)), 0, **options)


def test_the_table_type_must_agree_with_the_table(tmp_path):
    path = tmp_path / "t"
    write(path, in_one_path(range(3)), 0)
    with pytest.raises(InvalidConfigError, match="contradicts the table, which has MERGE_ON_READ"):
        write(path, in_one_path(range(3)), 1, **{"hoodie.datasource.write.table.type": "COPY_ON_WRITE"})
    engine = Engine(str(path), {"hoodie.datasource.write.operation": "upsert"})  # what is not said is the table's
    engine.write(1, in_one_path(range(3), ts=1))
    assert len(log_files(path)) == 1


def test_a_log_file_that_is_there_is_not_written_over(tmp_path, monkeypatch):
    from streaming.task import log_slots

    path = tmp_path / "t"
    write(path, in_one_path(range(3)), 0)
    write(path, in_one_path(range(3), ts=1, v="w"), 1)
    inner = log_slots.slot_of
    monkeypatch.setattr(log_slots, "slot_of", lambda *args: replace(inner(*args), version=1))
    monkeypatch.setattr("table.write.write_log.log_write_token", lambda *_, **__: "0-0-1")
    (there,) = path.glob("**/.*.log.1_*")
    shutil.copy(there, there.with_name(there.name.rpartition("_")[0] + "_0-0-1"))
    with pytest.raises(StorageError, match=r"log\.1_0-0-1 is there already"):
        write(path, in_one_path(range(3), ts=2, v="x"), 2)
    assert {v for *_, v in contents(str(path))} == {"w"}
