"""A table written without Spark: what rows may be, every operation, exactly once, and what is refused."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from oracles import hudi_rs
from snapshots import assert_clean
from tiers import quick

from hudistream import HudiTable
from streaming import ArrowSink, RowCount, write_hudi
from table import (
    BatchOrderError,
    CommitConflictError,
    InvalidConfigError,
    InvalidRecordError,
    SchemaMismatchError,
    StorageError,
    read_table,
)
from table.storage.local import LocalStorage

NAMES = {"key": "id", "partition_by": "day", "order_by": "ts"}
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
ROWS = pa.table({"id": ["a", "b", "c"], "day": ["x", "y", "x"], "ts": [1, 1, 1], "v": ["1", "2", "3"]})


def rows(ids, ts=1, v="v", days=2):
    ids = list(ids)
    return pa.table(
        {
            "id": [f"k{number}" for number in ids],
            "day": [f"d{number % days}" for number in ids],
            "ts": pa.array([ts] * len(ids), pa.int64()),
            "v": [v] * len(ids),
        }
    )


def contents(path, reader=read_table):
    found = reader(str(path))
    return sorted((row["id"], row["ts"], row["v"]) for row in found.select(["id", "ts", "v"]).to_pylist())


def expected(*tables):
    return sorted((row["id"], row["ts"], row["v"]) for table in tables for row in table.to_pylist())


class Stream:
    """Anything that hands out Arrow rows."""

    def __arrow_c_stream__(self, requested_schema=None):
        return ROWS.__arrow_c_stream__(requested_schema)


KINDS = {
    "table": lambda: ROWS,
    "batch": lambda: ROWS.to_batches()[0],
    "reader": lambda: ROWS.to_reader(max_chunksize=1),
    "pandas": lambda: ROWS.to_pandas().set_index(np.array([7, 8, 9])),
    "polars": lambda: pl.from_arrow(ROWS),
    "categories": lambda: pl.from_arrow(ROWS).with_columns(pl.col("day").cast(pl.Categorical)),
    "stream": Stream,
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_may_be_of_every_kind_that_arrow_knows(tmp_path, kind):
    summary = write_hudi(tmp_path / "t", KINDS[kind](), **NAMES, options=QUIET)
    assert (summary.rows, summary.skipped) == (3, False)
    assert contents(tmp_path / "t") == expected(ROWS)
    assert HudiTable.open(tmp_path / "t").schema.names[-4:] == ROWS.column_names
    assert_clean(tmp_path / "t")


TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]


@pytest.mark.parametrize("values", [[1, "x"], [object(), None]], ids=["mixed", "objects"])
def test_a_pandas_column_without_one_type_is_named(tmp_path, values):
    frame = pd.DataFrame({"id": ["a", "b"], "odd": pd.Series(values, dtype=object)})
    with pytest.raises(InvalidRecordError, match=r"column odd .*astype"):
        write_hudi(tmp_path / "t", frame, key="id")
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE", "BUCKET", "GLOBAL_BLOOM", "GLOBAL_SIMPLE"])
def test_upserts_and_deletes_with_every_index(tmp_path, table_type, index):
    options = {**QUIET, "hoodie.index.type": index, "hoodie.datasource.write.table.type": table_type,
               "hoodie.bloom.index.update.partition.path": "false",
               "hoodie.simple.index.update.partition.path": "false",
               "hoodie.bucket.index.num.buckets": "2"}  # fmt: skip
    with ArrowSink(tmp_path / "t", options, **NAMES) as sink:
        sink.write(rows(range(20)))
        sink.write(rows(range(10, 30), ts=2, v="new"))
        sink.delete(rows([0, 25, 99]))
    assert contents(tmp_path / "t") == expected(rows(range(1, 10)), rows([*range(10, 25), *range(26, 30)], 2, "new"))
    assert_clean(tmp_path / "t")


@pytest.mark.parametrize("table_type", TYPES)
def test_the_other_operations(tmp_path, table_type):
    path, options = tmp_path / "t", {**QUIET, "hoodie.datasource.write.table.type": table_type}
    with ArrowSink(path, options, **NAMES, operation="insert") as sink:
        sink.write(rows(range(4)))
        sink.write(rows(range(2, 6)), operation="bulk_insert")
        assert contents(path) == expected(rows(range(4)), rows(range(2, 6)))
        sink.write(rows([8, 10]), operation="insert_overwrite")  # d0 alone
        assert contents(path) == expected(rows([8, 10]), rows([1, 3]), rows([3, 5]))
        sink.write(rows([7]), operation="delete_partition")
        assert contents(path) == expected(rows([8, 10]))
        sink.write(rows([1]), operation="insert_overwrite_table")
    assert contents(path) == expected(rows([1]))
    assert_clean(path)


def test_a_batch_id_gives_exactly_once(tmp_path):
    path = tmp_path / "t"
    with ArrowSink(path, QUIET, **NAMES, operation="insert") as sink:
        assert not sink.write(rows(range(3)), batch_id=0).skipped
        assert sink.write(rows(range(3)), batch_id=0).skipped
        sink.write(rows(range(3, 5)), batch_id=1)
    again = ArrowSink(path, QUIET, **NAMES, operation="insert")
    assert again.write(rows(range(3, 5)), batch_id=1).skipped
    with pytest.raises(CommitConflictError, match="batch 0 .* is not above batch 1"):
        again.write(rows(range(3)), batch_id=0)
    again.write(rows([7]))  # not remembered, and no batch of the numbered ones
    again.write(rows([8]), batch_id=2)
    again.stop()
    other = {**QUIET, "hoodie.datasource.write.streaming.checkpoint.identifier": "other"}
    assert not write_hudi(path, rows([9]), operation="insert", batch_id=0, options=other).skipped
    assert contents(path) == expected(rows(range(5)), rows([7, 8, 9]))


def test_a_skipped_batch_is_not_read(tmp_path):
    def batches():
        yield from ()
        raise AssertionError("somebody read the rows of a batch that is committed")

    write_hudi(tmp_path / "t", ROWS, **NAMES, batch_id=4, options=QUIET)
    reader = pa.RecordBatchReader.from_batches(ROWS.schema, batches())
    assert write_hudi(tmp_path / "t", reader, batch_id=4, options=QUIET).skipped


def test_a_sink_holds_the_table_between_numbered_batches_and_no_longer(tmp_path):
    path = tmp_path / "t"
    alone = ArrowSink(path, QUIET, **NAMES)
    alone.write(rows([1]))
    with ArrowSink(path, QUIET) as sink:
        sink.write(rows([2]))
        with pytest.raises(CommitConflictError, match="live writer"):
            alone.write(rows([3]))
    alone.write(rows([3]), batch_id=0)
    with pytest.raises(CommitConflictError, match="live writer"):
        write_hudi(path, rows([4]), options=QUIET)
    alone.stop()
    write_hudi(path, rows([4]), options=QUIET)
    assert contents(path) == expected(rows([1, 2, 3, 4]))


def test_deletes_by_the_values_of_the_key(tmp_path):
    path = tmp_path / "t"
    table = pa.table({"id": pa.array([1, 2, 3, 4], pa.int32()), "ts": [1] * 4, "v": ["v"] * 4})
    with ArrowSink(path, QUIET, key="id") as sink:
        sink.write(table)
        assert sink.delete([2, 77], batch_id=0).rows_deleted == 1
        sink.delete(pa.array([4], pa.int32()))
        with pytest.raises(InvalidConfigError, match="'x'"):
            sink.delete(["x"])
        with pytest.raises(InvalidConfigError, match="give rows as a pyarrow Table"):
            sink.delete([{"id": 1}])
    assert contents(path) == expected(table.take([0, 2]))


REFUSED = [
    (lambda: [{"id": 1}], InvalidConfigError, r"ArrowSink\.write takes .* not a list"),
    (lambda: ROWS.append_column("n", pa.nulls(3)), SchemaMismatchError, "'n' has no type of its own"),
    (lambda: pd.DataFrame({"id": ["a"], "day": ["x"], "ts": [1], "at": [pd.Timestamp(0)]}), SchemaMismatchError,
     "'at' has the type timestamp.*tz_localize"),
    (lambda: ROWS.append_column("n", pa.array([1, 2, 2**64 - 1], pa.uint64())), InvalidRecordError,
     "18446744073709551615"),
    (lambda: ROWS.append_column("at", pa.array([1, 2, 3], pa.timestamp("ns", "UTC"))), InvalidRecordError,
     "'at' of type timestamp.*round it"),
    (lambda: ROWS.drop_columns(["id"]), SchemaMismatchError, "'id' is missing and is of the record key: select it"),
    (lambda: ROWS.set_column(0, "id", pa.array(["a", None, "c"])), InvalidRecordError, "record key"),
    (lambda: ROWS.set_column(0, "id", pa.array([1, 2, 3])), SchemaMismatchError, "'id' is int64"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "error", "message"), REFUSED, ids=[case[2] for case in REFUSED])
def test_bad_input_is_named_and_leaves_nothing(tmp_path, make, error, message):
    path = tmp_path / "t"
    with ArrowSink(path, QUIET, **NAMES) as sink:
        sink.write(ROWS)
        with pytest.raises(error, match=message):
            sink.write(make(), batch_id=1)
        assert contents(path) == expected(ROWS)
        sink.write(rows([1]), batch_id=1)
    assert contents(path) == expected(ROWS, rows([1]))
    assert_clean(path)


@pytest.mark.parametrize("wrong", [{"batch_id": -1}, {"batch_id": "7"}, {"batch_id": True}, {"operation": "merge"}])
def test_a_batch_id_or_an_operation_that_is_none_is_refused(tmp_path, wrong):
    with pytest.raises(InvalidConfigError, match=next(iter(wrong))):
        ArrowSink(tmp_path / "t", **NAMES).write(ROWS, **wrong)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("workers", [0, "2", True])
def test_a_number_of_workers_that_is_none_is_refused(tmp_path, workers):
    with pytest.raises(InvalidConfigError, match="workers="):
        ArrowSink(tmp_path / "t", **NAMES, workers=workers)


def test_bad_rows_go_aside_where_they_may(tmp_path):
    bad = ROWS.set_column(0, "id", pa.array(["a", None, "c"]))
    summary = write_hudi(tmp_path / "t", bad, **NAMES, options={**QUIET, "hudistream.bad.rows": "quarantine"})
    assert (summary.rows, summary.bad_rows) == (2, 1)
    [aside] = [name for _, _, names in os.walk(tmp_path / "t_bad_rows") for name in names if name.endswith(".parquet")]
    assert aside


def test_callbacks_validators_and_failure_hooks_are_called(tmp_path):
    told, failed = [], []
    sink = ArrowSink(tmp_path / "t", QUIET, validators=[RowCount(least=2)], callbacks=[told.append],
                     on_failure=[failed.append], **NAMES)  # fmt: skip
    sink.write(ROWS, batch_id=0)
    with pytest.raises(Exception, match="refused"):
        sink.write(rows([1]), batch_id=1)
    sink.stop()
    assert [summary.batch_id for summary in told] == [0]
    assert [failure.batch_id for failure in failed] == [1]
    assert sink.last_batch == told[0]


def test_a_sink_is_picklable(tmp_path):
    sink = pickle.loads(pickle.dumps(ArrowSink(tmp_path / "t", QUIET, **NAMES, workers=3)))
    sink.write(ROWS)
    assert sink._workers == 3
    assert contents(tmp_path / "t") == expected(ROWS)


def test_pyspark_is_not_imported(tmp_path):
    code = f"""
