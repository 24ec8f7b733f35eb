"""Hudi reads tables that we clustered and writes on in them, and carries out a clustering that we planned."""

import pyarrow as pa
import pytest
from clustered_rows import BY_HAND
from clustered_rows import a_batch as rows_of_any
from oracles import hudi_rs
from oracles.hudi import JVM

from hudistream import HudiTable
from streaming import ArrowSink
from table import CommitConflictError, read_table
from table.hudi_table import HudiTable as Bare
from table.options.clustering_settings import ClusteringSettings
from table.options.write_options import WriteOptions
from table.services.clustering import command
from table.services.clustering.command import execute_planned
from table.snapshot import Snapshot
from table.timeline.instant import Action
from table.timeline.metadata.clustering import decode_clustering_plan

pytestmark = pytest.mark.hudi
SLOW = pytest.mark.slow
COLUMNS = ["id", "p", "ts", "x"]
OURS = {"hoodie.table.name": "t", **BY_HAND}
THEIRS = {
    **JVM,
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}


def a_batch(numbers, ts):
    return rows_of_any(numbers, ts).select(COLUMNS)


def a_table(path, table_type, version=6):
    options = {**OURS, "hoodie.datasource.write.table.type": table_type, "hoodie.write.table.version": str(version)}
    with ArrowSink(path, options, key="id", partition_by="p", order_by="ts") as sink:
        for number in range(4):
            sink.write(a_batch(range(number * 40, number * 40 + 80), number), number)
    return {f"k{n}": min(n // 40, 3) for n in range(200)}


def values(rows):
    listed = rows.to_pylist() if isinstance(rows, pa.Table) else rows
    found = {row["id"]: row["ts"] for row in listed}
    assert len(found) == len(listed), "a key is there twice"
    return found


@pytest.mark.slow
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_reads_and_writes_on_in_a_table_that_we_clustered(hudi, tmp_path, utc, table_type):
    path = str(tmp_path / "t")
    expected = a_table(path, table_type)
    assert HudiTable.open(path).cluster("x") is not None
    assert values(hudi.read(path)) == expected
    assert values(hudi_rs.read(path)) == expected
    assert len(hudi.read(path, where="x < 100")) == sum(n * 7919 % 1000 < 100 for n in range(200))
    theirs = {**THEIRS, "hoodie.datasource.write.table.type": table_type}
    hudi.write(path, a_batch(range(150, 260), 9), theirs)
    expected.update({f"k{n}": 9 for n in range(150, 260)})
    assert values(read_table(path)) == values(hudi.read(path)) == expected
    assert HudiTable.open(path).cluster("x") is not None
    assert values(hudi.read(path)) == values(hudi_rs.read(path)) == expected
    hudi.write(path, a_batch(range(10), 10), {**theirs, "hoodie.datasource.write.operation": "delete"})
    for n in range(10):
        del expected[f"k{n}"]
    assert values(read_table(path)) == values(hudi.read(path)) == expected
    assert HudiTable.open(path).check().is_sound


@pytest.mark.parametrize(
    ("version", "table_type"),
    [
        pytest.param(8, "COPY_ON_WRITE", marks=SLOW),
        pytest.param(8, "MERGE_ON_READ", marks=SLOW),
        pytest.param(9, "COPY_ON_WRITE", marks=SLOW),
        pytest.param(9, "MERGE_ON_READ", marks=SLOW),
    ],
)
def test_later_versions(partners, tmp_path, utc, version, table_type):
    path, hudi = str(tmp_path / "t"), partners[version]
    expected = a_table(path, table_type, version)
    assert HudiTable.open(path).cluster("x") is not None
    assert values(hudi.read(path)) == values(hudi_rs.read(path)) == expected
    theirs = {**THEIRS, "hoodie.datasource.write.table.type": table_type, "hoodie.write.table.version": str(version),
              "hoodie.metadata.enable": "false"}  # fmt: skip
    hudi.write(path, a_batch(range(150, 260), 9), theirs)
    expected.update({f"k{n}": 9 for n in range(150, 260)})
    assert values(read_table(path)) == values(hudi.read(path)) == expected
    with ArrowSink(path, OURS, key="id", partition_by="p", order_by="ts") as sink:
        sink.write(a_batch(range(30), 11), 4)
    expected.update({f"k{n}": 11 for n in range(30)})
    assert values(read_table(path)) == values(hudi.read(path)) == expected


@pytest.mark.parametrize(
    ("version", "table_type"),
    [
        pytest.param(6, "COPY_ON_WRITE", marks=SLOW),  # batches between a plan and its execution are the quick one
        pytest.param(6, "MERGE_ON_READ", marks=SLOW),
        pytest.param(8, "COPY_ON_WRITE", marks=SLOW),
        pytest.param(8, "MERGE_ON_READ", marks=SLOW),
    ],
)
def test_hudi_carries_out_a_clustering_that_we_planned(hudi, tmp_path, utc, version, table_type):
    path = str(tmp_path / "t")
    expected = a_table(path, table_type, version)
    pending = command.schedule(Bare.open(path), ClusteringSettings(sort_columns=("x",)))
    plan = decode_clustering_plan((tmp_path / "t" / pending.path).read_bytes())
    with ArrowSink(path, OURS, key="id", partition_by="p", order_by="ts") as sink:
        sink.write(a_batch(range(300, 320), 7), 4, operation="insert")
    expected.update({f"k{n}": 7 for n in range(300, 320)})
    keep = f"hoodie.write.auto.upgrade=false,hoodie.metadata.enable=false,hoodie.write.table.version={version}"
    hudi.sql(f"call run_clustering(path => '{path}', op => 'execute', options => '{keep}')")
    done = Bare.open(path).load_timeline().find(pending.time, Action.REPLACE_COMMIT)
    assert done.is_completed
    metadata = Snapshot.load(Bare.open(path)).commits.read(done)
    assert metadata.operation == "CLUSTER"
    assert {name: sorted(ids) for name, ids in metadata.replaced.items()} == {
        name: sorted(ids) for name, ids in plan.replaced.items()
    }
    assert values(read_table(path)) == values(hudi.read(path)) == expected
    new = {f"k{n}" for n in range(300, 320)}
    for name in ("p0", "p1"):
        found = HudiTable.open(path).scan(["id", "x"], where=[("p", "=", name)]).to_arrow().to_pylist()
        stored = [row["x"] for row in found if row["id"] not in new]
        assert stored == sorted(stored)
    assert HudiTable.open(path).check().is_sound


def schedule(hudi, path, version, *more):
    """Lets Hudi plan a clustering by x. Returns the options that it was given."""
    kept = ("hoodie.write.auto.upgrade=false", "hoodie.metadata.enable=false", f"hoodie.write.table.version={version}")
    options = ",".join((*kept, *more))
    hudi.sql(f"call run_clustering(path => '{path}', op => 'schedule', order => 'x', options => '{options}')")
    return options


@pytest.mark.parametrize(
    ("version", "table_type"),
    [
        pytest.param(6, "COPY_ON_WRITE", marks=SLOW),
        pytest.param(8, "COPY_ON_WRITE", marks=SLOW),
        pytest.param(8, "MERGE_ON_READ", marks=SLOW),
    ],
)
def test_we_carry_out_a_clustering_that_hudi_planned(hudi, tmp_path, utc, version, table_type):
    path = str(tmp_path / "t")
    expected = a_table(path, table_type, version)
    schedule(hudi, path, version)
    blocked = ArrowSink(path, OURS, key="id", partition_by="p", order_by="ts")
    with pytest.raises(CommitConflictError, match="hudistream cluster --execute"), blocked as sink:
        sink.write(a_batch(range(9), 7), 4)
    (done,) = execute_planned(Bare.open(path), WriteOptions().file_settings)
    assert done.files_before > done.files_after
    assert values(read_table(path)) == values(hudi.read(path)) == values(hudi_rs.read(path)) == expected
    for name in ("p0", "p1"):
        stored = HudiTable.open(path).scan(["x"], where=[("p", "=", name)]).to_arrow().column("x").to_pylist()
        assert stored == sorted(stored)
    with ArrowSink(path, OURS, key="id", partition_by="p", order_by="ts") as sink:
        sink.write(a_batch(range(9), 7), 4)
    expected.update({f"k{n}": 7 for n in range(9)})
    hudi.write(path, a_batch(range(5), 12), {**THEIRS, "hoodie.datasource.write.table.type": table_type,
               "hoodie.write.table.version": str(version), "hoodie.metadata.enable": "false"})  # fmt: skip
    expected.update({f"k{n}": 12 for n in range(5)})
    assert values(read_table(path)) == values(hudi.read(path)) == expected
    assert HudiTable.open(path).check().is_sound


@pytest.mark.parametrize(
    ("version", "table_type"),
    [
        pytest.param(6, "COPY_ON_WRITE", marks=SLOW),
        pytest.param(6, "MERGE_ON_READ", marks=SLOW),
        pytest.param(8, "COPY_ON_WRITE", marks=SLOW),
        pytest.param(8, "MERGE_ON_READ", marks=SLOW),
    ],
)
def test_batches_go_on_between_hudis_plan_and_its_execution(hudi, tmp_path, utc, version, table_type):
    path = str(tmp_path / "t")
    expected = a_table(path, table_type, version)
    keep = schedule(hudi, path, version, "hoodie.clustering.plan.strategy.partition.selected=p0")
    ours = {**OURS, "hoodie.parquet.small.file.limit": "104857600"}
    with ArrowSink(path, ours, key="id", partition_by="p", order_by="ts") as sink:
        sink.write(a_batch(range(300, 340), 7), 4, operation="insert")  # the files of p0 are small, and left alone
        sink.write(a_batch(range(1, 60, 2), 8), 5)
        expected.update({f"k{n}": 7 for n in range(300, 340)} | {f"k{n}": 8 for n in range(1, 60, 2)})
        with pytest.raises(CommitConflictError, match="pending clustering"):
            sink.write(a_batch(range(9), 9), 6)
    assert values(read_table(path)) == values(hudi.read(path)) == expected
    hudi.sql(f"call run_clustering(path => '{path}', op => 'execute', options => '{keep}')")
    assert not Bare.open(path).load_timeline().pending
    assert values(read_table(path)) == values(hudi.read(path)) == expected
    with ArrowSink(path, ours, key="id", partition_by="p", order_by="ts") as sink:
        sink.write(a_batch(range(9), 9), 6)
    expected.update({f"k{n}": 9 for n in range(9)})
    assert values(read_table(path)) == values(hudi.read(path)) == expected
    assert HudiTable.open(path).check().is_sound
