"""The Delta log over the files of a table: delta-rs reads the rows that readers of Hudi read."""

import os
import shutil
from pathlib import Path
from time import sleep

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import said
from needs import require
from oracles import hudi_rs

from hudistream import ArrowSink, HudiTable, check
from table.catalog.delta import delta_log
from table.catalog.delta.delta_actions import (
    DeltaState,
    DeltaTarget,
    apply_commit,
    decode_checkpoint,
    encode_checkpoint,
    encode_commit,
    plan_commit,
)
from table.catalog.delta.delta_log import DeltaLog, load_delta_state, superfluous
from table.catalog.delta.delta_schema import changed_types, encode_schema
from table.catalog.manifest import write_manifest
from table.errors import CommitConflictError, CorruptFileError, UnsupportedTableError
from table.options.catalog_settings import ManifestFor
from table.services.clean.service import CleaningService
from table.snapshot import Snapshot
from table.storage.interface import FileInfo
from table.storage.local import LocalStorage

KEPT = {"hudistream.manifest.for": "delta"}


def of_delta(path):
    return require("deltalake").DeltaTable(str(path)).to_pyarrow_table()


def assert_equal(path):
    ours = HudiTable.open(path).scan().to_arrow()
    theirs = of_delta(path)
    assert sorted(map(repr, theirs.select(ours.column_names).cast(ours.schema).to_pylist())) == sorted(
        map(repr, ours.to_pylist())
    )
    assert not any(name.startswith("_hoodie_") for name in theirs.column_names)


def batch(number, rows=40, keys=200):
    random = np.random.default_rng(number)
    ids = random.choice(keys, rows, replace=False)
    return pa.table({
        "id": [f"k{one}" for one in ids],
        "d": [f"a b/x=\u00e4%{one % 2}" if one % 3 == 0 else f"d{one % 3}" for one in ids],
        "ts": pa.array([number] * rows),
        "v": random.random(rows),
    })  # fmt: skip


def test_delta_reads_each_snapshot_beside_checkpoints_deletes_cleans_and_new_columns(tmp_path):
    path = str(tmp_path / "t")
    options = {**KEPT, "hoodie.clean.commits.retained": "2", "hudistream.clean.grace.ms": "0"}
    with ArrowSink(path, options, key="id", partition_by="d", order_by="ts") as sink:
        for number in range(23):
            rows = batch(number)
            sink.write(rows if number < 12 else rows.append_column("extra", pa.array([number] * len(rows))))
            sink._writer.services.wait()
            assert_equal(path)
        sink.delete(where=[("v", "<", 0.5)])
        sink._writer.services.wait()
        assert_equal(path)
    names = os.listdir(f"{path}/_delta_log")
    assert sum(name.endswith(".checkpoint.parquet") for name in names) == 2
    assert check(path).is_sound
    assert len(hudi_rs.read(path)) == HudiTable.open(path).count()