import sys
sys.modules["pyspark"] = None
import pyarrow as pa
from hudistream import ArrowSink, read_table, write_hudi
write_hudi({str(tmp_path / "t")!r}, pa.table({{"id": [1, 2]}}), key="id")
with ArrowSink({str(tmp_path / "t")!r}) as sink:
    sink.write(pa.table({{"id": [2, 3]}}), batch_id=0)
assert read_table({str(tmp_path / "t")!r}).num_rows == 3
assert sys.modules["pyspark"] is None and not [name for name in sys.modules if name.startswith("pyspark.")]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


MANY = {**QUIET, "hoodie.insert.shuffle.parallelism": "3", "hudistream.task.memory.bytes": "20000"}


@pytest.mark.parametrize(
    "more",
    [{}, {"hoodie.index.type": "GLOBAL_BLOOM"}, {"hoodie.datasource.write.operation": "insert",
     "hoodie.combine.before.insert": "true"}, {"hoodie.datasource.write.operation": "bulk_insert",
     "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"}, {"hoodie.datasource.write.operation": "bulk_insert"}],
    ids=["upsert", "global", "combined", "sorted", "bulk"],
)  # fmt: skip
def test_threads_and_local_disk_change_nothing_of_the_rows(tmp_path, more):
    first, second = rows(range(2000), days=5), rows(range(1000, 4000), ts=2, v="new", days=5)
    found, scratch = [], open_scratch_files()
    for workers, options in ((1, {**QUIET, **more}), (3, {**MANY, **more})):
        path = tmp_path / str(workers)
        with ArrowSink(path, options, **NAMES, workers=workers) as sink:
            sink.write(first.to_reader(max_chunksize=300))
            sink.write(second)
        found.append(contents(path))
        assert_clean(path)
    assert found[0] == found[1]
    assert len(found[0]) == (5000 if "insert" in str(more) else 4000)
    assert open_scratch_files() == scratch


