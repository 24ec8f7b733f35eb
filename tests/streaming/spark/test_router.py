"""One stream into many tables: each exactly once, with its own columns, and none in the way of another."""

import json
import os
import pickle
import shutil
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stream import run
from tiers import quick

from hudistream import (
    ArrowSink,
    HudiRouter,
    HudiTable,
    InvalidConfigError,
    InvalidRecordError,
    RouterLimits,
    read_table,
)
from streaming.router import split, waiting_room, write_tables
from streaming.router.aside import ASIDE_FOLDER, OWN_FOLDER, list_waiting
from streaming.router.routed_table import RoutedTable
from streaming.spark import query_watch
from streaming.spark.read_hudi import read_hudi
from table import clock
from table.errors import (
    BatchOrderError,
    BatchRefusedError,
    CommitConflictError,
    HudiError,
    SchemaMismatchError,
    StorageError,
    TableHeldError,
)
from table.options.write_groups import DEFAULT_SINK_ID
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.storage.opening import open_storage
from table.transaction.last_batch import find_last_batch
from table.transaction.lease import find_holder

QUERY, OTHER = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
KEYS = {"key": "id", "order_by": "ts"}
COLUMNS = "id bigint, name string, ts bigint, a string, b bigint"


def frame(spark, rows, schema=COLUMNS):
    return spark.createDataFrame(rows, schema)


def router_of(path, table="name", options=None, **more):
    return HudiRouter(str(path), table, options, **{**KEYS, **more})


@contextmanager
def within(spark, query_id):
    """What Spark does around the batches of a query."""
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", query_id)
    try:
        yield
    finally:
        spark.sparkContext.setLocalProperty("sql.streaming.queryId", None)


def ids(root, name):
    return sorted(read_table(os.path.join(root, name), columns=["id"]).column("id").to_pylist())


def columns(root, name):
    return [field for field in HudiTable.open(os.path.join(root, name)).schema.names if field[0] != "_"]


def own_files(root):
    """What the router has in its folder, without its lease."""
    return sorted(
        file
        for folder, _, files in os.walk(os.path.join(root, OWN_FOLDER))
        for file in files
        if ".hoodie" not in folder and not file.startswith(".")
    )


class Refuses:
    """A validator that refuses the batches of some tables; a test changes which."""

    def __init__(self, *names):
        self.names = set(names)

    def __call__(self, batch):
        return "not now" if batch.table.rsplit("/", 1)[-1] in self.names else None


def test_each_table_gets_its_rows_and_its_own_columns(spark, tmp_path):
    router = router_of(tmp_path)
    router(frame(spark, [(1, "x", 1, "p", None), (2, "y", 1, None, 7), (3, "x", 1, None, None)]), 0)
    assert (ids(tmp_path, "x"), ids(tmp_path, "y")) == ([1, 3], [2])
    assert (columns(tmp_path, "x"), columns(tmp_path, "y")) == (["id", "ts", "a"], ["id", "ts", "b"])
    # a column that the table has stays, also where the batch has no value in it; a new one comes with its first value
    router(frame(spark, [(4, "x", 2, None, 5), (2, "y", 2, None, 8)]), 1)
    assert columns(tmp_path, "x") == ["id", "ts", "a", "b"]
    assert read_table(tmp_path / "y", columns=["id", "b"]).to_pylist() == [{"id": 2, "b": 8}]
    router.stop()
    assert own_files(tmp_path) == []


def test_it_leaves_its_tables_when_its_query_has_ended(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(query_watch, "_EVERY_S", 0.05)
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 9).load()
    router = router_of(tmp_path / "r")
    for _ in range(2):  # and goes on with the query that is started again
        run(source.selectExpr("value AS id", "'x' AS name", "value AS ts"), router, str(tmp_path / "c"))
        until = time.monotonic() + 60
        while router._lease.is_held or find_holder(LocalStorage(str(tmp_path / "r" / "x"))).identity is not None:
            assert time.monotonic() < until
            time.sleep(0.05)
    assert ids(tmp_path / "r", "x")[0] == 0


