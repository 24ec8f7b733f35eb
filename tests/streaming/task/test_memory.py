"""Memory of the Python workers: bounded by settings, whatever the batch is (`make test-all`)."""

import os
import threading
import time

import psutil
import pytest
from oracles import hudi_rs
from pyspark.sql import functions as F
from snapshots import list_snapshot_files

from streaming import HudiSink
from table.hudi_table import HudiTable

pytestmark = [pytest.mark.slow, pytest.mark.spark]

GIB = 1024**3
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.operation": "insert",
}


class PeakOfWorkers:
    """Samples the memory of every Python worker below this process, and of this process."""

    def __enter__(self):
        self.worker = self.driver = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()

    def _sample(self):
        me = psutil.Process()
        while not self._stopped.wait(0.1):
            self.driver = max(self.driver, me.memory_info().rss)
            for child in me.children(recursive=True):
                try:
                    if "python" in child.name():
                        self.worker = max(self.worker, child.memory_info().rss)
                except psutil.Error:
                    continue


def wide_rows(spark, rows, paths):
    """Rows of 200 bytes and more, partition paths interleaved, nothing that compresses well."""
    noise = [F.md5(F.concat(F.lit(str(number)), F.col("id"))).alias(f"noise{number}") for number in range(5)]
    return spark.range(rows, numPartitions=4).select(
        F.concat(F.lit("key-"), F.lpad(F.col("id").cast("string"), 20, "0")).alias("id"),
        F.concat(F.lit("p"), (F.col("id") % paths).cast("string")).alias("p"),
        F.rand(1).alias("amount"),
        *noise,
    )


@pytest.mark.parametrize(("rows", "paths"), [(5_000_000, 8), (1_000_000, 1000)])
def test_a_large_batch_stays_below_a_gibibyte_a_worker(spark, tmp_path, rows, paths):
    path = str(tmp_path / "t")
    sink = HudiSink(path, OPTIONS)
    before = psutil.Process().memory_info().rss
    started = time.monotonic()
    with PeakOfWorkers() as peak:
        summary = sink.write(wide_rows(spark, rows, paths))
    sink.stop()
    seconds = time.monotonic() - started
    print(
        f"\n{rows} rows, {paths} paths: {seconds:.0f} s, worker {peak.worker / GIB:.2f} GiB, "
        f"driver +{(peak.driver - before) / GIB:.2f} GiB, {summary.bytes_written / GIB:.2f} GiB written"
    )
    assert summary.rows == rows
    assert peak.worker < GIB
    assert peak.driver - before < GIB / 4
    assert sum(len(files) for _, _, files in os.walk(path)) > paths
    if rows <= 1_000_000:
        assert hudi_rs.read(path).num_rows == rows


@pytest.mark.hudi
@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize("writer", ["hudistream", "hudi"])
def test_upserts_into_large_file_groups_stay_below_a_gibibyte_a_worker(spark, hudi, tmp_path, writer):
    """Four file groups of about 120 MB: ours of many row groups, Hudi's of one."""
    path = str(tmp_path / "t")
    rows = wide_rows(spark, 4_400_000, 4)
    options = {**OPTIONS, "hoodie.datasource.write.precombine.field": "amount", "hoodie.index.type": "BLOOM"}
    options["hoodie.copyonwrite.record.size.estimate"] = "100"
    if writer == "hudi":
        rows.write.parquet(str(tmp_path / "rows"))
        bulk = {
            **options,
            "hoodie.datasource.write.operation": "bulk_insert",
            "hoodie.parquet.compression.codec": "zstd",
        }
        bulk["hoodie.bulkinsert.sort.mode"] = "PARTITION_PATH_REPARTITION"
        hudi._call(do="write", path=path, parquet=str(tmp_path / "rows"), options=bulk, mode="append")
    else:
        HudiSink(path, options).write(rows)
    files = list_snapshot_files(HudiTable.open(path))
    assert max(file.size_bytes for file in files) > 100_000_000
    changes = wide_rows(spark, 4_400_000, 4).where("cast(substr(id, 5) as bigint) % 44 = 0")
    upsert = HudiSink(path, {**options, "hoodie.datasource.write.operation": "upsert"})
    started = time.monotonic()
    with PeakOfWorkers() as peak:
        summary = upsert.write(changes.withColumn("amount", F.col("amount") + 10))
    upsert.stop()
    print(
        f"\n100,000 upserts into {len(files)} file groups of {writer}, the largest {files[0].size_bytes / 1e6:.0f} MB: "
        f"{time.monotonic() - started:.0f} s, worker {peak.worker / GIB:.2f} GiB"
    )
    assert summary.rows_updated == 100_000
    assert peak.worker < GIB
