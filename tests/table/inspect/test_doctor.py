"""`hudistream doctor` says in advance what a sink would say."""

import os

import pyarrow as pa
import pytest
from engine import OPTIONS, Engine, rows

from streaming.arrow_sink import ArrowSink
from table.cli.main import main
from table.clock import InstantClock
from table.config.table_config import PROPERTIES_FILE
from table.errors import LostDataError
from table.hudi_table import HudiTable
from table.inspect.doctor import examine
from table.options.clustering_settings import ClusteringSettings
from table.options.write_options import parse_options
from table.services.clustering.command import schedule
from table.snapshot import Snapshot
from table.storage.interface import Room
from table.storage.local import LocalStorage
from table.timeline.active_timeline import begin_instant, load_timeline, request_instant
from table.timeline.instant import Action
from table.transaction.heartbeat import WriterIdentity, write_heartbeat


def texts(diagnosis, level):
    return [finding.text for finding in diagnosis.findings if finding.level == level]


def test_a_healthy_table(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(10)))
    before = sorted(os.listdir(path + "/.hoodie"))
    diagnosis = examine(path, parse_options(OPTIONS).options)
    assert diagnosis.may_write
    assert any("hoodie.write.auto.upgrade=false" in text for text in texts(diagnosis, "note"))
    assert any("3 live files" in text for text in texts(diagnosis, "ok"))
    assert sorted(os.listdir(path + "/.hoodie")) == before


BLOOM = {"hoodie.index.type": "BLOOM", "hudistream.new.rows.join.logs": "false"}


@pytest.mark.parametrize(("index", "says"), [
    ("true", "run `hudistream compact PATH` before one of them writes"),
    ("false", "new rows will go to base files"),
])  # fmt: skip
def test_who_must_not_write_where_new_rows_join_log_files(tmp_path, index, says):
    path, options = str(tmp_path / "t"), {
        **OPTIONS,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.record.index.enable": index,
        "hoodie.record.index.update.partition.path": "false",
        "hudistream.new.rows.join.logs": "true",
    }  # fmt: skip
    Engine(path, options).write(0, rows(range(10)))
    diagnosis = examine(path, parse_options(options).options)
    assert diagnosis.may_write
    assert [says in text for text in texts(diagnosis, "note") if "new rows" in text] == [True]
    others = examine(path, parse_options({**options, **BLOOM}).options)
    assert [index == "true"] == [any("rows may lie in log files alone" in text for text in texts(others, "note"))]


def test_a_free_place_and_one_that_is_not(tmp_path):
    assert examine(tmp_path / "new", parse_options(OPTIONS).options).may_write
    assert "recordkey.field" in texts(examine(tmp_path / "new", parse_options({}).options), "stop")[0]
    (tmp_path / "data.csv").write_text("x")
    assert "data.csv" in texts(examine(tmp_path), "stop")[0]


@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize(
    ("name", "options", "stop", "note"),
    [
        ("cow_metadata_table", {}, None, None),
        ("v9_cow_indexes", {}, "hoodie.metadata.enable=false", None),
        ("cow_metadata_table", {"hoodie.metadata.enable": "false"}, None, "will be dropped"),
        ("mor_avro_logs", {}, None, "to tell its log files apart"),
        ("mor_compaction_pending", {}, None, "`hudistream compact PATH --execute`"),
        ("cow_with_failed_inflight", {}, None, "rolls it back"),
        ("cow_insert_partitioned", {"hoodie.table.name": "other"}, "hoodie.table.name=other", None),
        ("cow_insert_partitioned", {}, None, "writer's local zone"),
    ],
)
def test_tables_of_hudi(golden, name, options, stop, note):
    diagnosis = examine(golden(name)[0], parse_options(options).options)
    assert texts(diagnosis, "note")[-1].startswith("not looked at: the contents of data files")
    assert diagnosis.may_write is (stop is None)
    if stop is not None:
        assert any(stop in text for text in texts(diagnosis, "stop"))
    if note is not None:
        assert any(note in text for text in texts(diagnosis, "note"))


def test_live_writers_and_what_only_their_own_writer_can_finish(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(10)))
    storage = LocalStorage(path)
    live = begin_instant(storage, request_instant(storage, load_timeline(storage), Action.COMMIT, InstantClock()))
    write_heartbeat(storage, live.time, WriterIdentity("other", "q"))
    request_instant(storage, load_timeline(storage), Action.RESTORE, InstantClock())
    stops = texts(examine(path), "stop")
    assert any("sink 'other'" in text for text in stops)
    assert any("restore" in text for text in stops)