def test_it_keeps_its_tables_for_a_second_query(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(query_watch, "_EVERY_S", 0.05)
    spark.range(9).selectExpr("id", "'x' AS name", "id AS ts").write.parquet(str(tmp_path / "in"))
    rows = spark.readStream.schema("id long, name string, ts long").parquet(str(tmp_path / "in"))
    router = router_of(tmp_path / "r")
    run(rows, router, str(tmp_path / "c1"))
    until = time.monotonic() + 60
    while router._lease.is_held:
        assert time.monotonic() < until
        time.sleep(0.05)
    shutil.rmtree(tmp_path / "r" / "x")
    query = rows.writeStream.foreachBatch(router).option("checkpointLocation", str(tmp_path / "c2")).start()
    try:
        query.processAllAvailable()
        time.sleep(1)
        assert find_holder(LocalStorage(str(tmp_path / "r" / "x"))).identity.query_id == query.id
        assert router._lease.is_held
    finally:
        query.stop()
        router.stop()


def test_it_leaves_its_tables_when_its_query_failed_with_its_first_batch(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(query_watch, "_EVERY_S", 0.05)
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 9).load()
    router = router_of(tmp_path / "r", validators=[Refuses("x")])
    with pytest.raises(Exception, match="not now"):
        run(source.selectExpr("value AS id", "'x' AS name", "value AS ts"), router, str(tmp_path / "c"))
    until = time.monotonic() + 60
    while router._lease.is_held:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_batch_that_comes_again_is_in_each_table_once(spark, tmp_path):
    options = {"hoodie.datasource.write.operation": "insert"}
    rows = frame(spark, [(n, "xyz"[n % 3], 1, "a", None) for n in range(30)])
    for _ in range(2):
        router = router_of(tmp_path, options=options)
        router(rows, 0)
        router.stop()
    assert sorted(number for name in "xyz" for number in ids(tmp_path, name)) == list(range(30))


def test_a_stream_that_is_cut_off_between_two_tables_goes_on(spark, tmp_path, monkeypatch):
    source = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 90)
        .option("numPartitions", 2)
        .load()
        .selectExpr("value AS id", "concat('t', value % 3) AS name", "value AS ts")
    )
    options = {"hoodie.datasource.write.operation": "insert"}
    checkpoint = str(tmp_path / "c")

    class Cancelled(RoutedTable):
        def write_rows(self, batch, columns):
            if self._path.endswith("t1"):
                raise RuntimeError("Job 7 cancelled")
            return super().write_rows(batch, columns)

    router = router_of(tmp_path / "r", options=options)
    run(source, router, checkpoint)
    router.stop()
    with monkeypatch.context() as patched:
        patched.setattr(write_tables, "RoutedTable", Cancelled)
        cut = router_of(tmp_path / "r", options=options)
        with pytest.raises(Exception, match="Job 7 cancelled"):
            run(source, cut, checkpoint)
        cut.stop()
    assert len(ids(tmp_path / "r", "t0")) > len(ids(tmp_path / "r", "t1"))
    run(source, router_of(tmp_path / "r", options=options), checkpoint)
    found = sorted(number for name in ("t0", "t1", "t2") for number in ids(tmp_path / "r", name))
    assert found == list(range(len(found)))
    assert len(found) >= 180


def test_a_struct_is_unfolded(spark, tmp_path):
    schema = "id bigint, name string, ts bigint, body struct<a:string,b:bigint>"
    router = router_of(tmp_path, unfold="body")
    router(frame(spark, [(1, "x", 1, ("p", None)), (2, "y", 1, (None, 7)), (3, "y", 1, None)], schema), 0)
    assert (columns(tmp_path, "x"), columns(tmp_path, "y")) == (["id", "ts", "a"], ["id", "ts", "b"])
    rows = read_table(tmp_path / "y", columns=["id", "b"]).to_pylist()
    assert sorted(rows, key=lambda row: row["id"]) == [{"id": 2, "b": 7}, {"id": 3, "b": None}]


def test_json_is_unfolded_by_the_schema_of_its_table(spark, tmp_path):
    schemas = {
        "x": "id bigint, ts bigint, a string",
        "y": pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("b", pa.float64())]),
    }
    rows = [
        ("x", '{"id": 1, "ts": 1, "a": "p", "z": 0}'),
        ("y", '{"id": 2, "ts": 1, "b": 2.5}'),
        ("x", '{"ts":1,"id":3}'),
    ]
    router_of(tmp_path, unfold="body", schemas=schemas)(frame(spark, rows, "name string, body string"), 0)
    found = sorted(read_table(tmp_path / "x", columns=["id", "a"]).to_pylist(), key=lambda row: row["id"])
    assert found == [{"id": 1, "a": "p"}, {"id": 3, "a": None}]
    assert read_table(tmp_path / "y", columns=["id", "b"]).to_pylist() == [{"id": 2, "b": 2.5}]


