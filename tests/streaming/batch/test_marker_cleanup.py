"""Markers of a large commit are deleted beside the next batch, and what a crash leaves is swept."""

import pytest
from engine import Engine, key_set, rows

from streaming.batch import marker_cleanup
from streaming.batch.marker_cleanup import FEW_FILES
from table import StorageError, read_table, threads
from table.files.markers import delete_marker, list_marked_instants, list_markers
from table.storage.local import LocalStorage
from table.transaction.commit import clean_up_commit
from table.transaction.heartbeat import HEARTBEAT_FOLDER

MANY = FEW_FILES + 6
UPSERT = {"hoodie.datasource.write.operation": "upsert"}


def spread_rows(start, paths):
    return rows(range(start, start + paths), partition=lambda key: f"p{key % paths}")


@pytest.fixture
def held(monkeypatch):
    """Threads wait until the test lets them go."""
    gate, inner = threads.make_signal(), marker_cleanup.clean_up_commit

    def clean_up(storage, time, stats):
        assert gate.wait(30)
        inner(storage, time, stats)

    monkeypatch.setattr(marker_cleanup, "clean_up_commit", clean_up)
    yield gate
    gate.set()


def test_markers_of_many_files_are_deleted_beside_the_next_batch(tmp_path, held):
    storage = LocalStorage(str(tmp_path / "t"))
    engine = Engine(storage, UPSERT)
    first = engine.write(0, spread_rows(0, MANY))
    assert list_marked_instants(storage) == [first.instant_time]  # the batch did not wait for them
    held.set()
    engine.writer.stop()
    assert list_marked_instants(storage) == []


def test_a_batch_leaves_the_markers_alone_that_its_writer_is_deleting(tmp_path, held, monkeypatch):
    storage = LocalStorage(str(tmp_path / "t"))
    engine = Engine(storage, UPSERT)
    time = engine.write(0, spread_rows(0, MANY)).instant_time
    assert engine.writer._cleanup.under_way == {time}
    monkeypatch.setattr(marker_cleanup, "clean_up_commit", clean_up_commit)
    engine.write(1, rows([1000]))
    assert list_marked_instants(storage) == [time]
    assert len(list_markers(storage, time)) == MANY


def test_markers_that_a_crash_left_half_deleted_are_swept_by_the_next_writer(tmp_path, monkeypatch):
    storage = LocalStorage(str(tmp_path / "t"))

    def crash(storage, time, stats):
        for marker in list_markers(storage, time)[: len(stats) // 2]:
            delete_marker(storage, time, marker)
        raise StorageError("the power is off")

    with monkeypatch.context() as patched:
        patched.setattr(marker_cleanup, "clean_up_commit", crash)
        engine = Engine(storage, UPSERT)
        time = engine.write(0, spread_rows(0, MANY)).instant_time
        engine.writer.stop()
    assert 0 < len(list_markers(storage, time)) < MANY
    Engine(storage, UPSERT).write(1, rows([1000]))
    assert list_marked_instants(storage) == []
    assert key_set(read_table(storage.base_uri)) == sorted(f"k{key}" for key in [*range(MANY), 1000])


def test_the_writer_itself_sweeps_what_its_thread_could_not_delete(tmp_path, monkeypatch):
    storage = LocalStorage(str(tmp_path / "t"))
    engine = Engine(storage, UPSERT)

    def fail(*_args):
        raise StorageError("not now")

    with monkeypatch.context() as patched:
        patched.setattr(marker_cleanup, "clean_up_commit", fail)
        engine.write(0, spread_rows(0, MANY))
        engine.writer._cleanup.wait()
    assert len(list_marked_instants(storage)) == 1
    engine.write(1, rows([1000]))
    assert list_marked_instants(storage) == []


class Far(LocalStorage):
    """A store whose requests wait for a network."""

    calls_at_once = 16


def test_no_batch_waits_for_markers_on_a_store_far_away(tmp_path, held):
    storage = Far(str(tmp_path / "t"))
    engine = Engine(storage, UPSERT)
    first = engine.write(0, rows([1]))
    assert list_marked_instants(storage) == [first.instant_time]
    held.set()
    second = engine.write(1, rows([2]))
    engine.writer.stop()
    assert list_marked_instants(storage) == []
    assert not {first.instant_time, second.instant_time} & {entry.name for entry in storage.list_dir(HEARTBEAT_FOLDER)}
