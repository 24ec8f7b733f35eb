"""Ways to call a sink that are easily forgotten: from a thread of a pool, with types that PySpark cannot read."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from hudistream import HudiSink, SchemaMismatchError, read_table


def test_a_type_that_pyspark_cannot_read_is_refused_in_words(spark, tmp_path):
    sink = HudiSink(str(tmp_path / "t"), key="id")
    with pytest.raises(SchemaMismatchError, match="interval.*Cast the column"):
        sink.write(spark.sql("SELECT 'a' AS id, make_interval(1) AS c"))
    assert not (tmp_path / "t").exists()


def numbers(spark, folder, name, count):
    """A stream of one file a batch, with keys that begin with a name."""
    folder.mkdir()
    for number in range(count):
        rows = [{"id": f"{name}{number}-{row}", "ts": number} for row in range(10)]
        (folder / f"{number:04}.json").write_text("\n".join(map(json.dumps, rows)))
    return spark.readStream.schema("id string, ts long").option("maxFilesPerTrigger", 1).json(str(folder))


def start(frame, sink, checkpoint):
    def in_a_pool(rows, batch_id):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(sink, rows, batch_id).result()

    stream = frame.writeStream.foreachBatch(in_a_pool).option("checkpointLocation", str(checkpoint))
    return stream.trigger(availableNow=True).start()


def test_a_batch_that_spark_repeats_is_skipped(spark, tmp_path):
    path, frame = str(tmp_path / "t"), numbers(spark, tmp_path / "x", "x", 2)
    for _ in range(2):
        sink = HudiSink(path, key="id", order_by="ts", operation="insert")
        start(frame, sink, tmp_path / "cx").awaitTermination()
        sink.stop()
        (tmp_path / "cx" / "commits" / "1").unlink()  # as if Spark had died before it noted the batch
        (tmp_path / "cx" / "commits" / ".1.crc").unlink()
    assert sink.last_batch.skipped
    assert read_table(path).num_rows == 20


def test_a_second_query_is_not_taken_for_the_first_one(spark, tmp_path):
    path = str(tmp_path / "t")
    sink = HudiSink(path, key="id", order_by="ts", operation="insert")
    start(numbers(spark, tmp_path / "x", "x", 2), sink, tmp_path / "cx").awaitTermination()
    with pytest.raises(Exception, match="came from another query"):
        start(numbers(spark, tmp_path / "y", "y", 2), sink, tmp_path / "cy").awaitTermination()
    sink.stop()
    assert read_table(path).num_rows == 20


def test_a_batch_in_a_pool_is_not_recorded_for_a_query_that_was_known_before(spark, tmp_path):
    """The sink knows the first query. A batch of the second one has the next number, and no thread that tells it."""
    path = str(tmp_path / "t")
    sink = HudiSink(path, key="id", order_by="ts", operation="insert")
    written, go_on = threading.Event(), threading.Event()

    def first(rows, batch_id):
        if batch_id == 0:
            sink(rows, batch_id)
            written.set()
            assert go_on.wait(60)
            return
        sink(rows, batch_id)

    def second(rows, batch_id):
        if batch_id == 1:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(sink, rows, batch_id).result()

    def begun(frame, write, name):
        stream = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / f"c{name}"))
        return stream.trigger(availableNow=True).start()

    one = begun(numbers(spark, tmp_path / "x", "x", 2), first, "x")
    try:
        assert written.wait(60)
        with pytest.raises(Exception, match="2 are active"):
            begun(numbers(spark, tmp_path / "y", "y", 2), second, "y").awaitTermination()
    finally:
        go_on.set()
        one.awaitTermination()
        sink.stop()
    assert sorted({key[0] for key in read_table(path).column("id").to_pylist()}) == ["x"]
    assert read_table(path).num_rows == 20


def test_where_several_queries_are_active_the_batch_is_refused(spark, tmp_path):
    path = str(tmp_path / "t")
    sink = HudiSink(path, key="id", order_by="ts", operation="insert")
    begun, go_on = threading.Event(), threading.Event()

    def wait(_rows, _batch_id):
        begun.set()
        go_on.wait(60)

    other = numbers(spark, tmp_path / "o", "o", 1).writeStream.foreachBatch(wait)
    other = other.option("checkpointLocation", str(tmp_path / "co")).trigger(availableNow=True).start()
    try:
        assert begun.wait(60)
        with pytest.raises(Exception, match=r"2 are active\. Use pyspark\.InheritableThread"):
            start(numbers(spark, tmp_path / "x", "x", 1), sink, tmp_path / "cx").awaitTermination()
    finally:
        go_on.set()
        other.awaitTermination()
        sink.stop()
