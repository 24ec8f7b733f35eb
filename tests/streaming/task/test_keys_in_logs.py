"""Keys that lie in log files alone are changed where they lie, by writers whose index names their file group."""

import pytest
from engine import Engine, form_of, rows
from record_index import assert_record_index_is_right
from snapshots import contents

from streaming.batch import begin_batch
from table import UnsupportedTableError
from table.hudi_table import HudiTable
from table.metadata_table.read_record_index import RecordIndex
from table.services.compaction.compaction import compact
from table.transaction.commit import begin_commit

INDEXED = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.datasource.compaction.async.enable": "false",
}
JOINS = {"hudistream.new.rows.join.logs": "true"}  # as Flink does
OPERATION = "hoodie.datasource.write.operation"


def sink(path, version, **more):
    return Engine(path, {**form_of(version, "MERGE_ON_READ"), **INDEXED, OPERATION: "upsert", **more})


@pytest.fixture(params=[6, 8, 9])
def table(request, tmp_path):
    """Path and version of a table with k0 to k9 in base files, and k10 to k13 in their log files."""
    path, version = str(tmp_path / "t"), request.param
    sink(path, version).write(0, rows(range(10), ts=0))
    sink(path, version, **JOINS).write(1, rows(range(10, 14), ts=1))
    assert len(contents(path)) == 14
    assert_record_index_is_right(path)
    return path, version


def values(path):
    return {row[0]: row[1:] for row in contents(path)}


@pytest.mark.parametrize("then", ["read", "compact"])
def test_they_are_updated_and_deleted_where_they_lie(table, then):
    path, version = table
    summary = sink(path, version).write(2, rows(range(8, 12), ts=2, v="new"))
    assert (summary.rows_updated, summary.files_created) == (4, 0)
    sink(path, version, **{OPERATION: "delete"}).write(3, rows([11, 12], ts=3))
    sink(path, version).write(4, rows([12, 20], ts=4, v="again"))
    if then == "compact":
        compact(HudiTable.open(path))
    found = values(path)
    assert len(found) == len(contents(path)) == 14
    assert found["k10"] == ("p1", 2, "new")
    assert found["k13"] == ("p1", 1, "v")
    assert found["k12"] == ("p0", 4, "again")
    assert "k11" not in found
    assert_record_index_is_right(path)


def test_inserts_that_drop_known_keys_know_them(table):
    path, version = table
    dropping = {OPERATION: "insert", "hoodie.datasource.write.insert.drop.duplicates": "true"}
    sink(path, version, **dropping).write(2, rows(range(12, 16), ts=2, v="new"))
    found = values(path)
    assert len(found) == len(contents(path)) == 16
    assert (found["k12"][2], found["k14"][2]) == ("v", "new")


def test_rows_that_do_not_fit_into_memory_go_where_their_keys_lie(table):
    path, version = table
    sink(path, version, **{"hudistream.task.memory.bytes": "1"}).write(2, rows(range(8, 20), ts=2, v="new"))
    found = values(path)
    assert len(found) == len(contents(path)) == 20
    assert {found[f"k{n}"][2] for n in range(8, 20)} == {"new"}
    assert_record_index_is_right(path)


@pytest.mark.parametrize("table", [8], indirect=True)
def test_an_index_that_names_a_file_group_without_the_key_is_not_believed(table, monkeypatch):
    """Whether the log has a key is looked up: k40 is nowhere, whatever the index says."""
    path, version = table
    real = RecordIndex.find

    def wrong(self, keys, memory=None):
        found = real(self, keys, memory)
        numbers = found.numbers.copy()
        numbers[numbers < 0] = 0 if found.locations else -1
        return type(found)(numbers, found.locations)

    monkeypatch.setattr(RecordIndex, "find", wrong)
    sink(path, version).write(2, rows([1, 40], ts=2), 1)
    assert len(contents(path)) == 15
    assert_record_index_is_right(path)


