"""What a sink takes from its query's checkpoint."""

import os

import pytest
from stream import OPTIONS, expected, keys, run, source

from hudistream import HudiSink, HudiTable, InvalidConfigError, read_table
from streaming.spark.checkpoint import QueryCheckpoint


def located(checkpoint):
    return {**OPTIONS, "hudistream.checkpoint.location": checkpoint}


def test_commits_tell_where_the_source_stood(spark, tmp_path):
    path, checkpoint = str(tmp_path / "t"), str(tmp_path / "c")
    run(source(spark, str(tmp_path / "in"), 3), HudiSink(path, located(checkpoint)), checkpoint)
    (row,) = HudiTable.open(path).checkpoints().to_pylist()
    assert (row["batch_id"], row["positions"]) == (2, ['{"logOffset":2}'])
    assert row["query_id"] == QueryCheckpoint(checkpoint, {}).read_query_id()
    # files do not tell where a new query begins: it stays refused
    with pytest.raises(Exception, match="another query"):
        run(source(spark, str(tmp_path / "in"), 3), HudiSink(path, located(str(tmp_path / "d"))), str(tmp_path / "d"))
    assert keys(path) == expected(0, 150)


def test_the_checkpoint_of_another_query_is_refused(spark, tmp_path):
    path, checkpoint, other = (str(tmp_path / name) for name in ("t", "c", "d"))
    run(source(spark, str(tmp_path / "in"), 2), HudiSink(str(tmp_path / "u"), OPTIONS), other)
    with pytest.raises(Exception, match="is the checkpoint of the query"):
        run(source(spark, str(tmp_path / "in"), 1), HudiSink(path, located(other)), checkpoint)
    assert len(read_table(path)) == 0


def test_the_checkpoint_of_another_query_proves_no_batch(spark, tmp_path):
    """The checkpoint names the query that wrote batch 0, and the batch 0 at hand is of another query."""
    path, checkpoint, other = (str(tmp_path / name) for name in ("t", "c", "d"))
    run(source(spark, str(tmp_path / "in"), 1), HudiSink(path, located(checkpoint)), checkpoint)
    with pytest.raises(Exception, match="is the checkpoint of the query"):
        run(source(spark, str(tmp_path / "in2"), 1), HudiSink(path, located(checkpoint)), other)
    assert keys(path) == expected(0, 50)


def test_a_batch_that_spark_plans_anew_behind_lost_offsets_is_refused(spark, tmp_path):
    path, checkpoint, folder = str(tmp_path / "t"), str(tmp_path / "c"), str(tmp_path / "in")
    sink = HudiSink(path, located(checkpoint))
    run(source(spark, folder, 3), sink, checkpoint)
    for name in ("offsets", "commits"):
        for file in ("2", ".2.crc"):
            if os.path.exists(f"{checkpoint}/{name}/{file}"):
                os.remove(f"{checkpoint}/{name}/{file}")
    for again in (sink, HudiSink(path, located(checkpoint))):  # what a sink has read before proves nothing
        with pytest.raises(Exception, match="has another batch of that number") as error:
            run(source(spark, folder, 4), again, checkpoint)
        assert '{"logOffset":3}' in str(error.value)
    assert keys(path) == expected(0, 150)
    table = HudiTable.open(path)
    sink.stop()
    again.stop()
    table.roll_back(table.history(1)["instant"][0].as_py(), force=True)
    run(source(spark, folder, 4), HudiSink(path, located(checkpoint)), checkpoint)
    assert keys(path) == expected(0, 200)  # batch 2 has the files of two batches now


def test_positions_that_cannot_be_read_are_told_once(tmp_path, logs):
    os.makedirs(tmp_path / "c" / "offsets")
    (tmp_path / "c" / "offsets" / "1").write_text("v7\n{}\n{}")
    checkpoint = QueryCheckpoint(str(tmp_path / "c"), {})
    assert checkpoint.load_end(0) is None
    assert checkpoint.load_end(1) is None
    assert checkpoint.load_start(0) is None
    assert [entry["file"] for entry in logs if entry["event"] == "positions_not_recorded"] == ["offsets/0"]
    with pytest.raises(InvalidConfigError, match="there is no streaming checkpoint"):
        checkpoint.read_query_id()


def test_a_batch_that_is_not_under_way_in_the_checkpoint_is_of_another_query(tmp_path):
    for name in ("offsets/0", "offsets/1", "commits/0"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("v1\n{}")
    checkpoint = QueryCheckpoint(str(tmp_path), {})
    checkpoint.check_under_way(1)
    for batch_id in (0, 2):  # done, and not begun
        with pytest.raises(InvalidConfigError, match=f"not at batch {batch_id}: the batch is of another query"):
            checkpoint.check_under_way(batch_id)


def test_where_a_query_began_is_the_end_of_the_batch_before_or_what_the_sources_tell(tmp_path):
    (tmp_path / "offsets").mkdir()
    (tmp_path / "sources" / "0").mkdir(parents=True)
    for batch, offset in ((0, 5), (1, 9)):
        (tmp_path / "offsets" / str(batch)).write_text(f'v1\n{{}}\n{{"t":{{"0":{offset}}}}}')
    checkpoint = QueryCheckpoint(str(tmp_path), {})
    assert checkpoint.load_start(0) is None  # the source does not tell
    (tmp_path / "sources" / "0" / "0").write_bytes(b'\0v1\n{"t":{"0":2}}')
    (tmp_path / "sources" / "0" / "0").write_text('v1\n{"path":"file:///in/1","timestamp":1,"batchId":0}')
    assert checkpoint.load_start(0) is None  # a file source keeps its files there
    (tmp_path / "sources" / "0" / "0").write_bytes(b'\0v1\n{"t":{"0":2}}')
    positions = checkpoint.positions_of(0)
    assert (positions.load_start(), positions.load_end()) == (('{"t":{"0":2}}',), ('{"t":{"0":5}}',))
    assert checkpoint.positions_of(1).load_start() == ('{"t":{"0":5}}',)


def test_a_stream_without_a_checkpoint_location_is_told(spark, tmp_path, logs):
    told = lambda: [entry for entry in logs if entry["event"] == "checkpoint_is_temporary"]  # noqa: E731
    run(source(spark, str(tmp_path / "in"), 1), HudiSink(str(tmp_path / "t"), OPTIONS), str(tmp_path / "c"))
    assert told() == []
    stream = source(spark, str(tmp_path / "in"), 2).writeStream.foreachBatch(HudiSink(str(tmp_path / "u"), OPTIONS))
    query = stream.trigger(availableNow=True).start()
    query.awaitTermination()
    (warning,) = told()
    assert (warning["log_level"], warning["query_id"]) == ("warning", query.id)
    assert "checkpointLocation" in warning["hint"]
