"""Real Hudi and we write one table at the same time, each under the lock that Hudi's provider keeps."""

import threading
import time
import uuid
from functools import partial

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from engine import SCHEMA, Engine, rows
from needs import require
from oracles import hudi_rs
from oracles.hudi import JVM, HudiError
from oracles.hudi_on_s3 import hudi_on_s3
from s3_server import serve_s3
from zookeeper_server import serve_zookeeper

from hudistream import HudiTable
from table import read_table
from table.options.write_options import parse_options
from table.snapshot import Snapshot
from table.storage.opening import open_storage
from table.transaction.locks import make_lock

pytestmark = pytest.mark.hudi

SHARED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.wait_time_ms_between_retry": "50",
}
PROVIDERS = "org.apache.hudi.client.transaction.lock"
THEIRS = {
    **JVM,
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.metadata.enable": "false",
    "hoodie.write.table.version": "6",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
LOGS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline.max.delta.commits": "3",
}
# one engine compacts: two would delete each other's files
HUDI_COMPACTS = {**LOGS, "hoodie.datasource.write.streaming.disable.compaction": "true"}
SIZE = 20
THEIR_FIRST = 1_000_000  # keys that our batches do not reach


@pytest.fixture(params=["filesystem", pytest.param("zookeeper", marks=pytest.mark.slow)])
def lock(request, tmp_path):
    """Options of both writers."""
    if request.param == "filesystem":
        yield {**SHARED, "hoodie.write.lock.provider": f"{PROVIDERS}.FileSystemBasedLockProvider"}
        return
    require("kazoo")
    with serve_zookeeper(tmp_path) as (address, _):
        yield {
            **SHARED,
            "hoodie.write.lock.provider": f"{PROVIDERS}.ZookeeperBasedLockProvider",
            "hoodie.write.lock.zookeeper.url": address,
            "hoodie.write.lock.zookeeper.port": address.rpartition(":")[2],
            "hoodie.write.lock.zookeeper.base_path": "/hudi/locks",
            "hoodie.write.lock.zookeeper.lock_key": "t",
        }


@pytest.mark.slow
@pytest.mark.parametrize("batches", [2, 25])
@pytest.mark.parametrize("operation", ["upsert", "insert"])
@pytest.mark.parametrize(
    ("version", "more"),
    [("6", {}), ("8", {}), ("8", LOGS), ("8", HUDI_COMPACTS)],
    ids=["6", "8", "8-logs", "8-logs-hudi-compacts"],
)
def test_rows_of_both_are_there_once_and_each_waits_for_the_other(
    hudi, tmp_path, lock, operation, batches, version, more
):
    path = str(tmp_path / "t")
    options = {**lock, "hoodie.datasource.write.operation": operation, "hoodie.write.table.version": version, **more}
    theirs = {"hoodie.compact.inline": str(more is HUDI_COMPACTS).lower()}
    expected, newest = write_at_once(partial(write_by, hudi, path, **theirs), open_storage(path), options, batches)
    wanted = expected - passed_by(path), newest
    for found in (read_table(path).to_pylist(), hudi_rs.read(path).to_pylist(), hudi.read(path)):
        check_rows(found, *wanted)
    assert not HudiTable.open(path).load_timeline().pending


def passed_by(path):
    """Keys of Hudi's commits that continue a file newer than they are: readers show the newer one, without them.

    Hudi 1.0.2 chooses its time first, and requests the instant in a later hold of the lock. A batch of ours may fit in
    between. Hudi then continues the files of ours under a time that is older than ours.
    """
    table, found = HudiTable.open(path), set()
    commits = Snapshot.load(table).commits
    for instant in table.load_timeline().completed_writes:
        for stat in commits.read(instant).stats:
            if stat.prev_commit.isdigit() and stat.prev_commit > instant.time:
                rows = pq.read_table(f"{path}/{stat.path}", columns=["_hoodie_commit_time", "id"], partitioning=None)
                mine = rows.filter(pc.equal(rows["_hoodie_commit_time"], instant.time))
                found |= set(mine["id"].to_pylist())
    assert all(int(key[1:]) >= THEIR_FIRST for key in found)
    print(f"{len(found)} rows of theirs passed by")
    return found