def test_what_the_next_batch_ends_or_leaves_alone_is_no_reason_to_stop(tmp_path):
    """A dead overwrite, and a planned clustering: a sink writes, and the doctor says so."""
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id", partition_by="day", order_by="ts") as sink:
        for day in ("a", "a", "b"):
            sink.write(pa.table({"id": [day], "day": [day], "ts": [1]}))
    planned = schedule(HudiTable.open(path), ClusteringSettings(sort_columns=("ts",), partitions=("a",)))
    storage = HudiTable.open(path).storage
    dead = request_instant(storage, load_timeline(storage), Action.REPLACE_COMMIT, InstantClock())
    found = examine(path)
    texts = [finding.text for finding in found.findings]
    assert found.may_write
    assert any(planned.time in text and "no batch changes rows of its file groups" in text for text in texts), texts
    assert any(dead.time in text and "rolls it back" in text for text in texts), texts
    with ArrowSink(path, key="id", partition_by="day", order_by="ts") as sink:
        assert sink.write(pa.table({"id": ["c"], "day": ["b"], "ts": [2]})).instant_time
    texts = [finding.text for finding in examine(path).findings]
    assert any(planned.time in text for text in texts)
    assert not any(dead.time in text for text in texts)


def test_a_damaged_table(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(10)))
    LocalStorage(path).put(PROPERTIES_FILE, b"hoodie.table.name=t\nhoodie.table.checksum=1\n")
    assert "damaged" in texts(examine(path), "stop")[0]


def test_what_health_finds_broken_stops_a_sink(tmp_path, monkeypatch):
    engine = Engine(str(tmp_path / "t"))
    engine.write(0, rows(range(3)))
    engine.writer.stop()
    table = HudiTable.open(tmp_path / "t")
    gone = table.storage.base_uri + "/" + next(iter(Snapshot.load(table).list_file_groups("p0"))).latest_base_file.path
    assert examine(str(tmp_path / "t")).may_write
    with monkeypatch.context() as disk:
        disk.setattr(LocalStorage, "look_for_room", lambda *_: Room(100))
        assert "100 bytes are free" in texts(examine(str(tmp_path / "t")), "stop")[0]
    os.truncate(gone, 900)
    assert "batches are refused" in texts(examine(str(tmp_path / "t")), "stop")[0]
    with pytest.raises(LostDataError):
        engine.write(1, rows(range(3)))


def test_the_command(tmp_path, capsys):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(10)))
    file = tmp_path / "sink.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in OPTIONS.items()))
    assert main(["doctor", path, "--options", str(file)]) == 0
    assert "may write here" in capsys.readouterr().out
    file.write_text("hoodie.table.name=other\n")
    assert main(["doctor", path, "--options", str(file)]) == 1
    assert "will not write here" in capsys.readouterr().out
    assert main(["doctor", path, "--options", str(tmp_path / "gone")]) == 1
    assert "gone" in capsys.readouterr().err


def test_a_long_batch_says_how_far_it_is(tmp_path, monkeypatch, logs):
    import time

    from streaming.batch import progress

    monkeypatch.setattr(progress, "PROGRESS_S", 0.02)
    engine = Engine(str(tmp_path / "t"))
    inner = engine.distribute

    def slow(plan, table):
        results = inner(plan, table)
        time.sleep(0.2)
        return results

    engine.distribute = slow
    engine.write(0, rows(range(9)))
    said = [entry for entry in logs if entry["event"] == "batch_running"]
    assert len(said) >= 2
    assert said[-1]["seconds"] >= said[0]["seconds"]


def test_who_may_write_after_a_crash_is_said(tmp_path):
    from dataclasses import replace

    from faults import dying_process

    from table.inspect.doctor import examine
    from table.storage.local import LocalStorage
    from table.transaction.lease import LEASE_FOLDER, find_holder

    path = str(tmp_path / "t")
    engine = Engine(path)
    engine.write(0, rows(range(3)))
    said = [finding.text for finding in examine(path).findings]
    (told,) = [text for text in said if "holds the table" in text]
    assert "the same query may start again at once, and others in 1" in told
    engine.writer.stop()
    assert not [finding for finding in examine(path).findings if "holds the table" in finding.text]
    with dying_process():
        engine = Engine(path)
        engine.write(1, rows(range(3)))
    (told,) = [finding for finding in examine(path).findings if "holds the table" in finding.text]
    assert (told.level, "is dead: the next writer takes over" in told.text) == ("ok", True)
    # a backfill on another machine
    storage = LocalStorage(path)
    holder = find_holder(storage)
    elsewhere = replace(holder, machine="", identity=replace(holder.identity, query_id=None))
    storage.put(f"{LEASE_FOLDER}/{holder.number}", elsewhere.encode())
    (told,) = [finding for finding in examine(path).findings if "holds the table" in finding.text]
    assert told.level == "stop"
    assert "after it has ended, or in 1" in told.text