def open_scratch_files():
    """Files of this process that have no name."""
    links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    return sum(os.path.islink(link) and "(deleted)" in os.readlink(link) for link in links)


def test_a_reader_that_fails_leaves_nothing(tmp_path):
    def batches():
        yield from rows(range(3000)).to_batches(max_chunksize=100)
        raise OSError("the source broke off")

    path, scratch = tmp_path / "t", open_scratch_files()
    with ArrowSink(path, MANY, **NAMES) as sink:
        sink.write(ROWS)
        with pytest.raises(Exception, match="the source broke off"):
            sink.write(pa.RecordBatchReader.from_batches(ROWS.schema, batches()), batch_id=0)
        assert open_scratch_files() == scratch
        sink.write(rows([1]), batch_id=0)
    assert contents(path) == expected(ROWS, rows([1]))
    assert_clean(path)


def test_a_task_that_fails_ends_the_others_and_leaves_nothing(tmp_path, monkeypatch):
    path, scratch = tmp_path / "t", open_scratch_files()
    with ArrowSink(path, MANY, **NAMES, workers=2) as sink:
        sink.write(ROWS)
        publish = LocalStorage.publish

        def failing(self, path, stage, output):
            if path.startswith("d1"):
                raise StorageError("no room")
            return publish(self, path, stage, output)

        with monkeypatch.context() as patched:
            patched.setattr(LocalStorage, "publish", failing)
            with pytest.raises(StorageError, match="no room"):
                sink.write(rows(range(3000), days=5), batch_id=0)
        assert contents(path) == expected(ROWS)
        assert open_scratch_files() == scratch
        sink.write(rows(range(3000), days=5), batch_id=0)
    assert contents(path) == expected(ROWS, rows(range(3000), days=5))
    assert contents(path, hudi_rs.read) == contents(path)
    assert_clean(path)


