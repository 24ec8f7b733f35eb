"""Nothing lost, and nothing comes back: late tasks, cleans beside batches, archival of what is still there."""

import io
import os
from contextlib import suppress
from glob import glob

import pyarrow as pa
import pytest
from engine import Engine, key_set, rows
from upkeep import LAST_VERSION, NARROW, OPERATION, UPSERT, data_files, request_clean

from table import StorageError, read_table
from table.hudi_table import HudiTable
from table.options.groups import ArchiveSettings, CleanSettings
from table.services.archival.archival import archive
from table.services.clean.clean import clean
from table.services.rollback import rollback as undoing
from table.services.savepoint.savepoint import create_savepoint, delete_savepoint
from table.storage.interface import Storage
from table.storage.local import LocalStorage
from table.timeline.active_timeline import load_timeline
from table.write import announce, bucket_file
from table.write.context import Attempt, Bucket, BucketType
from table.write.write_bucket import BucketWriter


def delete_partition(path, partition):
    options = {OPERATION: "delete_partition", "hoodie.datasource.write.partitions.to.delete": partition}
    Engine(path, options).write(None, rows([]))


class Upload(io.BytesIO):
    """A file that is there once it is closed, whatever has become of its instant."""

    def __init__(self, storage, path):
        super().__init__()
        self._storage, self._path = storage, path

    def close(self):
        if not self.closed:
            self._storage.put(self._path, self.getvalue())
        super().close()


class Unfenced(LocalStorage):
    """What object stores other than S3 can do."""

    has_fence = False

    def open_output(self, path, stage=None):
        return Upload(self, path)

    def open_copy(self, source, ranges, path, stage=None):
        sink, data = Upload(self, path), self.read(source)
        for piece in ranges:
            sink.write(data[piece.start : piece.start + piece.length])
        return sink

    open_staging, is_open, fence = Storage.open_staging, Storage.is_open, Storage.fence
    staged_instants, stage = Storage.staged_instants, Storage.stage

    def publish(self, path, stage, output):
        """It is there."""


@pytest.mark.parametrize("store", [LocalStorage, Unfenced])
@pytest.mark.parametrize("moment", ["before the plan is durable", "after it is", "after the rollback", "long after"])
def test_what_a_task_does_after_its_batch_failed_is_invisible_after_archival_too(tmp_path, monkeypatch, store, moment):
    path = str(tmp_path / "t")
    engine, late = Engine(store(path)), []
    engine.write(0, rows(range(30)))
    table = HudiTable(store(path), HudiTable.open(path).config)

    def one_task_fails_and_another_goes_on(plan, _table):
        writer = BucketWriter(plan.context, Bucket(BucketType.INSERT, "p0", "late-0"), Attempt("1-0-9"))
        writer.write(rows(range(900, 909)).append_column("_hoodie_record_key", rows(range(900, 909)).column("id")))
        writer._writer._flush()  # announced, opened, and past its first look
        late.append(writer)
        raise RuntimeError("one task of the job fails")

    def close_late():
        with monkeypatch.context() as now, suppress(StorageError):
            # past its last look as well: where nothing else keeps it out, its file is there from now on
            now.setattr(bucket_file.BucketFile, "check_not_ended", lambda _self: None)
            now.setattr(announce, "check_not_ended", lambda *_: None)
            late.pop().close()
        if moment in ("after the rollback", "long after"):
            assert bool(glob(f"{path}/p0/late*")) == (store is Unfenced)

    inner, engine.distribute = engine.distribute, one_task_fails_and_another_goes_on
    with monkeypatch.context() as patched:
        name = "execute_rollback" if moment == "after it is" else "request_instant"
        step = getattr(undoing, name)
        if moment in ("before the plan is durable", "after it is"):
            patched.setattr(undoing, name, lambda *given: (late and close_late(), step(*given))[1])
        with pytest.raises(RuntimeError):
            engine.write(1, rows(range(30, 60)))
    engine.distribute = inner
    for number in range(1, 10):
        if late and (moment == "after the rollback" or number == 6):
            close_late()
            assert key_set(read_table(path)) == key_set(rows(range(30 * number)))
        engine.write(number, rows(range(30 * number, 30 * number + 30)))
        clean(table, CleanSettings(commits_retained=1, grace_ms=0))
        archive(table, NARROW, CleanSettings(grace_ms=0))
        assert key_set(read_table(path)) == key_set(rows(range(30 * number + 30)))
    assert glob(f"{path}/p0/late*") == []
    # where a late task cannot be kept out, nothing is archived beyond its instant
    assert (len(load_timeline(table.storage).completed_writes) <= 3) == (store is LocalStorage)