def test_a_writer_that_joins_logs_reads_them_where_the_index_is_gone(table):
    path, version = table
    gone = {**JOINS, "hoodie.metadata.enable": "false", "hoodie.metadata.record.index.enable": "false"}
    summary = sink(path, version, **gone).write(2, rows(range(8, 12), ts=2, v="new"))
    assert (summary.rows_updated, summary.files_created, len(contents(path))) == (4, 0, 14)
    sink(path, version, **gone, **{OPERATION: "delete"}).write(3, rows(range(9, 13), ts=3))
    assert len(contents(path)) == 10


def test_where_the_index_cannot_be_used_the_log_files_are_read(table, monkeypatch):
    path, version = table

    def unusable(*_):
        raise UnsupportedTableError("a test")

    monkeypatch.setattr(RecordIndex, "find", unusable)
    sink(path, version).write(2, rows(range(8, 16), ts=2, v="new"))
    found = values(path)
    assert len(found) == len(contents(path)) == 16
    assert {found[f"k{number}"][2] for number in range(8, 16)} == {"new"}
    assert_record_index_is_right(path)


def test_a_deleted_row_in_a_base_file_does_not_hide_the_row_in_a_log_file(table, monkeypatch):
    """A key that was deleted came back in another partition path, into a log file."""
    path, version = table
    sink(path, version, **{OPERATION: "delete"}).write(2, rows([0], ts=2))
    sink(path, version, **JOINS).write(3, rows([0], lambda _: "p1", ts=3))

    def unusable(*_):
        raise UnsupportedTableError("a test")

    monkeypatch.setattr(RecordIndex, "find", unusable)
    sink(path, version).write(4, rows([0, 1], lambda _: "p1", ts=4, v="new"))
    assert values(path)["k0"] == ("p1", 4, "new")
    assert len(contents(path)) == len(values(path)) == 14
    assert_record_index_is_right(path)


@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE", "GLOBAL_BLOOM", "GLOBAL_SIMPLE"])
def test_a_writer_that_looks_into_base_files_is_refused_until_a_compaction(table, index):
    path, version = table
    stays = {f"hoodie.{kind}.index.update.partition.path": "false" for kind in ("bloom", "simple")}
    other = {"hoodie.index.type": index, "hoodie.metadata.record.index.enable": "false", **stays}
    before = contents(path)
    with pytest.raises(UnsupportedTableError, match=r"in a log file and not in its base file.*RECORD_INDEX"):
        sink(path, version, **other).write(2, rows(range(8, 12), ts=2, v="new"))
    assert contents(path) == before
    compact(HudiTable.open(path))
    sink(path, version, **other).write(2, rows(range(8, 12), ts=2, v="new"))
    sink(path, version, **other).write(3, rows(range(8, 12), ts=3, v="newer"))  # now log files hold updates alone
    found = values(path)
    assert len(found) == len(contents(path)) == 14
    assert {found[f"k{number}"][2] for number in range(8, 12)} == {"newer"}


@pytest.mark.parametrize("when", ["between its batches", "after it read the properties"])
def test_a_sink_that_looked_into_base_files_before_sees_that_rows_joined_logs(tmp_path, monkeypatch, when):
    path, several = str(tmp_path / "t"), {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    sink(path, 8).write(0, rows(range(10), ts=0))
    looks = sink(path, 8, **several, **{"hoodie.index.type": "BLOOM"})
    looks.write(1, rows([1], ts=1))
    name = {"hoodie.datasource.write.streaming.checkpoint.identifier": "another"}

    def join():
        joins = sink(path, 8, **several, **JOINS, **name)
        joins.writer.lease.find_share = lambda: (0, 1)  # else some of the file groups are the other sink's to fill
        joins.write(0, rows(range(10, 14), ts=1))

    def begin_late(*given):
        monkeypatch.setattr(begin_batch, "begin_commit", begin_commit)
        join()
        return begin_commit(*given)

    if when == "between its batches":
        join()
    else:
        monkeypatch.setattr(begin_batch, "begin_commit", begin_late)
    with pytest.raises(UnsupportedTableError, match="in a log file and not in its base file"):
        looks.write(2, rows([12, 13], ts=2))
    assert len(contents(path)) == 14
