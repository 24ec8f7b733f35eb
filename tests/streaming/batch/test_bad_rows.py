"""Validators, callbacks, and bad rows put aside exactly once with their batch."""

import os
import pickle
import threading
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine import OPTIONS, SCHEMA, Engine, form_of, key_set, rows
from faults import FaultyStorage, Fuse, PowerCut

from hudistream import HudiTable, read_bad_rows
from streaming import ArrowSink, BatchSummary, HudiSink, NullShare, RowCount, Unique
from streaming.batch import recovery
from streaming.batch.quarantine import publish
from streaming.plan.bucket_assigner import AssignRules, drop_costly
from table import BatchRefusedError, InvalidConfigError, InvalidRecordError, TaskFailedError, read_table
from table.files.base.writer import BaseFileWriter
from table.quarantine.place import STAGING
from table.storage.local import LocalStorage
from table.timeline.active_timeline import load_timeline
from table.timeline.instant import Action
from table.view.file_group import base_file_of


def mixed(good, bad):
    """Good rows, and rows with null keys, empty keys and a path outside the table."""
    wrong = pa.Table.from_pylist(
        [
            {"id": (None, "", "x")[n % 3], "p": "../elsewhere" if n % 3 == 2 else "p0", "ts": n, "v": f"bad{n}"}
            for n in bad
        ],
        schema=SCHEMA,
    )
    return pa.concat_tables([rows(good), wrong])


def put_aside(path):
    """Rows in the folder, as a reader of Parquet sees it."""
    names = [name for name in os.listdir(path) if not name.startswith("_")] if os.path.isdir(path) else []
    found = []
    for name in names:
        if name != ".hoodie":
            found += pq.read_table(os.path.join(path, name)).to_pylist()
    return found


def build(path, aside, fuse=None):
    table, quarantine = LocalStorage(path), LocalStorage(aside)
    if fuse is not None:
        table, quarantine = FaultyStorage(table, fuse), FaultyStorage(quarantine, fuse)
    return Engine(table, {"hudistream.bad.rows": "quarantine"}, aside=quarantine)


class Watched(LocalStorage):
    """Knows which files were opened, and which let go of."""

    def __init__(self, path):
        super().__init__(path)
        object.__setattr__(self, "opened", [])
        object.__setattr__(self, "let_go", [])

    def open_output(self, path, stage=None):
        self.opened.append(path)
        return super().open_output(path, stage)

    def discard(self, path, stage, output):
        self.let_go.append(path)
        super().discard(path, stage, output)


@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_a_task_that_fails_lets_go_of_its_bad_rows(tmp_path, monkeypatch, operation):
    aside = Watched(str(tmp_path / "aside"))
    options = {"hudistream.bad.rows": "quarantine", "hoodie.datasource.write.operation": operation}
    engine = Engine(str(tmp_path / "t"), options, aside=aside)
    monkeypatch.setattr(BaseFileWriter, "write", lambda *_, **__: 1 / 0)
    with pytest.raises(TaskFailedError):
        engine.write(0, mixed(range(10), range(6)))
    assert aside.opened
    assert aside.let_go == aside.opened


def test_bad_rows_go_aside_with_reason_batch_and_time(tmp_path):
    path, aside = str(tmp_path / "t"), str(tmp_path / "t_bad_rows")
    summary = build(path, aside).write(7, mixed(range(10), range(6)))
    assert key_set(read_table(path)) == key_set(rows(range(10)))
    assert (summary.rows, summary.bad_rows) == (10, 6)
    found = put_aside(aside)
    assert sorted(row["v"] for row in found) == [f"bad{n}" for n in range(6)]
    assert {row["_hudistream_batch_id"] for row in found} == {7}
    assert {row["_hudistream_sink"] for row in found} == {"default_single_writer"}
    assert {row["_hudistream_reason"] for row in found} == {
        "the record key is null or empty",
        "the partition path '../elsewhere' has an empty part, '.' or '..'",
    }
    assert all(row["_hudistream_time"].year >= 2024 for row in found)
    assert not os.path.exists(tmp_path / "elsewhere")


