"""Real Hudi and we write one table at the same time, each under the lock that Hudi's provider keeps."""

import threading

import pytest
from engine import Engine, rows
from needs import require
from oracles import hudi_rs
from oracles.hudi import JVM, HudiError
from zookeeper_server import serve_zookeeper

from table import HudiTable, read_table

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
SIZE = 20


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


@pytest.mark.parametrize("batches", [4, pytest.param(25, marks=pytest.mark.slow)])
@pytest.mark.parametrize("operation", ["upsert", "insert"])
def test_rows_of_both_are_there_once_and_each_waits_for_the_other(hudi, tmp_path, lock, operation, batches):
    path = str(tmp_path / "t")
    options = {**lock, "hoodie.datasource.write.operation": operation, "hoodie.index.type": "BLOOM"}
    ours = Engine(path, options)
    ours.write(0, rows(range(SIZE)))
    refused = []

    def write_theirs():
        for batch in range(batches):
            made = rows(range(10_000 + batch * SIZE, 10_000 + (batch + 1) * SIZE), ts=batch, v="theirs")
            while True:
                try:
                    hudi.write(path, made, {**THEIRS, **lock, "hoodie.datasource.write.operation": operation})
                    break
                except HudiError as error:
                    refused.append(str(error))
                    if "ConflictException" not in str(error) or len(refused) > 100:
                        return

    other = threading.Thread(target=write_theirs)
    other.start()
    batch = 0
    while other.is_alive() or batch < batches:
        batch += 1
        numbers = range(SIZE) if operation == "upsert" else range(batch * SIZE, (batch + 1) * SIZE)
        ours.write(batch, rows(numbers, ts=batch, v=f"ours {batch}"))
    other.join()
    assert all("ConflictException" in said for said in refused), refused[-1]
    ours.writer.stop()
    expected = {f"k{n}" for n in range(10_000, 10_000 + batches * SIZE)}
    expected |= {f"k{n}" for n in range(SIZE if operation == "upsert" else (batch + 1) * SIZE)}
    for found in (read_table(path).to_pylist(), hudi_rs.read(path).to_pylist(), hudi.read(path)):
        keys = [row["id"] for row in found]
        assert len(keys) == len(set(keys))
        assert set(keys) == expected
        if operation == "upsert":
            assert {row["v"] for row in found if row["v"] != "theirs"} == {f"ours {batch}"}
    timeline = HudiTable.open(path).load_timeline()
    assert not timeline.pending
    print(f"{batch} batches of ours, {batches} of theirs, {len(refused)} of theirs refused")