def write_by(hudi, path, made, options, **theirs):
    hudi.write(path, made, {**THEIRS, **options, **theirs})


def write_at_once(write_hudi, storage, options, batches):
    """Both write until Hudi has written its batches.

    Args:
        write_hudi: writes rows with some options, by Hudi.
        storage: the table's.
        options: what both writers take.
        batches: of Hudi's.

    Returns:
        The keys that the table has to hold, and the value of ours; None where it has several.
    """
    operation = options["hoodie.datasource.write.operation"]
    ours = Engine(storage, {**options, "hoodie.index.type": "BLOOM"})
    ours.write(0, rows(range(SIZE)))
    refused, may_write = [], threading.Event()
    may_write.set()

    def write_theirs():
        for batch in range(batches):
            first = THEIR_FIRST + batch * SIZE
            made = rows(range(first, first + SIZE), ts=batch, v="theirs")
            while True:
                try:
                    write_hudi(made, options)
                    may_write.set()
                    break
                except HudiError as error:
                    # the faster writer of the same file groups wins each time: we stand aside until theirs is written
                    may_write.clear()
                    refused.append(str(error))
                    if "ConflictException" not in str(error) or len(refused) > 4 * batches:
                        may_write.set()
                        return

    other = threading.Thread(target=write_theirs)
    other.start()
    batch, is_last = 0, False
    while not is_last:
        may_write.wait()
        # one batch behind Hudi's last: it ends what Hudi left where it was refused
        is_last = not other.is_alive() and batch >= batches
        batch += 1
        numbers = range(SIZE) if operation == "upsert" else range(batch * SIZE, (batch + 1) * SIZE)
        ours.write(batch, rows(numbers, ts=batch, v=f"ours {batch}"))
    other.join()
    unexpected = next((said for said in refused if "ConflictException" not in said), None)
    assert unexpected is None, f"{unexpected}\n{names_below(storage)}"
    assert len(refused) <= 4 * batches
    ours.writer.stop()
    print(f"{batch} batches of ours, {batches} of theirs, {len(refused)} of theirs refused")
    expected = {f"k{n}" for n in range(THEIR_FIRST, THEIR_FIRST + batches * SIZE)}
    expected |= {f"k{n}" for n in range(SIZE if operation == "upsert" else (batch + 1) * SIZE)}
    return expected, f"ours {batch}" if operation == "upsert" else None


def names_below(storage):
    """What a failure is explained by: the timeline, the end records and the heartbeats."""
    folders = (".hoodie", ".hoodie/timeline", ".hoodie/.hudistream/ends", ".hoodie/.heartbeat", ".hoodie/.temp")
    return {folder: sorted(entry.name for entry in storage.list_dir(folder)) for folder in folders}


def check_rows(found, expected, newest):
    keys = [row["id"] for row in found]
    assert len(keys) == len(set(keys))
    assert set(keys) == expected
    if newest is not None:
        assert {row["v"] for row in found if row["v"] != "theirs"} == {newest}


@pytest.fixture(scope="module")
def s3():
    with serve_s3() as address:
        yield address, {"key": "test", "secret": "test", "client_kwargs": {"endpoint_url": address}}


@pytest.fixture(scope="module", params=["1.0.2", "1.2.0"])
def real_on_s3(request, s3, tmp_path_factory):
    """The first release that has the storage-based lock, and the newest."""
    real = hudi_on_s3(request.param, s3[0], tmp_path_factory.mktemp("scala"))
    real.version = request.param
    yield real
    real.stop()


@pytest.fixture
def storage_lock():
    return {**SHARED, "hoodie.write.lock.provider": f"{PROVIDERS}.StorageBasedLockProvider"}