def test_what_does_not_fit_is_refused_by_name(spark, tmp_path):
    rows = frame(spark, [("x", "{}")], "name string, body string")
    with pytest.raises(InvalidConfigError, match="name the columns of each table in schemas"):
        router_of(tmp_path / "1", unfold="body")(rows, 0)
    with pytest.raises(InvalidConfigError, match="unfold='other': the batch has the columns body"):
        router_of(tmp_path / "2", unfold="other")(rows, 0)
    with pytest.raises(SchemaMismatchError, match="schemas names the columns q"):
        router_of(tmp_path / "3", schemas={"x": "id bigint, ts bigint, q bigint"})(
            frame(spark, [(1, "x", 1, None, 1)]), 0
        )
    with pytest.raises(InvalidConfigError, match="table='nam': the batch has the columns"):
        router_of(tmp_path / "4", "nam")(rows, 0)
    with pytest.raises(InvalidConfigError, match="in a router"):
        router_of(tmp_path / "5", operation="insert_overwrite")
    with pytest.raises(InvalidConfigError, match=r"hoodie\.nonsense"):
        router_of(tmp_path / "6", tables={"x": {"hoodie.nonsense": "1"}})


BAD_NAMES = [None, "", "..", ".", "a/b", "a\\b", "_hidden", ".hoodie", " a", "a ", "a.", "x" * 256, "a\n"]


def test_rows_whose_name_cannot_be_a_folder_are_bad_rows(spark, tmp_path):
    router = router_of(tmp_path)
    rows = [(1, "good", 1, "a", 1), *((2, name, 1, "a", 1) for name in BAD_NAMES)]
    with pytest.raises(InvalidRecordError, match=f"{len(BAD_NAMES)} rows of batch 0 name no table"):
        router(frame(spark, rows), 0)
    assert [entry for entry in os.listdir(tmp_path) if entry != OWN_FOLDER] == []


def test_names_of_people_and_databases_are_good(spark, tmp_path):
    names = ["shop.public.orders", "Ümlaut", "a b", "2024", "x-y"]
    router_of(tmp_path)(frame(spark, [(n, name, 1, "a", 1) for n, name in enumerate(names)]), 0)
    assert [ids(tmp_path, name) for name in names] == [[n] for n in range(len(names))]


def test_a_batch_that_would_make_too_many_tables_is_refused(spark, tmp_path):
    router = router_of(tmp_path, limits=RouterLimits(new_tables=3))
    router(frame(spark, [(n, f"t{n}", 1, "a", 1) for n in range(3)]), 0)
    with pytest.raises(InvalidConfigError, match=r"would make 4 tables \(t3, t4, t5, t6"):
        router(frame(spark, [(n, f"t{n}", 1, "a", 1) for n in range(7)]), 1)
    assert not (tmp_path / "t3").exists()
    router(frame(spark, [(n, f"t{n}", 1, "a", 1) for n in range(6)]), 1)  # three are there, three are new
    assert ids(tmp_path, "t5") == [5]