@pytest.mark.parametrize("paths", [("p0", "p1"), (7, 8)], ids=["text", "number"])
def test_a_row_that_stays_in_its_old_path_shows_the_value_of_the_path_as_in_hudi(tmp_path, paths):
    path, (first, second) = str(tmp_path / "t"), paths
    options = {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path": "false"}
    with ArrowSink(path, options, key="id", partition_by="d", order_by="ts") as sink:
        sink.write(pa.table({"id": ["a", "b"], "d": [first, second], "ts": [1, 1]}))
        sink.write(pa.table({"id": ["a"], "d": [second], "ts": [2]}))
        HudiTable.open(path).write_manifest("delta")
        assert_equal(path)
        found = require("deltalake").DeltaTable(path).to_pyarrow_table(filters=[("d", "=", first)])
        assert found.select(["id", "d", "ts"]).to_pylist() == [{"id": "a", "d": first, "ts": 2}]
        sink.write(pa.table({"id": ["n"], "d": pa.array([None], pa.array([first]).type), "ts": [3]}))
        HudiTable.open(path).write_manifest("delta")
        assert_equal(path)


def test_a_table_without_partitions_and_one_of_version_9(tmp_path):
    for version in ("6", "9"):
        path = str(tmp_path / version)
        with ArrowSink(path, {**KEPT, "hoodie.write.table.version": version}, key="id", order_by="ts") as sink:
            for number in range(12):
                sink.write(batch(number))
        assert_equal(path)
        assert len(hudi_rs.read(path)) == HudiTable.open(path).count()


def test_types_of_every_kind(tmp_path):
    rows = pa.table({
        "id": ["a", "b"],
        "utc": pa.array([1, 2], pa.timestamp("us", "UTC")),
        "n": pa.array([1, None], pa.decimal128(20, 3)),
        "day": pa.array([1, 2], pa.date32()),
        "s": pa.array([{"x": 1, "y": [{"z": "q"}]}, None]),
        "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
        "b": pa.array([b"1", b"2"]), "f": pa.array([1.5, 2], pa.float32()), "flag": [True, None],
    })  # fmt: skip
    path = str(tmp_path / "t")
    with ArrowSink(path, KEPT, key="id") as sink:
        sink.write(rows)
    assert_equal(path)


def test_a_merge_on_read_table_shows_its_base_files_and_says_so(tmp_path, capsys):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id", order_by="ts", table_type="mor", index="bucket",
                   options={"hoodie.bucket.index.num.buckets": "1"}) as sink:  # fmt: skip
        for number in range(3):
            sink.write(pa.table({"id": ["a"], "ts": [number]}))
        assert "1 file with newer rows in log files" in said(capsys, "manifest", path, "--for", "delta")
        assert of_delta(path)["ts"].to_pylist() == [0]
    HudiTable.open(path).compact()
    assert said(capsys, "manifest", path, "--for", "delta").startswith(f"{path}: 1 file as of ")
    assert of_delta(path)["ts"].to_pylist() == [2]


def test_an_undone_commit_is_undone_there(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, KEPT, key="id", order_by="ts") as sink:
        sink.write(batch(1))
        sink.write(batch(2))
    table = HudiTable.open(path)
    table.roll_back(table.newest_instant)
    write_manifest(table, ManifestFor.DELTA)
    assert_equal(path)


