"""Looks at a table, over the forms of tables that are easily forgotten: replaced files, log files, filters, losses."""

import json
import os
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import fsspec
import pyarrow as pa
import pytest

from hudistream import (
    ArrowSink,
    HudiTable,
    InvalidConfigError,
    LostDataError,
    StorageError,
    read_bad_rows,
    write_hudi,
)
from streaming.cli.main import main
from table.columns import lots
from table.inspect.health import load_health
from table.inspect.report.facts import load_report
from table.storage.local import LocalStorage
from table.timeline.instant import Action

QUIET = {"hoodie.table.services.enabled": "false"}


def run(*arguments):
    """Exit code of a command, what it prints, and what it says on standard error."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    return code, out.getvalue(), err.getvalue()


def rows(keys, ts=1, **more):
    return pa.table({"id": list(keys), "ts": [ts] * len(keys), **more})


def write(path, options, *batches, **given):
    with ArrowSink(path, {**QUIET, **options}, key="id", order_by="ts", **given) as sink:
        for number, batch in enumerate(batches):
            sink.write(batch, batch_id=number)
    return HudiTable.open(path)


def size_of(table):
    return sum(table.files().column("size_bytes").to_pylist())


def test_a_delete_by_a_table_cleans_and_compacts_nothing(tmp_path):
    kept = {"hoodie.clean.commits.retained": "50", "hudistream.clean.grace.ms": "0"}
    table = write(str(tmp_path / "t"), kept, *(rows("abc", ts) for ts in range(20)))
    assert table.delete([("id", "=", "a")]).rows_deleted == 1
    assert not table.load_timeline().completed_of(Action.CLEAN)
    assert table.count(as_of=table.load_timeline().writes_by_time[1].time) == 3


@pytest.mark.parametrize(
    "command",
    [["clean"], ["clean", "--dry-run"], ["compact"], ["archive"], ["explain"], ["erase", "--keys", "a"]],
    ids=" ".join,
)
def test_commands_take_the_settings_of_a_sink_whose_rows_join_logs(tmp_path, command):
    path = str(tmp_path / "t")
    joins = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
        "hudistream.new.rows.join.logs": "true",
    }
    write(path, joins, rows("ab"), rows("bc", 2), table_type="mor", index="record_index")
    code, _, said = run(command[0], path, *command[1:])
    assert "hudistream why" not in said
    assert code == (command[0] == "erase")  # its older versions are within the grace period


def test_a_filter_of_cleaning_hides_no_file_and_ends_no_erasure(tmp_path):
    path = str(tmp_path / "t")
    kept = {
        "hoodie.clean.partition.filter.selected": "x",
        "hoodie.clean.incremental.enabled": "false",
        "hudistream.clean.grace.ms": "0",
    }
    batches = [rows("ab", ts, day=["x", "y"]) for ts in range(4)]
    table = write(path, kept, *batches, partition_by="day")
    found = load_report(table).bytes
    assert found.live == size_of(table)
    assert found.superseded == load_health(table).backlog.superseded_bytes > 0
    assert "8 files" in run("explain", path)[1]
    code, said, _ = run("erase", path, "--keys", "b")
    assert "no completed commit names it" not in said
    assert code == 1  # the partition path is still named
    assert "no row and no key is left" in said


def test_replaced_files_are_superseded_in_report_and_health(tmp_path):
    path = str(tmp_path / "t")
    table = write(path, {}, *(rows("ab", ts) for ts in range(5)), operation="insert_overwrite_table")
    found, health = load_report(table).bytes, load_health(table)
    assert found.live == size_of(table) == health.live_bytes
    assert health.backlog.superseded_files == 4
    assert found.superseded == health.backlog.superseded_bytes > 0
    assert "1 live file" in run("show", path)[1]
    assert "5 with older versions" in run("show", path)[1]


@pytest.mark.parametrize("version", ["6", "9"])
def test_what_readers_merge_is_live_beside_a_pending_compaction(tmp_path, version):
    path = str(tmp_path / "t")
    table = write(path, {"hoodie.write.table.version": version}, rows("ab"), rows("ab", 2), table_type="mor")
    assert run("compact", path, "--schedule-only", "--set", "hoodie.compact.inline.max.delta.commits=1")[0] == 0
    with ArrowSink(path, QUIET, key="id", order_by="ts") as sink:
        sink.write(rows("a", 3))
    assert table.load_timeline().pending_of(Action.COMPACTION)
    assert load_report(table).bytes.live == size_of(table)
    assert load_report(table).bytes.superseded == 0


@pytest.mark.parametrize("lists", ["true", "false"])
def test_a_scan_that_confirms_asks_the_store(tmp_path, lists):
    path = str(tmp_path / "t")
    table = write(path, {"hoodie.metadata.enable": lists}, rows("ab", day=["x", "y"]), partition_by="day")
    os.remove(os.path.join(path, table.files().column("path").to_pylist()[0]))
    for look in (lambda scan: scan.to_arrow(), lambda scan: scan.splits(), lambda scan: scan.count()):
        with pytest.raises(LostDataError):
            look(table.scan().confirmed())


def test_a_file_that_is_gone_is_told_in_words_by_every_look(tmp_path):
    path = str(tmp_path / "t")
    table = write(path, {"hoodie.metadata.enable": "true"}, rows("ab"))
    os.remove(os.path.join(path, table.files().column("path").to_pylist()[0]))
    for look in (table.count, table.to_duckdb, table.scan().to_dataset, table.scan().to_arrow):
        with pytest.raises(StorageError, match="accept-loss"):
            look()


def test_a_clustering_adds_no_row(tmp_path):
    table = write(str(tmp_path / "t"), {"hoodie.parquet.small.file.limit": "0"}, rows("ab"), rows("cd", 2))
    assert table.cluster() is not None
    [clustered] = [one for one in table.history().to_pylist() if one["operation"] == "CLUSTER"]
    assert (clustered["rows_added"], clustered["files_written"]) == (0, 1)


def test_change_files_are_called_so(tmp_path):
    cdc = {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": "data_before_after"}
    table = write(str(tmp_path / "t"), cdc, rows("ab"), rows("ab", 2))
    assert sorted(table.files().column("kind").to_pylist()) == ["base", "change"]
    assert load_report(table).log_counts == ((0, 1),)
    assert load_report(table).bytes.live == size_of(table)


def test_json_of_show_has_savepoints(tmp_path):
    path = str(tmp_path / "t")
    time = write(path, {}, rows("ab")).create_savepoint()
    shown = json.loads(run("show", path, "--format", "json")[1])
    assert {one["instant"]: one["savepoint"] for one in shown["instants"]} == {time: True}


KEYS = [{"key": "a.id"}, {"key": "id", "partition_by": "a.p"}, {"key": ["id", "a.id"], "partition_by": ["a.p", "q"]}]


@pytest.mark.parametrize("given", KEYS, ids=str)
def test_deletes_by_a_condition_find_computed_keys_in_structs(tmp_path, given):
    path = str(tmp_path / "t")
    inner = [{"id": "u", "p": "1"}, {"id": "v", "p": "2"}, {"id": "w", "p": "2"}]
    batch = rows("xyz", a=inner, q=["1", "2", "3"])
    write_hudi(path, batch, options={"hoodie.populate.meta.fields": "false"}, order_by="ts", **given)
    table = HudiTable.open(path)
    assert table.delete([("q", "=", "2")]).rows_deleted == 1
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == ["x", "z"]


def test_a_condition_that_takes_one_of_two_rows_is_refused_in_the_path_of_nulls_too(tmp_path):
    path = str(tmp_path / "t")
    batch = rows("aab", day=pa.array([None, None, "x"], pa.string()), v=[1, 2, 3])
    write_hudi(
        path, batch, key="id", partition_by="day", operation="insert", options={"hoodie.populate.meta.fields": "false"}
    )
    table = HudiTable.open(path)
    with pytest.raises(InvalidConfigError, match="1 rows for which it is not true have the same id .*: 'a'"):
        table.delete([("v", "=", 1)])
    assert table.delete([("v", "in", [1, 2])]).rows_deleted == 2
    assert table.scan().to_arrow().column("id").to_pylist() == ["b"]


def test_where_of_commands_takes_what_conditions_take(tmp_path):
    path = str(tmp_path / "t")
    at = pa.array([1767355200000000, 1767355201000000], pa.timestamp("us", "UTC"))
    write(path, {}, rows("ab", at=at, addr=[{"city": "Bern"}, {"city": "Ulm"}]))
    for where in ("at=2026-01-02T12:00:00Z", "addr.city=Bern", "_hoodie_record_key=a"):
        assert run("delete", path, "--where", where, "--dry-run")[1] == "rows that would be deleted: 1\n", where
    assert run("delete", path, "--where", "addr.street=x")[0] == 2


def test_rows_of_json_are_replayed_with_every_type(tmp_path):
    path, file = str(tmp_path / "t"), tmp_path / "rows.jsonl"
    kinds = {
        "id": pa.string(),
        "ts": pa.int64(),
        "d": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "n": pa.decimal128(9, 2),
        "b": pa.binary(),
        "f": pa.float64(),
        "l": pa.list_(pa.string()),
        "m": pa.map_(pa.string(), pa.int64()),
        "s": pa.struct([("d", pa.date32())]),
    }
    schema = pa.schema(kinds)
    first = pa.Table.from_pylist([{"id": None, "ts": 1}, {"id": "k", "ts": 1}], schema)
    write(path, {"hudistream.bad.rows": "quarantine"}, first)
    [bad] = read_bad_rows(path).to_pylist()
    right = {"id": "k", "ts": 2, "d": "2026-01-02", "at": "2026-01-02 12:00:00Z", "n": 1.25, "b": "Af8=", "f": "NaN"}
    right |= {"l": ["x", None], "m": {"y": 3}, "s": {"d": "2026-01-03"}}
    origin = {name: bad[name] for name in ("_hudistream_file", "_hudistream_row")}
    file.write_text(json.dumps({**right, **origin}) + "\n")
    assert run("replay", path, "--rows", str(file))[1].startswith("written rows: 1;")
    [row] = HudiTable.open(path).scan().to_arrow().to_pylist()
    assert str(row["d"]), str(row["n"]) == ("2026-01-02", "1.25")
    assert (row["b"], row["l"], row["m"], str(row["s"]["d"])) == (b"\x01\xff", ["x", None], [("y", 3)], "2026-01-03")
    assert row["f"] != row["f"]
    assert run("checkpoint", path)[1].count("hudistream-replay") == 0
    time = HudiTable.open(path).load_timeline().writes_by_time[-1].time
    assert "is batch 0 of a replay of bad rows" in run("rollback", path, time)[2]
    wrongs = '"d": 7|"d": "soon"|"ts": 7.5|"n": "x"|"b": "?"|"f": true|"l": 1|"l": "xy"|"m": "xy"|"m": ["xy"]|"s": [1]'
    for wrong in (*wrongs.split("|"), '"s": {"dd": 1}'):
        file.write_text(f'{{"id": "k", {wrong}}}\n')
        assert f"column {wrong[1:].split(chr(34))[0]!r} of the type" in run("replay", path, "--rows", str(file))[2]


def test_a_partition_that_became_a_link_stops_no_other_batch(tmp_path):
    path = str(tmp_path / "t")
    table = write(path, {}, rows("ab", day=["x", "y"]), partition_by="day")
    os.rename(f"{path}/x", tmp_path / "moved")
    os.symlink(tmp_path / "moved", f"{path}/x")
    beside = tmp_path / "moved" / ".other.parquet.crc"  # a file that Hadoop would have left beside one of ours
    beside.write_bytes(b"")
    with ArrowSink(path, QUIET, key="id", order_by="ts") as sink:
        with pytest.raises(InvalidConfigError, match="symbolic link"):
            sink.write(rows("a", 2, day=["x"]))
        sink.write(rows("b", 2, day=["y"]))
    assert LocalStorage(path).delete("x/other.parquet") is False
    assert beside.exists()
    assert table.check().is_sound
    assert sorted(table.scan().to_arrow().column("ts").to_pylist()) == [1, 2]


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_feed_tells_that_the_only_commit_was_undone(tmp_path, version):
    table = write(str(tmp_path / "t"), {"hoodie.write.table.version": version}, rows("ab"))
    since = table.newest_instant
    table.roll_back(table.load_timeline().writes_by_time[-1].time, force=True)
    with pytest.raises(InvalidConfigError, match="undid the commit"):
        table.changes(since, deletes=True).to_arrow()
    assert table.changes("earliest", deletes=True).to_arrow().num_rows == 0


@pytest.mark.parametrize("day", ["~", "~root", "a~"])
def test_a_folder_named_like_a_home_directory_is_counted(tmp_path, day):
    table = write(str(tmp_path / "t"), {}, rows("ab", day=[day, "y"]), partition_by="day")
    assert table.count() == table.scan().to_dataset().count_rows() == 2
    assert table.count([("day", "=", day)]) == 1


def test_so_it_is_where_python_opens_the_files(monkeypatch):
    monkeypatch.setattr(fsspec.get_filesystem_class("memory"), "store", {})
    monkeypatch.setattr(fsspec.get_filesystem_class("memory"), "pseudo_dirs", [""])
    table = write("memory://home", {}, rows("ab", day=["~", "y"]), partition_by="day")
    assert table.scan().to_dataset().to_table().num_rows == table.count() == 2


def test_a_table_at_the_root_of_the_memory_store_is_restored(monkeypatch):
    memory = fsspec.get_filesystem_class("memory")  # its instances share what other tests left
    monkeypatch.setattr(memory, "store", {})
    monkeypatch.setattr(memory, "pseudo_dirs", [""])
    table = write("memory:///", {}, rows("ab"))
    assert table.storage.base_uri == "memory://"
    saved = table.create_savepoint()
    with ArrowSink("memory:///", QUIET, key="id", order_by="ts") as sink:
        sink.write(rows("c", 2))
    table.restore_to_savepoint(saved, force=True)
    assert table.count() == 2


def test_a_full_disk_for_temporary_files_is_named(monkeypatch):
    class Full:
        def write(self, _):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    monkeypatch.setattr(lots.tempfile, "TemporaryFile", lambda **_: Full())
    with pytest.raises(StorageError, match=r"TMPDIR.*larger disk"):
        lots.open_scratch_file().write(b"x")