def test_a_batch_of_bad_rows_alone_is_committed_too(tmp_path):
    path, aside = str(tmp_path / "t"), str(tmp_path / "aside")
    engine = build(path, aside)
    engine.write(0, rows(range(3)))
    assert engine.write(1, mixed([], range(4))).bad_rows == 4
    assert build(path, aside).write(1, mixed([], range(4))).skipped
    assert len(put_aside(aside)) == 4
    assert key_set(read_table(path)) == key_set(rows(range(3)))


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)], ids=["some calls", "every call"])
def test_bad_rows_are_there_exactly_once_wherever_the_power_goes(tmp_path, step):
    fuse = Fuse()
    build(str(tmp_path / "count"), str(tmp_path / "count-aside")).write(0, rows(range(5)))
    counting = build(str(tmp_path / "count"), str(tmp_path / "count-aside"), fuse)
    counting.write(1, mixed(range(5, 10), range(3)))
    for number in range(1, len(fuse.calls) + 1, step):
        path, aside = str(tmp_path / str(number)), str(tmp_path / f"{number}-aside")
        build(path, aside).write(0, rows(range(5)))
        with pytest.raises(PowerCut):
            build(path, aside, Fuse(number, after=number % 2 == 0)).write(1, mixed(range(5, 10), range(3)))
        committed = len(load_timeline(LocalStorage(path)).completed_of(Action.COMMIT)) == 2
        assert committed or put_aside(aside) == [], f"call {number}: bad rows of a batch that nobody sees"
        build(path, aside).write(1, mixed(range(5, 10), range(3)))
        build(path, aside).write(2, rows(range(10, 12)))
        assert sorted(row["v"] for row in put_aside(aside)) == ["bad0", "bad1", "bad2"], f"call {number}"
        assert key_set(read_table(path)) == key_set(rows(range(12)))
        assert not LocalStorage(aside).list_tree(STAGING)


def refuses(reason):
    return lambda batch: reason


@pytest.mark.parametrize(
    ("validator", "batch", "message"),
    [
        (RowCount(least=20), rows(range(10)), "RowCount: the batch has 10 rows"),
        (RowCount(most=5), rows(range(10)), "RowCount: the batch has 10 rows"),
        (NullShare("v", 0.5), rows(range(10), v=None), "NullShare: 10 of 10 values of 'v' are null"),
        (Unique(("id",)), rows([1, 2, 2]), "Unique: 1 values of id come more than once"),
        (refuses("because"), rows(range(3)), "because"),
    ],
)
def test_a_validator_may_refuse_a_batch(tmp_path, validator, batch, message):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(100, 130)))
    with pytest.raises(BatchRefusedError, match=message):
        Engine(path, validators=[validator]).write(1, batch)
    timeline = load_timeline(LocalStorage(path))
    assert timeline.pending == ()
    assert key_set(read_table(path)) == key_set(rows(range(100, 130)))
    Engine(path, validators=[RowCount(1, 50), NullShare("v"), Unique(("id", "p"))]).write(1, rows(range(10)))
    assert key_set(read_table(path)) == sorted(key_set(rows(range(100, 130))) + key_set(rows(range(10))))


def test_a_validator_sees_the_new_rows_alone_and_names_unknown_columns(tmp_path):
    path = str(tmp_path / "t")
    seen = []

    def look(batch):
        seen.append(sorted(key for part in batch.read_new_rows(["id"]) for key in part.column("id").to_pylist()))
        assert batch.batch_id == 1
        assert all(stat.prev_base_file for stat in batch.stats)

    Engine(path).write(0, rows(range(30)))
    Engine(path, validators=[look]).write(1, rows(range(30, 40)))
    assert seen == [key_set(rows(range(30, 40)))]
    with pytest.raises(InvalidConfigError, match="'nope'"):
        Engine(path, validators=[NullShare("nope")]).write(2, rows(range(40, 50)))


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("block", ["avro", "parquet"])
def test_a_validator_sees_the_rows_of_log_files_and_no_deletes(tmp_path, version, block):
    path = str(tmp_path / "t")
    options = {**form_of(version, "MERGE_ON_READ"), "hoodie.logfile.data.block.format": block}
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))

    def batch(keys, ts, v, gone=False):
        return rows(keys, ts=ts, v=v).append_column(schema.field(4), pa.array([gone] * len(keys)))

    seen = []

    def look(pending):
        assert {stat.path.rpartition("/")[2][0] for stat in pending.stats} == {"."}, "log files"
        seen.append(sorted((r["id"], r["v"]) for part in pending.read_new_rows(["id", "v"]) for r in part.to_pylist()))

    Engine(path, options).write(0, batch(range(9), 1, "first"))
    Engine(path, options).write(1, batch(range(3), 2, "second"))  # log files that are there before
    changed = pa.concat_tables([batch(range(2, 5), 3, "third"), batch(range(5, 7), 3, "x", gone=True)])
    Engine(path, options, validators=[look, NullShare("v"), Unique(("id",))]).write(2, changed)
    assert seen == [[("k2", "third"), ("k3", "third"), ("k4", "third")]]
    with pytest.raises(BatchRefusedError, match="NullShare: 2 of 2 values of 'v' are null"):
        Engine(path, options, validators=[NullShare("v", 0.5)]).write(3, batch(range(2), 4, None))
    assert {row["v"] for row in read_table(path).to_pylist()} == {"first", "second", "third"}