def test_a_clean_beside_a_batch_that_writes_into_the_emptied_partition_takes_nothing_of_it(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(30)))
    delete_partition(path, "p0")
    table, create_marker = HudiTable.open(path), announce.create_marker

    def clean_meanwhile(*given):
        monkeypatch.setattr(announce, "create_marker", create_marker)
        (outcome,) = clean(table, LAST_VERSION)
        assert outcome.deleted["p0"]
        return create_marker(*given)

    monkeypatch.setattr(announce, "create_marker", clean_meanwhile)
    engine = Engine(path)
    engine.write(1, rows(range(100, 110), lambda _: "p0"))
    engine.write(2, rows(range(110, 120), lambda _: "p0"))
    kept = [f"k{number}" for number in range(30) if number % 3] + [f"k{number}" for number in range(100, 120)]
    assert key_set(read_table(path)) == sorted(kept)


def test_a_clean_that_was_planned_before_rows_came_into_the_emptied_partition_keeps_them(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(30)))
    delete_partition(path, "p0")
    table = HudiTable.open(path)
    request_clean(table, LAST_VERSION)
    engine = Engine(path)
    engine.write(1, rows(range(100, 130)))
    before = key_set(read_table(path))
    assert clean(table, LAST_VERSION)[0].deleted["p0"]
    assert key_set(read_table(path)) == before
    engine.writer.stop()
    delete_partition(path, "p0")
    clean(table, LAST_VERSION)
    assert not os.path.exists(os.path.join(path, "p0"))  # nobody writes: the folder goes, too


@pytest.mark.parametrize("operation", ["insert_overwrite_table", "delete_partition"])
def test_a_table_without_partitions_that_was_emptied_and_cleaned_is_still_a_table(tmp_path, operation):
    path = str(tmp_path / "t")
    flat = {
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    }
    batch = rows(range(10)).drop_columns(["p"])
    Engine(path, flat, query_id=None).write(None, batch)
    everything = {"hoodie.datasource.write.partitions.to.delete": "*"} if operation == "delete_partition" else {}
    Engine(path, {**flat, OPERATION: operation, **everything}, query_id=None).write(None, batch.slice(0, 0))
    assert clean(HudiTable.open(path), LAST_VERSION)[0].deleted[""]
    assert glob(f"{path}/*.parquet") == []
    assert os.path.exists(f"{path}/.hoodie/hoodie.properties")
    assert os.path.exists(f"{path}/.hoodie_partition_metadata")
    assert len(read_table(path)) == 0
    Engine(path, flat, query_id=None).write(None, batch)
    assert key_set(read_table(path)) == key_set(rows(range(10)))


def test_a_partition_with_live_children_is_emptied_without_them(tmp_path):
    path = str(tmp_path / "t")
    Engine(path, query_id=None).write(None, rows(range(30), lambda number: ["a", "a/b", "ab"][number % 3]))
    delete_partition(path, "a")
    clean(HudiTable.open(path), LAST_VERSION)
    assert data_files(path, "a") == []
    assert sorted(set(read_table(path).column("p").to_pylist())) == ["a/b", "ab"]
    assert len(read_table(path)) == 20


@pytest.mark.parametrize("why", ["its deletion failed once", "its deletion fails always", "grace", "savepoint"])
def test_replaced_rows_do_not_come_back_when_archival_finds_their_files_still_there(tmp_path, why):
    path, refusing = str(tmp_path / "t"), set()

    class Stubborn(LocalStorage):
        def _delete(self, name):
            if name in refusing:
                raise StorageError("no permission")
            return super()._delete(name)

    storage = Stubborn(path)
    Engine(storage, query_id=None).write(None, rows(range(30)))
    table = HudiTable(storage, HudiTable.open(path).config)
    savepoint = create_savepoint(table) if why == "savepoint" else ""
    replaced = data_files(path, "p0")
    delete_partition(path, "p0")
    if "fail" in why:
        refusing.update(os.path.relpath(file, path) for file in replaced)
    settings = CleanSettings(commits_retained=2, grace_ms=600_000 if why == "grace" else 0)
    engine, wanted = Engine(storage, UPSERT), [f"k{number}" for number in range(30) if number % 3]
    batch = rows(range(30)).filter(pa.array([number % 3 != 0 for number in range(30)]))
    for number in range(10):
        engine.write(number, batch)
        if why == "grace":  # what else was written is old enough
            for file in data_files(path, "p[12]"):
                os.utime(file, (0, 0))
        failed = [done for done in clean(table, settings) if any(done.failed.values())]
        if failed and "once" in why:
            refusing.clear()
        if savepoint and number == 6:
            delete_savepoint(table, savepoint)
        archive(table, ArchiveSettings(min_commits=3, max_commits=4), settings)
        assert key_set(read_table(path)) == sorted(wanted)
    gone = why in ("its deletion failed once", "savepoint")
    assert [os.path.exists(file) for file in replaced] == [not gone]
    assert (len(load_timeline(storage).completed_writes) <= 5) == gone  # what cannot be proven stays where it is
