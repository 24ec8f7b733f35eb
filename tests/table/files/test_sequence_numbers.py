"""Sequence numbers: ``<instant>_<task>_<index>``, each row of a commit has its own."""

import re

import pyarrow as pa
import pytest
from engine import Engine, rows
from faults import FaultyStorage, Fuse
from hypothesis import given, settings
from hypothesis import strategies as st
from stream import OPTIONS
from tiers import examples, quick

from streaming import HudiSink
from table import StorageError, read_table
from table.options.choices import IndexType
from table.storage.local import LocalStorage

UPSERT = {"hoodie.datasource.write.operation": "upsert", "hoodie.bucket.index.num.buckets": "3"}
FORM = re.compile(r"(\d{17})_(\d+)_(\d+)")
WAYS = {
    "insert": {"hoodie.datasource.write.operation": "insert"},
    "insert, small files": {"hoodie.datasource.write.operation": "insert", "hoodie.parquet.max.file.size": "12000"},
    "insert, without duplicates": {
        "hoodie.datasource.write.operation": "insert",
        "hoodie.merge.allow.duplicate.on.inserts": "false",
    },
    "bulk_insert": {"hoodie.datasource.write.operation": "bulk_insert"},
    **{index: {**UPSERT, "hoodie.index.type": index} for index in IndexType},
    "in lots": {**UPSERT, "hudistream.task.memory.bytes": "4000"},
    "partial": {**UPSERT, "hoodie.datasource.write.payload.class": "PartialUpdateAvroPayload"},
}


def numbers_of(path, instant):
    """Task and index of each row that a commit wrote."""
    table = read_table(path, ["_hoodie_commit_time", "_hoodie_commit_seqno"]).to_pylist()
    found = [FORM.fullmatch(row["_hoodie_commit_seqno"]) for row in table if row["_hoodie_commit_time"] == instant]
    assert {match[1] for match in found} <= {instant}
    return [(int(match[2]), int(match[3])) for match in found]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tasks", quick(1, [2, 1]))
def test_each_row_of_a_commit_has_its_own(tmp_path, way, tasks):
    path = str(tmp_path / "t")
    engine = Engine(path, WAYS[way])
    for batch, numbers in enumerate([range(60), range(40, 120), range(0, 150, 3)]):
        summary = engine.write(batch, rows(numbers, ts=batch, v=f"v{batch}"), parallelism=tasks)
        found = numbers_of(path, summary.instant_time)
        assert len(found) == summary.rows + summary.rows_updated == len(numbers)
        assert len(set(found)) == len(found)


def test_the_index_runs_over_the_files_of_a_task_from_nought(tmp_path):
    path = str(tmp_path / "t")
    summary = Engine(path).write(0, rows(range(90)), parallelism=1)
    assert sorted(numbers_of(path, summary.instant_time)) == [(0, number) for number in range(90)]


class Hiccup(Fuse):
    """One call fails; the next ones do not."""

    def pass_through(self, name, effect):
        self.calls.append(name)
        if len(self.calls) == self.at:
            raise StorageError(name)
        return effect()


def test_attempts_at_a_task_that_failed_leave_no_row_with_the_number_of_another(tmp_path):
    def write(path, hiccup):
        Engine(path, UPSERT).write(0, rows(range(60)))
        faulty = FaultyStorage(LocalStorage(path), hiccup)
        return Engine(path, UPSERT, worker_storage=faulty, retry=1).write(1, rows(range(30, 90), ts=1))

    counted = Hiccup()
    write(str(tmp_path / "count"), counted)
    for number in range(1, len(counted.calls) + 1, 5):
        path = str(tmp_path / str(number))
        found = numbers_of(path, write(path, Hiccup(number)).instant_time)
        assert len(set(found)) == len(found) == 60


@pytest.mark.parametrize("payload", ["DefaultHoodieRecordPayload", "PartialUpdateAvroPayload"])
def test_a_record_that_replaces_several_rows_of_its_key_gives_each_its_own(tmp_path, payload):
    path = str(tmp_path / "t")
    options = {"hoodie.datasource.write.payload.class": payload}
    doubled = pa.concat_tables([rows(range(30)), rows(range(15)), rows(range(5))])
    Engine(path, options).write(0, doubled)
    summary = Engine(path, {**UPSERT, **options}).write(1, rows(range(0, 40, 2), ts=1, v="new"))
    found = numbers_of(path, summary.instant_time)
    assert len(found) == summary.rows + summary.rows_updated == 20 + 8 + 3
    assert len(set(found)) == len(found)


@given(st.lists(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3), st.integers(0, 2)), max_size=60), max_size=4))
@settings(max_examples=examples(15), deadline=None)
def test_whatever_arrives(tmp_path_factory, batches):
    path = str(tmp_path_factory.mktemp("any") / "t")
    engine = Engine(path, {**UPSERT, "hoodie.index.type": "GLOBAL_BLOOM", "hoodie.parquet.max.file.size": "14000"})
    for number, batch in enumerate(batches):
        table = pa.concat_tables(
            [rows([key], lambda _, p=path: f"p{p}", ts=ts) for key, path, ts in batch] or [rows([])]
        )
        summary = engine.write(number, table)
        if summary.instant_time is not None:
            found = numbers_of(path, summary.instant_time)
            assert len(set(found)) == len(found)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("index", quick(1, ["GLOBAL_BLOOM", "BLOOM", "BUCKET"]))
def test_on_spark_each_row_of_a_commit_has_its_own(spark, tmp_path, index):
    path = str(tmp_path / "t")
    sink = HudiSink(path, {**OPTIONS, **UPSERT, "hoodie.index.type": index, "hoodie.upsert.shuffle.parallelism": "2"})
    for first in (0, 10_000):
        frame = spark.range(first, first + 20_000, 1, 4).selectExpr(
            "concat('k', id) id", "concat('p', id % 7) p", f"{first}L ts", "sha2(cast(id as string), 512) v"
        )
        summary = sink.write(frame)
        found = numbers_of(path, summary.instant_time)
        assert len(found) == summary.rows + summary.rows_updated == 20_000
        assert len(set(found)) == len(found)