@pytest.mark.parametrize("memory", quick(1, ["1048576", "134217728"]))  # by way of local disk, and in memory
@pytest.mark.parametrize("layout", ["linear", "z-order", "hilbert"])
def test_a_bulk_insert_sorts_by_columns(tmp_path, layout, memory):
    numbers = np.random.default_rng(5).permutation(60_000)
    rows = pa.table(
        {"id": numbers.astype(str), "p": (numbers % 2).astype(str), "x": numbers // 300, "y": numbers % 300}
    )
    options = {
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "x,y",
        "hoodie.layout.optimize.strategy": layout,
        "hoodie.parquet.max.file.size": "65536",
        "hoodie.copyonwrite.record.size.estimate": "64",
        "hudistream.task.memory.bytes": memory,
    }
    write_hudi(tmp_path / "t", rows, options=options, key="id", partition_by="p", operation="bulk_insert")
    table = HudiTable.open(tmp_path / "t")
    assert sorted(read_table(tmp_path / "t").column("id").to_pylist()) == sorted(rows.column("id").to_pylist())
    shares = []
    for name, middle in ("x", 100), ("y", 150):
        found = table.scan(where=[(name, ">=", middle), (name, "<", middle + 2)]).explain()
        shares.append(1 - found.files_pruned_by_statistics / found.files_read)
    assert shares[0] < (0.1 if layout == "linear" else 0.45)
    assert shares[1] == 1.0 if layout == "linear" else shares[1] < 0.45


def test_frames_of_pandas_without_rows_or_types_are_taken(tmp_path):
    path, typed = str(tmp_path / "t"), pa.table({"id": ["a"], "n": [7], "at": pa.array([0], pa.timestamp("us", "UTC"))})
    frame = pd.DataFrame({"id": [], "n": [], "at": [], "new": []}, dtype=object)
    with ArrowSink(path, {"hudistream.schema.mode": "reconcile"}, key="id", operation="upsert") as sink:
        assert sink.write(frame).instant_time is None  # a table without rows has no columns yet
        sink.write(typed)
        sink.write(frame)
        sink.write(frame.drop(columns=["at", "new"]), operation="delete")
        sink.write(pd.DataFrame({"id": ["b"], "n": [None], "at": [None]}))
        sink.write(pd.DataFrame({"id": ["c", "d"], "n": [None, 8]}))  # pandas makes floats of the integers
        sink.write(pa.table({"id": ["e"], "n": pa.array([2**63 - 1], pa.uint64())}))
        for rows, said in [
            (pd.DataFrame({"id": ["f"], "new": [None]}), "'new' has no type of its own"),
            (pa.table({"id": ["f"], "n": pa.array([2**63], pa.uint64())}), "9223372036854775808"),
            (pd.DataFrame({"id": [None], "n": [1]}), "null or empty"),
        ]:
            with pytest.raises((InvalidRecordError, SchemaMismatchError), match=said):
                sink.write(rows)
    found = HudiTable.open(path).scan().to_arrow()
    assert found.schema.field("n").type == pa.int64()
    assert found.schema.names == ["id", "n", "at"]
    assert dict(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True)) == {
        "a": 7, "b": None, "c": None, "d": 8, "e": 2**63 - 1,
    }  # fmt: skip