class Collects:
    """A picklable callback."""

    seen: list = []

    def __call__(self, summary):
        Collects.seen.append(summary)


def fails(_summary):
    raise RuntimeError("the dashboard is down")


@pytest.mark.spark
def test_callbacks_get_a_frozen_summary_and_cannot_fail_a_batch(spark, tmp_path, logs):
    from streaming.metrics import PrometheusMetrics

    path = str(tmp_path / "t")
    sink = HudiSink(path, OPTIONS, callbacks=[fails, Collects(), PrometheusMetrics()], validators=[RowCount(1)])
    sink = pickle.loads(pickle.dumps(sink))
    for batch_id in range(2):
        sink(spark.range(10).selectExpr("concat('k', id) id", "'p' p", "id ts", "'v' v"), batch_id)
    assert sink.callback_failures == 2
    assert [entry["error"] for entry in logs if entry["event"] == "callback_failed"] == [
        "RuntimeError('the dashboard is down')"
    ] * 2
    first, second = Collects.seen
    assert isinstance(second, BatchSummary)
    assert (second.rows, second.files_topped_up, second.upkeep_errors) == (10, 1, ())
    assert set(second.phases) == {"prepare", "write", "commit", "after"}
    assert second.seconds == pytest.approx(sum(second.phases.values()), abs=0.01)
    assert (first.rewrite_ratio, second.rewrite_ratio) == (1.0, 2.0)
    with pytest.raises(AttributeError):
        second.rows = 1
    import prometheus_client

    text = prometheus_client.generate_latest().decode()
    assert f'hudistream_rows_total{{table="{path}"}} 20.0' in text
    assert f'hudistream_batches_total{{outcome="committed",table="{path}"}} 2.0' in text
    [*_, last] = [entry for entry in logs if entry["event"] == "batch_committed"]
    assert (last["rows"], last["table"]) == (10, path)


@pytest.mark.spark
def test_the_sink_puts_bad_rows_beside_the_table(spark, tmp_path):
    path = str(tmp_path / "t")
    sink = HudiSink(path, {**OPTIONS, "hudistream.bad.rows": "quarantine"})
    sink(spark.sql("SELECT id, 'p' p, 1L ts, 'v' v FROM VALUES ('a'), (CAST(NULL AS STRING)), ('b') AS t(id)"), 0)
    assert key_set(read_table(path)) == ["a", "b"]
    assert sink.last_batch.bad_rows == 1
    # Spark reads the folder as it is
    assert [row.asDict()["v"] for row in spark.read.parquet(path + "_bad_rows").collect()] == ["v"]


def test_upkeep_that_fails_after_the_commit_is_told_apart(tmp_path):
    from table import StorageError

    path = str(tmp_path / "t")

    class Stubborn(LocalStorage):
        def delete_metafolder(self, path):
            if "/.temp/" in path:
                raise StorageError(f"could not delete {path!r}")
            super().delete_metafolder(path)

    summary = Engine(Stubborn(path)).write(0, rows(range(3)))
    assert summary.instant_time is not None
    assert "could not delete" in summary.upkeep_errors[0]
    assert key_set(read_table(path)) == key_set(rows(range(3)))