def test_tables_have_options_of_their_own(spark, tmp_path):
    own = {
        "x": {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.datasource.write.partitionpath.field": "a"}
    }
    router_of(tmp_path, tables=own)(frame(spark, [(1, "x", 1, "p", 1), (2, "y", 1, "p", 1)]), 0)
    found = HudiTable.open(tmp_path / "x").config
    assert (found.table_type, found.partition_fields) == ("MERGE_ON_READ", ("a",))
    assert HudiTable.open(tmp_path / "y").config.partition_fields == ()


def test_a_function_may_choose_the_table(spark, tmp_path):
    from pyspark.sql import functions as F

    router_of(tmp_path, lambda rows: F.concat(rows["name"], F.lit("-"), rows["b"]))(
        frame(spark, [(1, "x", 1, None, 1), (2, "x", 1, None, 2)]), 0
    )
    assert (ids(tmp_path, "x-1"), ids(tmp_path, "x-2")) == ([1], [2])
    assert "name" in columns(tmp_path, "x-1")


def patient(monkeypatch, seconds=0.0):
    """Failing tables are tried again at once."""
    monkeypatch.setattr(write_tables, "_LONGEST_WAIT_S", seconds)


def test_a_table_that_fails_waits_and_the_others_go_on(spark, tmp_path, monkeypatch, logs):
    patient(monkeypatch)
    refuses, failed = Refuses(), []
    router = router_of(tmp_path, validators=[refuses], on_failure=[failed.append])
    router(frame(spark, [(0, "x", 0, "a", 1), (0, "y", 0, "a", 1)]), 0)
    refuses.names = {"x"}
    for batch in (1, 2, 3):
        router(frame(spark, [(1, "x", batch, f"a{batch}", 1), (batch, "y", batch, "a", 1)]), batch)
    assert (ids(tmp_path, "x"), ids(tmp_path, "y")) == ([0], [0, 1, 2, 3])
    assert "not now" in router.failing["x"]
    assert len(failed) == 3
    assert [entry["batch_id"] for entry in logs if entry["event"] == "table_set_aside"] == [1, 2, 3]
    refuses.names = set()
    router(frame(spark, [(9, "y", 9, "a", 1)]), 4)  # no row for x: what waits is written all the same
    assert router.failing == {}
    found = HudiTable.open(tmp_path / "x").scan(columns=["a", "ts"], where=[("id", "=", 1)]).to_arrow()
    assert found.to_pylist() == [{"a": "a3", "ts": 3}]
    # one commit for each batch, in their order
    assert HudiTable.open(tmp_path / "x").checkpoints().column("batch_id").to_pylist() == [3]
    assert HudiTable.open(tmp_path / "x").history().column("action").to_pylist().count("commit") == 4
    assert own_files(tmp_path) == []


def test_rows_that_wait_outlive_the_process_and_a_batch_that_comes_again(spark, tmp_path, monkeypatch):
    patient(monkeypatch)
    options = {"hoodie.datasource.write.operation": "insert"}
    refuses = Refuses()
    router = router_of(tmp_path, options=options, validators=[refuses])
    router(frame(spark, [(0, "x", 0, "a", 1), (0, "y", 0, "a", 1)]), 0)
    refuses.names = {"x"}
    batch = frame(spark, [(1, "x", 1, "a", 1), (1, "y", 1, "a", 1)])
    router(batch, 1)
    router.stop()
    again = router_of(tmp_path, options=options, validators=[refuses])
    again(batch, 1)  # the process died before Spark noted the batch
    assert (ids(tmp_path, "x"), ids(tmp_path, "y")) == ([0], [0, 1])
    again.stop()
    healed = router_of(tmp_path, options=options)
    healed(frame(spark, [(2, "x", 2, "a", 1)]), 2)
    assert (ids(tmp_path, "x"), ids(tmp_path, "y")) == ([0, 1, 2], [0, 1])
    assert own_files(tmp_path) == []


def test_a_table_that_fails_for_too_long_fails_the_query(spark, tmp_path, monkeypatch):
    patient(monkeypatch)
    refuses = Refuses("x")
    router = router_of(tmp_path, validators=[refuses], limits=RouterLimits(batches_aside=2))
    for batch in range(2):
        router(frame(spark, [(batch, "x", 1, "a", 1), (batch, "y", 1, "a", 1)]), batch)
    with pytest.raises(HudiError, match="2 batches wait for the table 'x', which fails: .*not now"):
        router(frame(spark, [(2, "x", 1, "a", 1), (2, "y", 1, "a", 1)]), 2)
    assert ids(tmp_path, "y") == [0, 1, 2]
    refuses.names = set()
    router(frame(spark, [(2, "x", 1, "a", 1), (2, "y", 1, "a", 1)]), 2)
    assert (ids(tmp_path, "x"), ids(tmp_path, "y")) == ([0, 1, 2], [0, 1, 2])


def test_where_no_table_was_ever_written_the_error_is_raised(spark, tmp_path):
    router = router_of(tmp_path, validators=[Refuses("x", "y")])
    with pytest.raises(BatchRefusedError):
        router(frame(spark, [(0, "x", 0, "a", 1), (0, "y", 0, "a", 1)]), 0)
    assert own_files(tmp_path) == []


def test_a_failing_table_is_not_tried_with_every_batch(spark, tmp_path, monkeypatch):
    later = SimpleNamespace(monotonic_s=lambda: clock.monotonic_s() + 1000)
    monkeypatch.setattr(waiting_room, "clock", later)  # the next attempt is due long after the test
    calls = []

    def refuse(batch):
        calls.append(batch.batch_id)
        return "never" if batch.table.endswith("x") and batch.batch_id else None

    router = router_of(tmp_path, validators=[refuse])
    for batch in range(4):
        router(frame(spark, [(batch, "x", 1, "a", 1)]), batch)
    assert calls == [0, 1]
    assert sorted(os.listdir(tmp_path / OWN_FOLDER / ASIDE_FOLDER / "x")) == [
        f"{batch:020d}.json" for batch in (1, 2, 3)
    ]


@pytest.mark.parametrize("small_bytes", quick(1, [1 << 30, 0]))
def test_rows_that_are_too_many_for_the_driver_are_written_on_the_cluster(spark, tmp_path, monkeypatch, small_bytes):
    monkeypatch.setattr(write_tables, "_SMALL_BYTES", small_bytes)
    monkeypatch.setattr(split, "_INLINE_BYTES", 4000)
    rows = spark.range(0, 3000, 1, 3).selectExpr(
        "id", "if(id % 10 = 0, 'few', 'many') AS name", "id AS ts", "repeat('v', 50) AS a", "id % 7 AS b"
    )
    options = {"hudistream.task.memory.bytes": "20000"}
    router = router_of(tmp_path, options=options)
    router(rows, 0)
    router(rows.selectExpr("id", "name", "ts + 1 AS ts", "'w' AS a", "b"), 1)
    assert ids(tmp_path, "few") == list(range(0, 3000, 10))
    assert ids(tmp_path, "many") == [n for n in range(3000) if n % 10]
    assert set(read_table(tmp_path / "many", columns=["a"]).column("a").to_pylist()) == {"w"}
    assert own_files(tmp_path) == []


def test_the_last_row_of_a_key_stays_where_nothing_orders_them(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(split, "_INLINE_BYTES", 0)
    rows = frame(spark, [(n % 5, "xy"[n % 2], 1, f"a{n}", 1) for n in range(200)]).coalesce(1)
    HudiRouter(str(tmp_path), "name", key="id")(rows, 0)
    found = {row["id"]: row["a"] for row in read_table(tmp_path / "x", columns=["id", "a"]).to_pylist()}
    assert found == {n % 5: f"a{n}" for n in range(0, 200, 2)}


def test_files_of_a_batch_that_was_cut_off_are_swept(spark, tmp_path):
    left = tmp_path / OWN_FOLDER / "staged" / "7-x"
    left.mkdir(parents=True)
    (left / "a.arrow").write_bytes(b"half")
    router_of(tmp_path)(frame(spark, [(1, "x", 1, "a", 1)]), 0)
    assert own_files(tmp_path) == []


def test_two_routers_below_one_folder_are_refused(spark, tmp_path):
    from table.transaction.heartbeat import WriterIdentity
    from table.transaction.lease import Lease

    router = router_of(tmp_path)
    other = Lease(LocalStorage(str(tmp_path / OWN_FOLDER)), router._template.shared.heartbeat)
    other.hold(WriterIdentity("router", "another query", other.owner))
    other.is_busy = True
    with pytest.raises(CommitConflictError, match="another router writes the tables below"):
        router(frame(spark, [(1, "x", 1, "a", 1)]), 0)
    other.release()
    router(frame(spark, [(1, "x", 1, "a", 1)]), 0)
    assert ids(tmp_path, "x") == [1]


def test_a_file_that_cannot_be_deleted_does_not_make_written_rows_fail(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(split, "_INLINE_BYTES", 0)
    delete = LocalStorage._delete

    def refuse(storage, path):
        if path.endswith(".arrow"):
            raise StorageError("the store refuses")
        return delete(storage, path)

    router = router_of(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "_delete", refuse)
        router(frame(spark, [(0, "x", 1, "a", 1)]), 0)
        router(frame(spark, [(1, "x", 1, "a", 1)]), 1)
    assert router.failing == {}
    assert ids(tmp_path, "x") == [0, 1]
    router.stop()
    router(frame(spark, [(2, "x", 1, "a", 1)]), 2)  # takes the folder anew, and sweeps it
    assert own_files(tmp_path) == []


def test_a_router_that_takes_the_folder_again_looks_what_waits_now(spark, tmp_path, monkeypatch):
    patient(monkeypatch)
    refuses = Refuses()
    router = router_of(tmp_path, validators=[refuses])
    router(frame(spark, [(0, "x", 0, "a", 1)]), 0)
    refuses.names = {"x"}
    router(frame(spark, [(1, "x", 1, "a", 1)]), 1)
    assert list(router.failing) == ["x"]
    router.stop()
    other = router_of(tmp_path)
    other(frame(spark, [(2, "x", 2, "a", 1)]), 2)
    other.stop()
    refuses.names = set()
    router(frame(spark, [(3, "x", 3, "a", 1)]), 3)
    assert router.failing == {}
    assert ids(tmp_path, "x") == [0, 1, 2, 3]


def test_a_router_that_was_taken_over_sets_nothing_aside(spark, tmp_path, monkeypatch):
    refuses = Refuses()
    router = router_of(tmp_path, validators=[refuses])
    router(frame(spark, [(0, "x", 1, "a", 1)]), 0)

    def taken_over():
        raise TableHeldError("taken over")

    refuses.names = {"x"}
    monkeypatch.setattr(router._lease, "confirm", taken_over)
    with pytest.raises(TableHeldError):
        router(frame(spark, [(1, "x", 1, "a", 1)]), 1)
    assert not (tmp_path / OWN_FOLDER / ASIDE_FOLDER).exists()


def test_tables_without_rows_give_back_threads_and_leases(spark, tmp_path):
    router = router_of(tmp_path, limits=RouterLimits(open_tables=3))
    before = set(threading.enumerate())
    names = [f"t{n}" for n in range(12)]
    router(frame(spark, [(n, name, 1, "a", 1) for n, name in enumerate(names)]), 0)
    assert len(router._writers) <= 7  # three, and those that were written at the same time
    router(frame(spark, [(0, "t0", 2, "a", 1)]), 1)
    assert len(router._writers) <= 4
    router.stop()
    assert len(router._writers) == 0
    deadline = time.monotonic() + 10
    while left := [thread.name for thread in set(threading.enumerate()) - before if "hudistream" in thread.name]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    idle = router_of(tmp_path, limits=RouterLimits(idle_s=0.0))
    idle(frame(spark, [(0, "t0", 3, "a", 1)]), 2)
    idle(frame(spark, [(1, "t1", 3, "a", 1)]), 3)
    deadline = time.monotonic() + 10
    while len(idle._writers):  # a table whose services run is kept
        assert time.monotonic() < deadline
        idle._writers.close_idle()


def test_a_router_travels(spark, tmp_path):
    router = pickle.loads(pickle.dumps(router_of(tmp_path)))
    router(frame(spark, [(1, "x", 1, "a", 1)]), 0)
    assert ids(tmp_path, "x") == [1]


NAMES = ["a", "a#b", "%41", "A", "%2e%2e%2foutside", "x%20y", "{a}[b]", "ü ~$&;=+,@'()!"]


@pytest.mark.parametrize("is_address", quick(1, [True, False]), ids=["an address", "a folder"])
def test_a_name_is_not_parsed_as_part_of_an_address(spark, tmp_path, is_address):
    root = tmp_path / "la#ke"
    given = f"file://{tmp_path}/la%23ke" if is_address else str(root)
    router = router_of(given, options={"hudistream.bad.rows": "quarantine"})
    rows = [(number, NAMES[number % len(NAMES)], 1, "a", 1) for number in range(32)]
    router(frame(spark, [*rows, *((None, name, 1, "a", 1) for name in NAMES)]), 0)
    router.stop()
    for number, name in enumerate(NAMES):
        assert ids(root, name) == list(range(number, 32, len(NAMES)))
        assert len(list((root / f"{name}_bad_rows").glob("*.parquet"))) == 1
        assert read_hudi(spark, str(root / name)).count() == 4
    assert os.listdir(tmp_path) == ["la#ke"]
    tables = {entry.removesuffix("_bad_rows") for entry in os.listdir(root) if entry != OWN_FOLDER}
    assert tables == set(NAMES)


def test_rows_without_a_table_are_bad_rows_and_the_stream_goes_on(spark, tmp_path):
    names = ["x", *BAD_NAMES, "x_bad_rows"]
    rows = frame(spark, [(number, name, 1, "a", 1) for number, name in enumerate(names)])
    with within(spark, QUERY):
        for _ in range(2):  # the process died before Spark noted the batch
            router = router_of(tmp_path, bad_rows="quarantine")
            router(rows, 0)
            router.stop()
        router(frame(spark, [(100, "x", 1, "a", 1)]), 1)
        router.stop()
    assert ids(tmp_path, "x") == [0, 100]
    (file,) = (tmp_path / "_bad_rows").glob("*.parquet")
    found = {row["id"]: row["_hudistream_table"] for row in pq.read_table(file).to_pylist()}
    assert found == dict(enumerate(names[1:], 1))
    assert sorted(os.listdir(tmp_path)) == sorted([OWN_FOLDER, "_bad_rows", "x"])
    assert own_files(tmp_path) == []


def test_a_batch_whose_rows_have_no_table_names_them_and_leaves_no_files(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(split, "_INLINE_BYTES", 0)
    with pytest.raises(InvalidRecordError, match=r"2 rows of batch 0 name no table, for example null, '\.\./y'"):
        router_of(tmp_path)(frame(spark, [(1, "x", 1, "a", 1), (2, None, 1, "a", 1), (3, "../y", 1, "a", 1)]), 0)
    assert own_files(tmp_path) == []


def test_a_second_query_on_one_router_is_refused(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(split, "_INLINE_BYTES", 0)
    router, rows = router_of(tmp_path), frame(spark, [(1, "x", 1, "a", 1)])
    with within(spark, QUERY):
        router(rows, 0)
    with within(spark, OTHER), pytest.raises(InvalidConfigError, match=f"batch 1 is of the query {OTHER}, and this"):
        router(frame(spark, [(2, "x", 1, "a", 1)]), 1)
    assert ids(tmp_path, "x") == [1]
    assert own_files(tmp_path) == []
    router.stop()
    with within(spark, OTHER):  # it takes the place of the first one
        router(frame(spark, [(2, "x", 1, "a", 1)]), 1)
    assert ids(tmp_path, "x") == [1, 2]


@pytest.mark.parametrize("is_old", quick(1, [False, True]), ids=["this version", "an older version"])
def test_batches_of_two_queries_with_one_number_wait_side_by_side(spark, tmp_path, monkeypatch, is_old):
    """Each query has a name of its own. What an older version set aside tells no name: it gets the router's."""
    patient(monkeypatch)
    refuses, options = Refuses("x"), {"hoodie.datasource.write.operation": "insert"}
    for number, query_id in enumerate((QUERY, OTHER)):
        own = {"hoodie.datasource.write.streaming.checkpoint.identifier": "s" if is_old else f"s{number}"}
        router = router_of(tmp_path, options={**options, **own}, validators=[refuses])
        with within(spark, query_id):
            for batch in range(2):
                at = 10 * number + batch
                following = batch + (2 if is_old and number else 0)  # under one name the numbers must go on
                router(frame(spark, [(at, name, at, "a", 1) for name in ("y", "x")]), following)
            if number:
                refuses.names = set()
                router(frame(spark, [(20, "x", 20, "a", 1)]), 5)
        router.stop()
        if is_old and not number:
            make_older(tmp_path / OWN_FOLDER, "x")
    assert ids(tmp_path, "y") == [0, 1, 10, 11]
    assert ids(tmp_path, "x") == [0, 1, 10, 11, 20]
    assert own_files(tmp_path) == []


def make_older(folder, name):
    """The records of a table as versions before this one wrote them."""
    for path in (folder / ASIDE_FOLDER / name).iterdir():
        document = {key: json.loads(path.read_text())[key] for key in ("query_id", "error", "pieces")}
        path.with_name(f"{path.name[:20]}.json").write_text(json.dumps({"version": 1, **document}))
        path.unlink()


def test_what_can_never_succeed_is_raised_and_does_not_wait(spark, tmp_path):
    with within(spark, QUERY):
        first = router_of(tmp_path)
        first(frame(spark, [(1, "x", 1, "a", 1)]), 5)
        first.stop()
    router = router_of(tmp_path, validators=[Refuses("z")])
    with within(spark, OTHER):
        router(frame(spark, [(1, "y", 1, "a", 1)]), 0)
        with pytest.raises(BatchOrderError, match="batch 1 of sink .* is not above batch 5"):
            router(frame(spark, [(2, name, 1, "a", 1) for name in "xyz"]), 1)
    assert ids(tmp_path, "y") == [1, 2]
    assert router.failing == {}
    assert own_files(tmp_path) == []


def test_a_batch_that_waits_and_can_never_be_written_tells_where_its_rows_are(spark, tmp_path, monkeypatch):
    patient(monkeypatch)
    refuses = Refuses("x")
    router = router_of(tmp_path, validators=[refuses])
    router(frame(spark, [(1, "x", 1, "a", 1), (1, "y", 1, "a", 1)]), 3)
    with ArrowSink(str(tmp_path / "x"), **KEYS) as sink:
        sink.write(pa.table({"id": [7], "ts": [1]}), 9)
    refuses.names = set()
    with pytest.raises(BatchOrderError, match="is not above batch 9.*The batch waits below") as raised:
        router(frame(spark, [(2, "y", 1, "a", 1)]), 4)
    folder = open_storage(str(tmp_path / OWN_FOLDER))
    (waiting,) = list_waiting(folder)["x"]
    assert waiting.files[0] in str(raised.value)
    assert waiting.pieces[0].open(folder).read_all()["id"].to_pylist() == [1]


def position(number):
    return json.dumps({"orders": {"0": number}}, separators=(",", ":"))


def write_checkpoint(folder, query_id, first, ends):
    """As Spark writes it for a query that reads Kafka from `first` on."""
    for name in ("offsets", "sources/0"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").write_text(json.dumps({"id": query_id}))
    (folder / "sources" / "0" / "0").write_bytes(b"\0v1\n" + position(first).encode())
    for number, end in enumerate(ends):
        (folder / "offsets" / str(number)).write_text(f'v1\n{{"batchTimestampMs":1}}\n{position(end)}')


def last_of(root, name):
    return find_last_batch(Snapshot.load(HudiTable.open(os.path.join(root, name))), DEFAULT_SINK_ID)


@pytest.mark.parametrize(
    "small_bytes", [pytest.param(0, marks=pytest.mark.slow), 1 << 30], ids=["on the cluster", "in the driver"]
)
def test_a_router_records_offsets_as_sinks_do(spark, tmp_path, monkeypatch, small_bytes):
    monkeypatch.setattr(write_tables, "_SMALL_BYTES", small_bytes)
    patient(monkeypatch)
    root, refuses = tmp_path / "r", Refuses("y")
    write_checkpoint(tmp_path / "c", QUERY, 5, (10, 20, 30))
    options = {"hudistream.checkpoint.location": str(tmp_path / "c")}
    router = router_of(root, options=options, validators=[refuses])
    with within(spark, QUERY):
        for batch in range(2):
            router(frame(spark, [(batch, name, 1, "a", 1) for name in "xy"]), batch)
        assert (last_of(root, "x").positions, last_of(root, "x").batch_id) == ((position(20),), 1)
        shutil.rmtree(tmp_path / "c" / "offsets")  # Spark keeps those of a hundred batches
        waiting = list_waiting(open_storage(str(root / OWN_FOLDER)))["y"]
        assert [(each.positions.start, each.positions.end) for each in waiting] == [
            ((position(5),), (position(10),)),
            ((position(10),), (position(20),)),
        ]
        refuses.names = set()
        router(frame(spark, [(9, "x", 1, "a", 1)]), 2)
    router.stop()
    assert (last_of(root, "y").positions, last_of(root, "y").batch_id) == ((position(20),), 1)
    assert ids(root, "y") == [0, 1]
    write_checkpoint(tmp_path / "d", OTHER, 20, (40,))  # another query goes on where the table ends
    router = router_of(root, options={"hudistream.checkpoint.location": str(tmp_path / "d")})
    with within(spark, OTHER):
        router(frame(spark, [(7, "y", 1, "a", 1)]), 0)
    assert (ids(root, "y"), last_of(root, "y").query_id) == ([0, 1, 7], OTHER)


def test_positions_of_another_query_are_refused(spark, tmp_path):
    write_checkpoint(tmp_path / "c", QUERY, 5, (10,))
    router = router_of(tmp_path / "r", options={"hudistream.checkpoint.location": str(tmp_path / "c")})
    with within(spark, OTHER), pytest.raises(InvalidConfigError, match=f"is the checkpoint of the query {QUERY}"):
        router(frame(spark, [(0, "x", 1, "a", 1)]), 0)
    assert not (tmp_path / "r" / "x").exists()


@pytest.mark.parametrize("is_healed", [False, True], ids=["the table fails again", "the table is well again"])
def test_a_record_whose_answer_was_lost_is_found_and_keeps_its_rows(spark, tmp_path, monkeypatch, is_healed):
    patient(monkeypatch)
    monkeypatch.setattr(split, "_INLINE_BYTES", 0)
    create, refuses = LocalStorage.create_exclusive, Refuses("x")

    def lose_answer(storage, path, data, *, durable=False):
        create(storage, path, data, durable=durable)
        if path.startswith(ASIDE_FOLDER):
            raise StorageError("no answer")
        return True

    router = router_of(tmp_path, options={"hoodie.datasource.write.operation": "insert"}, validators=[refuses])
    rows = frame(spark, [(1, "x", 1, "a", 1), (1, "y", 1, "a", 1)])
    with within(spark, QUERY):
        with monkeypatch.context() as patched:
            patched.setattr(LocalStorage, "create_exclusive", lose_answer)
            with pytest.raises(StorageError, match="no answer"):
                router(rows, 0)
        refuses.names = set() if is_healed else refuses.names
        router(rows, 0)
        refuses.names = set()
        router(frame(spark, [(2, "y", 1, "a", 1)]), 1)
        router.stop()
        router(frame(spark, [(3, "x", 1, "a", 1)]), 2)
    assert (ids(tmp_path, "x"), ids(tmp_path, "y")) == ([1, 3], [1, 2])
    assert own_files(tmp_path) == []
