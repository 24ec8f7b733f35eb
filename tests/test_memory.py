"""Memory of the Python workers: bounded by settings, whatever the batch is (`make test-all`)."""

import os
import threading
import time

import psutil
import pytest
from oracles import hudi_rs
from pyspark.sql import functions as F

from streaming import HudiSink

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