@pytest.mark.parametrize("memory_bytes", ["134217728", "1"], ids=["in memory", "on local disk"])
def test_keys_that_no_array_can_hold_are_refused_by_the_name_of_their_file_group(tmp_path, monkeypatch, memory_bytes):
    from table.files.base import file_keys

    path = str(tmp_path / "t")
    with ArrowSink(path, {"hudistream.task.memory.bytes": memory_bytes}, key="id", order_by="ts") as sink:
        sink.write(pa.table({"id": ["a"], "ts": [1]}))
        monkeypatch.setattr(file_keys, "MOST_KEY_BYTES", 1000)
        with pytest.raises(InvalidRecordError, match=r"take \d+ bytes, and 1000 is the most: write smaller") as raised:
            sink.write(pa.table({"id": [f"k{n:050}" for n in range(30)], "ts": [2] * 30}))
        assert HudiTable.open(path).files()["file_id"][0].as_py() in str(raised.value)
        assert read_table(path).num_rows == 1


class OwnFrame(pd.DataFrame):
    """As GeoPandas and others make them."""

    @property
    def _constructor(self):
        return OwnFrame


def test_a_class_that_is_made_of_a_pandas_frame_is_one(tmp_path):
    with ArrowSink(str(tmp_path / "t"), key="id") as sink:
        frame = OwnFrame({"id": ["a", "b", "c"], "v": [1, 2, 3]})
        sink.write(frame[frame["v"] > 1])  # its index is 1, 2
        with pytest.raises(InvalidConfigError, match="has the index id, and an index is not written"):
            sink.write(frame.set_index("id"))
    assert read_table(str(tmp_path / "t")).select(["id", "v"]).to_pylist() == [{"id": "b", "v": 2}, {"id": "c", "v": 3}]
    assert "__index_level_0__" not in read_table(str(tmp_path / "t")).column_names


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame([["a", 1]], columns=["id", "id"]), "Duplicate column names"),
        (pd.DataFrame({"id": ["a"], "v": [1 + 2j]}), "complex128"),
        (pd.DataFrame({"id": ["a"], "v": [2**70]}), "too large"),
        (pd.DataFrame({"id": ["a"], "v": ["\ud800"]}), "surrogates not allowed"),
        (pd.DataFrame({"id": ["a"], "v": pd.arrays.SparseArray([1])}), "Sparse pandas data"),
    ],
)
def test_a_pandas_frame_that_arrow_cannot_take_is_refused_in_words(tmp_path, frame, said):
    with ArrowSink(str(tmp_path / "t"), key="id") as sink, pytest.raises(InvalidRecordError, match=said) as refused:
        sink.write(frame)
    assert "Traceback" not in str(refused.value)