@pytest.mark.parametrize(
    ("sizes", "expected_rows", "ratio", "kept"),
    [
        ([100, 500], 10, None, ["a", "b"]),
        ([100, 500], 10, 1.0, ["a"]),  # 10 rows of 10 bytes: 100 bytes rewritten for 100 added
        ([100, 500], 10, 0.9, []),
        ([100, 500], 100, 10.0, ["a", "b"]),  # a takes 90 rows; 500 bytes for the last 10 rows are a ratio of 5
        ([100, 500], 100, 4.0, ["a"]),
        ([1000], 10, 100.0, []),  # full
    ],
)
def test_a_small_file_is_passed_over_when_rewriting_it_costs_too_much(sizes, expected_rows, ratio, kept):
    rules = AssignRules(1000, 2000, 10)
    files = tuple(base_file_of("p", f"{name}_0-0-0_1.parquet", size) for name, size in zip("ab", sizes, strict=False))
    assert [file.file_id for file in drop_costly(files, expected_rows, rules, ratio)] == kept


@pytest.mark.spark
@pytest.mark.parametrize("who", ["callback", "validator"])
def test_a_sink_may_be_stopped_from_within_its_own_batch(spark, tmp_path, who):
    path = str(tmp_path / "t")
    seen = []

    def stop(_):
        sink.stop()
        seen.append("stopped")

    given = {"callbacks": [stop]} if who == "callback" else {"validators": [stop]}
    sink = HudiSink(path, {**OPTIONS, "hoodie.clean.automatic": "true"}, **given)
    batch = spark.sql("SELECT 'a' id, 'p' p, 1L ts, 'v' v")
    thread = threading.Thread(target=sink, args=(batch, 0), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert seen == ["stopped"]
    assert sink.callback_failures == 0
    assert not sink.last_batch.skipped
    sink.services.wait()
    sink(spark.sql("SELECT 'b' id, 'p' p, 1L ts, 'v' v"), 1)
    assert not sink.services.is_cleaning
    assert key_set(read_table(path)) == ["a", "b"]
    sink.stop()


@pytest.mark.spark
def test_a_callback_that_writes_through_its_own_sink_is_told_instead_of_waiting_for_itself(spark, tmp_path, logs):
    path = str(tmp_path / "t")
    batch = spark.sql("SELECT 'a' id, 'p' p, 1L ts, 'v' v")
    sink = HudiSink(path, OPTIONS, callbacks=[lambda _: sink.write(batch), lambda _: sink(batch, 1)])
    thread = threading.Thread(target=sink, args=(batch, 0), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert sink.callback_failures == 2
    assert all("same sink" in entry["error"] for entry in logs if entry["event"] == "callback_failed")
    assert key_set(read_table(path)) == ["a"]


LONG = {pa.decimal128(38, 18): "10.500000000000000003", pa.decimal128(38, 0): "1000000000000000"}
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}


def ordered_by(kind, *texts):
    values = pa.array([Decimal(text) for text in texts], kind)
    return pa.table({"id": [f"k{number}" for number in range(len(texts))], "ts": values})


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
@pytest.mark.parametrize("kind", LONG, ids=str)
def test_an_ordering_decimal_that_no_log_could_hold_is_refused_before_anything_is_visible(tmp_path, kind, operation):
    sink = ArrowSink(tmp_path / "t", MERGE_ON_READ, key="id", order_by="ts", operation=operation)
    sink.write(ordered_by(kind, "999999999999999", "-1"))
    told = rf"ordering field ts is {LONG[kind]}, longer than decimal\(30,15\): round or rescale it"
    with pytest.raises(InvalidRecordError, match=told):
        sink.write(ordered_by(kind, "5", LONG[kind]))
    assert len(HudiTable.open(tmp_path / "t").load_timeline().completed_writes) == 1
    sink.delete(ordered_by(kind, "0", LONG[kind]))  # by the keys alone
    sink.stop()
    assert HudiTable.open(tmp_path / "t").scan().count() == 0


def test_such_rows_are_put_aside_and_a_copy_on_write_table_takes_them(tmp_path):
    rows = ordered_by(pa.decimal128(38, 18), "5", "10.500000000000000003")
    aside = {"hudistream.bad.rows": "quarantine"}
    sink = ArrowSink(tmp_path / "mor", {**MERGE_ON_READ, **aside}, key="id", order_by="ts")
    assert sink.write(rows).bad_rows == 1
    sink.stop()
    sink = ArrowSink(tmp_path / "cow", key="id", order_by="ts")
    assert sink.write(rows).bad_rows == 0
    sink.stop()


@pytest.mark.parametrize(
    ("kind", "options", "told"),
    [
        (pa.decimal128(38, 18), MERGE_ON_READ, 1),
        (pa.decimal128(20, 2), MERGE_ON_READ, 1),
        (pa.decimal128(17, 2), MERGE_ON_READ, 0),
        (pa.decimal128(38, 18), {}, 0),
    ],
    ids=str,
)
def test_a_sink_warns_once_about_an_ordering_column_with_such_values(tmp_path, logs, kind, options, told):
    sink = ArrowSink(tmp_path / "t", options, key="id", order_by="ts")
    for _ in range(2):
        sink.write(ordered_by(kind, "5"))
    sink.stop()
    assert [one["column"] for one in logs if one["event"] == "ordering_by_long_decimal"] == ["ts"] * told


@pytest.mark.parametrize(("narrow", "wide", "shown"), [
    ((pa.int64(), 2**53 + 1), (pa.float64(), 1.5), ["9007199254740993", "1.5"]),
    ((pa.int64(), 7), (pa.string(), "x"), ["7", "x"]),
    ((pa.int64(), 7), (pa.float64(), 1.5), [7.0, 1.5]),
    ((pa.int32(), 7), (pa.int64(), 2**40), [7, 2**40]),
    ((pa.list_(pa.int64()), [7]), (pa.string(), "x"), ["[7]", "x"]),
    ((pa.binary(), b"\xff"), (pa.int64(), 1), ["b'\\xff'", "1"]),
])  # fmt: skip
def test_rows_that_were_put_aside_with_other_types_are_read_together(tmp_path, narrow, wide, shown):
    """A column was widened, or two tables put their bad rows into one folder."""
    folder = {"hudistream.bad.rows.path": str(tmp_path / "aside"), "hudistream.bad.rows": "quarantine"}
    for name, (kind, value) in (("one", narrow), ("two", wide)):
        with ArrowSink(str(tmp_path / name), folder, key="id") as sink:
            sink.write(pa.table({"id": ["a", None], "n": pa.array([value, value], kind)}))
    found = read_bad_rows(str(tmp_path / "one"), folder=folder["hudistream.bad.rows.path"])
    assert found["n"].to_pylist() == shown


SHARED = {
    "hudistream.bad.rows": "quarantine",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms": "1000",
}


def test_bad_rows_that_another_writer_has_just_staged_are_left_alone(tmp_path, monkeypatch):
    """The other one begins a batch and writes its bad rows after this one has listed the timeline."""
    path, table = str(tmp_path / "t"), pa.table({"id": ["a", None], "v": ["a", "bad-a"]})
    staged, goes_on, running = threading.Event(), threading.Event(), []

    def wait(_batch):
        if running:
            staged.set()
            assert goes_on.wait(60)

    def sink(name, **more):
        options = {**SHARED, "hoodie.datasource.write.streaming.checkpoint.identifier": name}
        return ArrowSink(path, options, key="id", operation="insert", **more)

    slow, quick = sink("slow", validators=[wait]), sink("quick")
    quick.write(table)
    real = recovery.finish_quarantine

    def finish(*arguments):
        if not running and threading.current_thread() is threading.main_thread():
            other = pa.table({"id": ["b", None], "v": ["b", "bad-b"]})
            running.append(threading.Thread(target=lambda: slow.write(other)))
            running[0].start()
            assert staged.wait(60)
        real(*arguments)

    monkeypatch.setattr(recovery, "finish_quarantine", finish)
    quick.write(pa.table({"id": ["c", None], "v": ["c", "bad-c"]}))
    goes_on.set()
    running[0].join(60)
    assert sorted(read_bad_rows(path).column("v").to_pylist()) == ["bad-a", "bad-b", "bad-c"]
    assert sorted(read_table(path).column("v").to_pylist()) == ["a", "b", "c"]


def test_a_file_of_bad_rows_that_is_neither_staged_nor_published_is_told(tmp_path, logs):
    storage = LocalStorage(str(tmp_path))
    storage.put("there.parquet", b"")
    publish(storage, "t-0a1b2c3d", "20260101000000001", ("gone.parquet", "there.parquet"))
    assert [entry["file"] for entry in logs if entry["event"] == "bad_rows_missing"] == ["gone.parquet"]