# 1.0.2 takes the seconds of the option for milliseconds: the default of 300 would end before its first renewal
VALIDITY = {"1.0.2": {"hoodie.write.lock.storage.validity.timeout.secs": "300000"}}


def write_on_s3(hudi, address, path, made, options):
    given = {**THEIRS, **options, **VALIDITY.get(hudi.version, {}), "test.s3.endpoint": address}
    hudi.write(path, made, given)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operation", "more"),
    [
        ("upsert", {}),
        ("insert", {}),
        pytest.param("upsert", {**HUDI_COMPACTS, "hoodie.write.table.version": "8"}, marks=pytest.mark.slow),
    ],
    ids=["upsert", "insert", "upsert-8-logs"],
)
def test_rows_of_both_are_there_once_on_s3_under_the_storage_based_lock(real_on_s3, s3, storage_lock, operation, more):
    storage = open_storage(f"s3a://lake/{uuid.uuid4()}", s3[1])
    options = {**storage_lock, "hoodie.datasource.write.operation": operation, **more}
    wanted = write_at_once(partial(write_on_s3, real_on_s3, s3[0], storage.base_uri), storage, options, 6)
    theirs = real_on_s3.read(storage.base_uri)
    ours = read_table(storage.base_uri, storage_options=s3[1], meta_columns=True).to_pylist()
    check_rows(ours, *wanted)
    assert sorted(map(texts, theirs)) == sorted(map(texts, ours))
    assert not HudiTable.open(storage.base_uri, s3[1]).load_timeline().pending


def texts(row):
    return [(name, row[name]) for name in ("_hoodie_commit_time", "_hoodie_record_key", *SCHEMA.names)]


@pytest.mark.slow
def test_each_waits_for_the_storage_based_lock_of_the_other(real_on_s3, s3, storage_lock):
    storage = open_storage(f"s3a://lake/{uuid.uuid4()}", s3[1])
    path = storage.base_uri
    engine = Engine(storage, {**storage_lock, "hoodie.datasource.write.operation": "upsert"})
    engine.write(0, rows(range(SIZE)))
    table = HudiTable.open(path, s3[1])

    def write_theirs(first):
        write_on_s3(real_on_s3, s3[0], path, rows(range(first, first + SIZE), ts=1, v="theirs"), storage_lock)

    write_theirs(100)
    took = time.monotonic()
    write_theirs(200)
    took = time.monotonic() - took
    seen = table.load_timeline().completed_writes
    with make_lock(storage, parse_options(storage_lock).options.lock).hold() as held:
        other = threading.Thread(target=write_theirs, args=(300,))
        other.start()
        other.join(2 * took + 2)
        held.check()
        assert other.is_alive()
        assert table.load_timeline().completed_writes == seen
    other.join(60)
    assert not other.is_alive()
    assert len(table.load_timeline().completed_writes) == len(seen) + 1

    given = {**storage_lock, **VALIDITY.get(real_on_s3.version, {})}
    real_on_s3.make_lock("s3", {**given, "hoodie.base.path": path, "test.s3.endpoint": s3[0]})
    assert real_on_s3.try_lock("s3", 1_000)
    ours = threading.Thread(target=lambda: engine.write(1, rows(range(SIZE), ts=1, v="ours")))
    ours.start()
    ours.join(5)
    assert ours.is_alive()
    assert len(table.load_timeline().completed_writes) == len(seen) + 1
    real_on_s3.unlock("s3")
    ours.join(60)
    assert len(table.load_timeline().completed_writes) == len(seen) + 2
    real_on_s3.close_lock("s3")
    engine.writer.stop()
    found = read_table(path, storage_options=s3[1], meta_columns=True).to_pylist()
    assert {row["v"] for row in found if int(row["id"][1:]) < SIZE} == {"ours"}
    assert sorted(map(texts, real_on_s3.read(path))) == sorted(map(texts, found))
    assert len(found) == 4 * SIZE