def test_of_two_that_keep_a_log_the_slower_one_reads_what_the_other_wrote(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id", order_by="ts") as sink:
        sink.write(batch(1))
        table = HudiTable.open(path)
        first, second = DeltaLog(table), DeltaLog(table)
        write_manifest(table, ManifestFor.DELTA, first)
        write_manifest(table, ManifestFor.DELTA, second)
        for number in range(2, 6):
            sink.write(batch(number))
            write_manifest(table, ManifestFor.DELTA, first if number % 2 else second)
            assert_equal(path)
    assert sorted(os.listdir(f"{path}/_delta_log")) == [f"{number:020d}.json" for number in range(5)]


def test_a_process_that_is_always_late_says_so(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id", order_by="ts") as sink:
        sink.write(batch(1))
    monkeypatch.setattr(LocalStorage, "create_exclusive", lambda *_, **__: False)
    with pytest.raises(CommitConflictError, match="all the time"):
        write_manifest(HudiTable.open(path), ManifestFor.DELTA)


APART = {"hoodie.parquet.small.file.limit": "0"}  # each batch writes files of its own
INT, LONG = (pa.table({"id": [key], "n": pa.array([1], kind)}) for key, kind in (("a", pa.int32()), ("b", pa.int64())))


def test_a_change_of_types_is_refused_and_the_log_stays_as_it_was(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, APART, key="id", operation="insert") as sink:
        sink.write(INT)
        table = HudiTable.open(path)
        write_manifest(table, ManifestFor.DELTA)
        sink.write(LONG)
        with pytest.raises(UnsupportedTableError, match="n was integer, is long"):
            write_manifest(table, ManifestFor.DELTA)
    assert of_delta(path)["id"].to_pylist() == ["a"]


def test_a_change_of_types_is_followed_where_no_older_file_stays(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, {**KEPT, **APART}, key="id", operation="insert") as sink:
        sink.write(INT)
    with ArrowSink(path, {**KEPT, **APART}, key="id", operation="insert_overwrite_table") as sink:
        sink.write(LONG)
    assert_equal(path)


def test_a_log_that_missed_a_commit_does_not_follow_a_change_of_types_over_its_files(tmp_path):
    path, keys = str(tmp_path / "t"), {"key": "id", "partition_by": "d"}
    with ArrowSink(path, KEPT, **keys) as sink:
        sink.write(INT.append_column("d", [["x"]]))
    before = of_delta(path)
    with ArrowSink(path, **keys) as sink:
        sink.write(INT.append_column("d", [["y"]]))  # the log misses it
        sink.write(pa.table({"id": ["a"], "n": [2**40], "d": ["x"]}))  # and the file that it knows is rewritten
    with pytest.raises(UnsupportedTableError, match=r"y/.* has columns of older types: n was integer, is long"):
        write_manifest(HudiTable.open(path), ManifestFor.DELTA)
    assert of_delta(path) == before


def test_another_type_after_an_undone_commit_is_followed(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, KEPT, key="id", operation="insert") as sink:
        sink.write(INT)
    table = HudiTable.open(path)
    table.roll_back(table.newest_instant)
    with ArrowSink(path, KEPT, key="id", operation="insert") as sink:
        sink.write(pa.table({"id": ["c"], "n": ["text"]}))
    assert_equal(path)


def test_a_new_log_over_files_of_older_types_is_refused(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, APART, key="id", operation="insert") as sink:
        sink.write(INT)
        sink.write(LONG)
    with pytest.raises(UnsupportedTableError, match=r"has columns of older types: n was integer, is long"):
        write_manifest(HudiTable.open(path), ManifestFor.DELTA)
    assert not Path(path, "_delta_log").exists()


def test_a_log_of_another_writer_is_not_taken_over(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id") as sink:
        sink.write(INT)
    require("deltalake").write_deltalake(path, pa.table({"x": [1]}))
    with pytest.raises(UnsupportedTableError, match="a Delta log of another writer"):
        write_manifest(HudiTable.open(path), ManifestFor.DELTA)


def test_a_log_that_was_deleted_is_made_anew_by_the_same_sink(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, KEPT, key="id", order_by="ts") as sink:
        sink.write(batch(1))
        sink._writer.services.wait()
        shutil.rmtree(f"{path}/_delta_log")
        sink.write(batch(2))
        sink._writer.services.wait()
        assert_equal(path)


def test_the_only_commit_undone_leaves_no_rows(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, KEPT, key="id") as sink:
        sink.write(INT)
    table = HudiTable.open(path)
    table.roll_back(table.newest_instant)
    write_manifest(table, ManifestFor.DELTA)
    assert len(of_delta(path)) == 0


def test_what_another_process_wrote_is_seen_although_nothing_is_to_be_said(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id", order_by="ts") as sink:
        sink.write(batch(1))
        table = HudiTable.open(path)
        ours = DeltaLog(table)
        write_manifest(table, ManifestFor.DELTA, ours)
        sink.write(batch(2))
        write_manifest(table, ManifestFor.DELTA)
    table.roll_back(table.newest_instant)
    write_manifest(table, ManifestFor.DELTA, ours)
    assert_equal(path)


def test_a_damaged_checkpoint_is_passed_over_where_the_commits_are_there(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, KEPT, key="id", order_by="ts") as sink:
        for number in range(12):
            sink.write(batch(number))
            sink._writer.services.wait()
    Path(path, "_delta_log", f"{10:020d}.checkpoint.parquet").write_bytes(b"PAR1")
    assert load_delta_state(LocalStorage(path)).version == 11
    os.remove(f"{path}/_delta_log/{0:020d}.json")
    with pytest.raises(CorruptFileError, match=r"checkpoint 10 .*delete the folder _delta_log"):
        load_delta_state(LocalStorage(path))


def test_the_last_commit_is_told_although_services_of_an_earlier_one_were_still_at_work(tmp_path, monkeypatch):
    slow = CleaningService.execute
    monkeypatch.setattr(CleaningService, "execute", lambda *given: (sleep(0.3), slow(*given))[1])
    path = str(tmp_path / "t")
    options = {**KEPT, "hoodie.clean.commits.retained": "1", "hudistream.clean.grace.ms": "0"}
    with ArrowSink(path, options, key="id", order_by="ts") as sink:
        for number in range(5):
            sink.write(batch(number))
    assert_equal(path)


def test_a_compaction_is_told_before_a_clean_deletes_what_it_folded(tmp_path):
    path = str(tmp_path / "t")
    options = {
        **KEPT, "hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2",
        "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1",
        "hudistream.clean.grace.ms": "0", "hoodie.bucket.index.num.buckets": "1",
    }  # fmt: skip
    with ArrowSink(path, options, key="id", order_by="ts", table_type="mor", index="bucket") as sink:
        for number in range(7):
            sink.write(pa.table({"id": ["a"], "ts": [number]}))
            sink._writer.services.wait()
            [seen] = of_delta(path)["ts"].to_pylist()
            logs = [found.log_files for found in HudiTable.open(path).scan().plan().slices]
            assert seen == number if not any(logs) else seen < number


def test_an_empty_table_has_no_log_and_a_lost_commit_is_named(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, KEPT, key="id", order_by="ts") as sink:
        for number in range(3):
            sink.write(batch(number))
    os.remove(f"{path}/_delta_log/{1:020d}.json")
    way_out = r"has no commit 1: if no other writer keeps it, delete the folder _delta_log"
    with pytest.raises(CorruptFileError, match=way_out):
        load_delta_state(LocalStorage(path))


def test_delta_may_not_write(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, KEPT, key="id", order_by="ts") as sink:
        sink.write(batch(1))
    library = require("deltalake")
    with pytest.raises(Exception, match=r"(?i)feature"):
        library.write_deltalake(path, pa.table({"id": ["x"]}), mode="append", schema_mode="merge")
    assert_equal(path)


# ---- the rules


TARGET = DeltaTarget({"p/a.parquet": 1, "b c.parquet": 2}, encode_schema(pa.schema([("id", pa.string())])), "t", "5")


def test_a_commit_names_what_changed_and_nothing_where_nothing_did():
    first = plan_commit(DeltaState(), TARGET, "an-id", 7)
    assert [next(iter(action)) for action in first] == ["commitInfo", "protocol", "metaData", "add", "add"]
    state = apply_commit(DeltaState(), 0, encode_commit(first))
    assert (state.version, state.files) == (0, TARGET.files)
    assert plan_commit(state, TARGET, "another", 8) == []
    later = DeltaTarget({"p/a.parquet": 1, "n": 3}, TARGET.schema, "t", "6")
    second = plan_commit(state, later, "another", 9)
    assert [next(iter(action)) for action in second] == ["commitInfo", "remove", "add"]
    assert second[1]["remove"]["path"] == "b%20c.parquet"
    assert apply_commit(state, 1, encode_commit(second)).files == later.files


def test_a_checkpoint_says_what_the_commits_said(tmp_path):
    state = apply_commit(DeltaState(), 0, encode_commit(plan_commit(DeltaState(), TARGET, "an-id", 7)))
    data = encode_checkpoint(state, 9)
    assert decode_checkpoint(0, data) == state
    (tmp_path / "c.parquet").write_bytes(data)
    assert pq.read_metadata(tmp_path / "c.parquet").num_rows == 4


@pytest.mark.parametrize(
    "data",
    [b"{", b"[1]", b'{"add": {}}', b'{"add": 3}', b'{"metaData": {}}', b'{"metaData": {"schemaString": "{"}}'],
)
def test_a_damaged_commit_is_named(data):
    with pytest.raises(CorruptFileError, match="commit 4 of the Delta log"):
        apply_commit(DeltaState(3), 4, data)


def test_a_damaged_checkpoint_is_named():
    with pytest.raises(CorruptFileError, match="checkpoint 4 of the Delta log"):
        decode_checkpoint(4, b"PAR1 no")


def test_files_go_when_a_checkpoint_has_made_them_superfluous_for_a_day():
    def entry(name, ms):
        return FileInfo(name, 1, ms, False)

    day = delta_log.KEPT_MS
    entries = [
        entry(f"{1:020d}.json", 0), entry(f"{10:020d}.json", 0), entry(f"{9:020d}.json", day),
        entry(f"{0:020d}.checkpoint.parquet", 0), entry("_last_checkpoint", 0),
        entry(f"{10:020d}.checkpoint.parquet", day + 1),
    ]  # fmt: skip
    assert superfluous(entries, 10) == [f"{1:020d}.json", f"{0:020d}.checkpoint.parquet"]
    # of many commits, those of the last hour stay, and the last thousand
    ages_ms = {1: delta_log.KEPT_AT_LEAST_MS + 1, 2: delta_log.KEPT_AT_LEAST_MS, 1999: delta_log.KEPT_AT_LEAST_MS + 1}
    many = [entry(f"{number:020d}.json", day - age_ms) for number, age_ms in ages_ms.items()]
    assert superfluous([*many, entry(f"{2500:020d}.json", day)], 2500) == [f"{1:020d}.json"]
    assert superfluous([], 10) == []


def test_old_files_of_the_log_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(delta_log, "KEPT_MS", -1)
    path = str(tmp_path / "t")
    with ArrowSink(path, KEPT, key="id", order_by="ts") as sink:
        for number in range(13):
            sink.write(batch(number))
            sink._writer.services.wait()
    assert min(int(name[:20]) for name in os.listdir(f"{path}/_delta_log") if name[0] == "0") == 10
    assert_equal(path)


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        (pa.int32(), pa.int32(), []),
        (pa.int32(), pa.int64(), ["c was integer, is long"]),
        (
            pa.struct([("x", pa.int32())]),
            pa.struct([("x", pa.int64()), ("y", pa.int8())]),
            ["c.x was integer, is long"],
        ),
        (pa.list_(pa.date32()), pa.list_(pa.string()), ["c.element was date, is string"]),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.float64()), ["c.value was integer, is double"]),
        (pa.list_(pa.int32()), pa.struct([("x", pa.int32())]), ["c was array, is struct"]),
    ],
)
def test_changes_of_types_are_named_at_any_depth(before, after, changes):
    texts = [
        encode_schema(pa.schema([("c", kind), *more])) for kind, more in ((before, []), (after, [("new", pa.int8())]))
    ]
    assert changed_types(*texts) == changes


@pytest.mark.parametrize("kind", [pa.time64("us"), pa.timestamp("us"), pa.float16()])
def test_a_type_that_delta_lacks_is_refused_by_name(kind):
    with pytest.raises(UnsupportedTableError, match=r"no type for the column 's.element'"):
        encode_schema(pa.schema([("s", pa.list_(kind))]))


def test_a_name_that_delta_lacks_is_refused():
    with pytest.raises(UnsupportedTableError, match="cannot name the column 's.a b'"):
        encode_schema(pa.schema([("s", pa.struct([("a b", pa.int8())]))]))


def test_a_table_without_a_commit_gets_no_log(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id") as sink:
        sink.write(pa.table({"id": ["a"]}))
    table = HudiTable.open(path)
    table.roll_back(table.newest_instant)
    assert DeltaLog(table).bring_up_to_date(Snapshot.load(table), ()) == DeltaState()
    assert not Path(path, "_delta_log").exists()
