"""The sink on object stores of other makers: the same rows, races, crashes and bad networks on each of them."""

import json
import os
import random
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from bad_network import bad_network
from chaos.run import run_world
from command_line import said
from faults import FaultyStorage, Fuse, PowerCut, dying_process
from kafka_broker import fetch_jars
from stores import chosen, serve_store

from hudistream import ArrowSink, HudiSink, HudiTable, read_table
from streaming import table_sink
from table.clock import sleep_s
from table.errors import HudiError, StorageError, WriteConflictError
from table.storage.opening import open_storage

pytestmark = [pytest.mark.slow, pytest.mark.places]
TABLES = {
    "copy-on-write": {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"},
    "merge-on-read": {"hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    "merge-on-read, version 9": {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.write.table.version": "9",
    },
}
EACH_TABLE = pytest.mark.parametrize("kind", TABLES.values(), ids=TABLES)
UPKEEP = {
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hudistream.clean.grace.ms": "0",
    "hoodie.compact.inline.max.delta.commits": "3",
}
BY_HAND = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false",
           "hoodie.insert.shuffle.parallelism": "2"}  # fmt: skip
HADOOP = "3.3.4"  # of the PySpark wheel
SEED = int(os.environ.get("SEED", "1"))


@pytest.fixture(scope="module", params=chosen())
def store(request, tmp_path_factory):
    """A store of each name."""
    with serve_store(request.param, tmp_path_factory.mktemp(request.param)) as served:
        yield served


@pytest.fixture
def path(store):
    """A folder for a table that nothing else uses."""
    return f"{store.address}/{uuid.uuid4().hex}"


def rows(numbers, v, ts=0):
    numbers = list(numbers)
    return pa.table(
        {
            "id": [f"k{n}" for n in numbers],
            "p": [f"p{n % 3}" for n in numbers],
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "v": [v] * len(numbers),
        }
    )


def values(path, options):
    """The value of each key; a key that is there twice is a failure."""
    found = read_table(path, storage_options=options).select(["id", "v"]).to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a key is there twice"
    return {row["id"]: row["v"] for row in found}


def assert_sound(path, options):
    found = HudiTable.open(path, options).check()
    assert found.is_sound, found