def test_python_objects_of_polars_are_refused(tmp_path):
    frame = pl.DataFrame({"id": ["a"], "v": pl.Series([object()], dtype=pl.Object)})
    with (
        ArrowSink(str(tmp_path / "t"), key="id") as sink,
        pytest.raises(SchemaMismatchError, match="type Object"),
    ):
        sink.write(frame)


@pytest.mark.parametrize(
    "settings",
    [
        {"table_type": "mor", "index": "global_simple"},
        {"operation": "delete"},
        {"operation": "delete_partition"},
    ],
    ids=str,
)
def test_what_is_refused_leaves_no_table(tmp_path, settings):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id", **settings) as sink, pytest.raises(InvalidConfigError):
        sink.write(ROWS)
    assert not os.path.exists(f"{path}/.hoodie/hoodie.properties")
    with ArrowSink(path, key="id", table_type="cow") as sink:
        assert sink.write(ROWS).rows == 3


def test_an_index_with_a_name_is_no_column_and_is_refused(tmp_path):
    frame = ROWS.to_pandas()
    for keys in (["id"], ["id", frame.columns[-1]]):
        with pytest.raises(InvalidConfigError, match=rf"the index {', '.join(keys)}, .*frame.reset_index\(\) makes it"):
            write_hudi(tmp_path / "t", frame.set_index(keys), key="id")
    assert write_hudi(tmp_path / "t", frame.set_index("id").reset_index(), key="id").rows == len(ROWS)


def test_a_number_that_is_committed_for_one_operation_is_refused_for_another_one(tmp_path):
    rows = pa.table({"id": ["a", "b"], "v": [1, 2]})
    with ArrowSink(tmp_path / "t", key="id") as sink:
        sink.write(rows, batch_id=0)
        sink.write(rows, batch_id=1, operation="delete")
        assert sink.write(rows, batch_id=1, operation="delete").skipped
        with pytest.raises(BatchOrderError, match="committed as DELETE, and comes a second time as INSERT"):
            sink.write(rows, batch_id=1, operation="insert")
        assert sink.write(rows, batch_id=2, operation="insert").rows == 2


def test_a_relative_path_means_the_working_directory_in_which_the_sink_was_made(tmp_path, monkeypatch):
    for name, v in (("here", 1), ("there", 2)):
        (tmp_path / name).mkdir()
        ArrowSink(tmp_path / name / "t", key="id").write(pa.table({"id": ["1", "2"], "v": [v, 3 - v]}))
    monkeypatch.chdir(tmp_path / "here")
    sink = ArrowSink("t", key="id")
    sent = pickle.dumps(sink)
    monkeypatch.chdir(tmp_path / "there")
    before = sorted(os.listdir("t/.hoodie/.hudistream"))
    sink.delete(where=[("v", "=", 1)])
    pickle.loads(sent).write(pa.table({"id": ["3"], "v": [3]}))
    assert sorted(os.listdir("t/.hoodie/.hudistream")) == before
    assert sorted(read_table(tmp_path / "here" / "t")["id"].to_pylist()) == ["2", "3"]
    assert sorted(read_table(tmp_path / "there" / "t")["id"].to_pylist()) == ["1", "2"]