def test_one_of_many_creators_wins_and_its_bytes_are_there(store, path):
    lost = []
    for number in range(20):
        won, name = [], f"raced-{number}"

        def create(mine, name=name, won=won):
            if open_storage(path, store.options).create_exclusive(name, str(mine).encode() * 500):
                won.append(mine)

        threads = [threading.Thread(target=create, args=(mine,)) for mine in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        storage = open_storage(path, store.options)
        if len(won) != 1 or storage.read(name) != str(won[0]).encode() * 500:
            lost.append((name, won))
        assert not storage.create_exclusive(name, b"")
    assert not lost


@EACH_TABLE
def test_random_batches_with_all_services_equal_their_model(store, path, kind):
    luck, held = random.Random(SEED), {}
    options = {**kind, **UPKEEP}
    with ArrowSink(path, options, store.options, key="id", partition_by="p", order_by="ts") as sink:
        for batch_id in range(14):
            numbers = sorted(luck.sample(range(400), 120))
            table = rows(numbers, str(batch_id), batch_id)
            gone = [luck.random() < 0.2 for _ in numbers]
            sink.write(table.append_column("_hoodie_is_deleted", pa.array(gone)), batch_id)
            for number, is_gone in zip(numbers, gone, strict=True):
                held.pop(f"k{number}", None) if is_gone else held.update({f"k{number}": str(batch_id)})
            assert values(path, store.options) == held, batch_id
    table = HudiTable.open(path, store.options)
    assert table.cluster("v") is not None
    assert values(path, store.options) == held
    assert_sound(path, store.options)
    actions = {instant.action.value for instant in HudiTable.open(path, store.options).load_timeline().instants}
    assert "clean" in actions


@pytest.mark.spark
@EACH_TABLE
def test_the_sink_through_spark(store, path, spark, kind):
    held = {}
    sink = HudiSink(path, {**kind, **UPKEEP}, store.options,
                    key="id", partition_by="p", order_by="ts")  # fmt: skip
    for batch_id in range(6):
        first = batch_id * 30
        frame = spark.range(first, first + 90).selectExpr(
            "concat('k', id) id", "concat('p', id % 3) p", f"{batch_id} ts", f"'{batch_id}' v"
        )
        sink(frame, batch_id)
        held.update({f"k{n}": str(batch_id) for n in range(first, first + 90)})
        assert values(path, store.options) == held
    sink.stop()
    assert_sound(path, store.options)


@EACH_TABLE
def test_a_batch_stopped_at_a_storage_call_is_written_exactly_once(store, path, monkeypatch, kind):
    options = {**BY_HAND, **kind}
    before = {f"k{n}": "first" for n in range(12)}
    after = {**before, **{f"k{n}": "second" for n in range(6, 30)}}

    def open_sink(folder, fuse=None):
        with monkeypatch.context() as patched:
            if fuse is not None:
                patched.setattr(
                    table_sink, "open_storage", lambda uri, given: FaultyStorage(open_storage(uri, given), fuse)
                )
            return ArrowSink(folder, options, store.options, key="id", partition_by="p", workers=1)

    def begin(folder):
        with open_sink(folder) as sink:
            sink.write(rows(range(12), "first"), 0)

    counted = Fuse()
    begin(f"{path}/count")
    with open_sink(f"{path}/count", counted) as sink:
        sink.write(rows(range(6, 30), "second"), 1)
        calls = len(counted.calls)
    step = int(os.environ.get("STEP", "3"))
    for number in range(1, calls + 1, step):
        folder = f"{path}/{number}"
        begin(folder)
        dead = open_sink(folder, Fuse(number, after=number % 2 == 0))
        with dying_process(), pytest.raises(PowerCut):
            dead.write(rows(range(6, 30), "second"), 1)
        dead._writer.lease._forget()  # its thread ends with its process
        assert values(folder, store.options) in (before, after), f"call {number}: a reader sees part of the batch"
        with open_sink(folder) as sink:
            sink.write(rows(range(6, 30), "second"), 1)
            assert values(folder, store.options) == after, f"call {number}"
            sink.write(rows([99], "third"), 2)
        assert values(folder, store.options) == {**after, "k99": "third"}
        assert_sound(folder, store.options)


def test_two_processes_that_are_killed_and_stopped_lose_nothing(store, path, tmp_path):
    """Real processes: SIGKILL and SIGSTOP beyond leases and retention, readers that compare each snapshot."""
    for seed in range(SEED * 1000, SEED * 1000 + int(os.environ.get("WORLDS", "3"))):
        drawn, findings, done = run_world(seed, str(tmp_path / "kept"), (path, store.options), several=True)
        assert not findings, (drawn.describe(), findings)
        assert sum(done["batches"].values()) > 2, (drawn.describe(), done)


@EACH_TABLE
def test_a_bad_network_loses_and_doubles_nothing(store, path, kind):
    """Requests and answers are lost, and the store says "slow down": a batch that fails is given again."""
    if not store.port:
        pytest.skip("the server is not on this machine")
    luck, held, failed = random.Random(SEED), {}, []
    options = {**kind, **UPKEEP}
    with bad_network(store.port, share=0.01, seed=SEED) as network:
        through = store.through(network.port).options
        sink = None
        for batch_id in range(12):
            numbers = sorted(luck.sample(range(300), 60))
            for attempt in range(20):
                try:
                    sink = sink or ArrowSink(path, options, through, key="id", partition_by="p", order_by="ts")
                    sink.write(rows(numbers, str(batch_id), batch_id), batch_id)
                    break
                # a request whose answer was lost is one more pending write, which the next attempt rolls back
                except (StorageError, WriteConflictError) as error:
                    failed.append((batch_id, attempt, str(error)[:300]))
                    sleep_s(0.5)
            else:
                pytest.fail(f"batch {batch_id} did not get through: {failed[-3:]}")
            held.update({f"k{number}": str(batch_id) for number in numbers})
            assert values(path, store.options) == held, (batch_id, failed)
        network.share = 0
        sink.stop()
        assert sum(network.happened.values()) > 10, network.happened
    print(network.happened, f"{len(failed)} attempts failed")
    assert_sound(path, store.options)


def test_a_store_that_goes_away_and_comes_back(store, path):
    if not store.port:
        pytest.skip("the server is not on this machine")
    with bad_network(store.port, share=0) as network:
        through = store.through(network.port).options
        with ArrowSink(path, UPKEEP, through, key="id", partition_by="p", order_by="ts") as sink:
            sink.write(rows(range(30), "0"), 0)
            network.open = False
            with pytest.raises(StorageError):
                sink.write(rows(range(30, 60), "1"), 1)
            network.open = True
            sink.write(rows(range(30, 60), "1"), 1)
            assert len(values(path, store.options)) == 60
    assert_sound(path, store.options)


def test_what_is_wrong_with_the_store_is_said_before_anything_is_made(store):
    scheme = store.address.partition("://")[0]
    missing = f"{scheme}://no-such-bucket-{uuid.uuid4().hex[:8]}/t"
    with pytest.raises(HudiError) as told:
        ArrowSink(missing, None, store.options, key="id").write(rows(range(3), "v"), 0)
    assert missing.split("/")[2] in str(told.value), told.value
    print("\nno bucket:", told.value)
    if store.port:
        with pytest.raises(HudiError) as told:
            ArrowSink(f"{store.address}/x", None, store.through(1).options, key="id").write(rows(range(3), "v"), 0)
        print("no server:", told.value)
        assert "127.0.0.1:1" in str(told.value)


def test_sparks_own_reader_gets_keys_and_endpoint_from_the_same_place(store, path, tmp_path_factory):
    if store.name not in ("moto", "versitygw", "minio"):
        pytest.skip("Hadoop's client for S3 alone is given the storage options")
    jars = fetch_jars(tmp_path_factory.getbasetemp() / "hadoop-aws", "org.apache.hadoop", "hadoop-aws", HADOOP)
    with ArrowSink(path, None, store.options, key="id", partition_by="p", order_by="ts") as sink:
        sink.write(rows(range(300), "v", 7), 0)
    command = [sys.executable, Path(__file__).with_name("read_from_s3.py"), jars, path, json.dumps(store.options)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {"rows": 300, "total": 2100, "by_spark": True}


def test_the_command_line_reads_the_table(store, path, capsys):
    with ArrowSink(path, None, store.options, key="id") as sink:
        sink.write(rows(range(9), "v"), 0)
    given = [part for key, value in store.options.items() for part in ("--storage-option", f"{key}={_text(value)}")]
    assert "1 live file" in said(capsys, "show", path, *given)
    said(capsys, "check", path, *given)


def _text(value):
    return value if isinstance(value, str) else json.dumps(value)
