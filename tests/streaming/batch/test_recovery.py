"""Before each batch: dead writes end, the table is let to others, and what is looked at once is looked at once."""

import os

import pytest
from engine import Engine, form_of, leave_a_dead_batch, rows

from table import read_table
from table.errors import ActionPendingError
from table.hudi_table import HudiTable
from table.storage.local import LocalStorage
from table.timeline.instant import Action
from table.transaction.heartbeat import heartbeat_path
from table.transaction.lease import find_holder
from table.transaction.membership import is_open

COW, MOR = form_of(8, "COPY_ON_WRITE"), form_of(8, "MERGE_ON_READ")
SHARED = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}


def values(path):
    found = read_table(path)
    return dict(zip(found.column("id").to_pylist(), found.column("v").to_pylist(), strict=True))


@pytest.mark.parametrize("options", [COW, MOR], ids=["copy-on-write", "merge-on-read"])
def test_a_batch_ends_what_a_dead_one_left_and_its_rows_are_there_alone(tmp_path, options):
    path = str(tmp_path / "t")
    engine = Engine(path, options)
    engine.write(0, rows(range(4), v="old"))
    engine.writer.stop()
    leave_a_dead_batch(Engine(path, options), 1, rows(range(2, 6), ts=1, v="lost"))
    (left,) = HudiTable.open(path).load_timeline().pending_of(Action.COMMIT, Action.DELTA_COMMIT)
    engine = Engine(path, options)
    engine.write(1, rows(range(2, 6), ts=1, v="new"))
    assert values(path) == {f"k{n}": "old" if n < 2 else "new" for n in range(6)}
    timeline = HudiTable.open(path).load_timeline()
    assert timeline.find(left.time, left.action) is None
    assert len(timeline.completed_of(Action.ROLLBACK)) == 1


def test_heartbeats_of_instants_that_are_gone_are_swept_once_for_a_sink(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, COW)
    engine.write(0, rows(range(2)))
    engine.writer.stop()
    names = [heartbeat_path(f"2020010100000000{number}") for number in range(2)]
    storage = LocalStorage(path)

    def leave(name):
        storage.put(name, b"")
        os.utime(os.path.join(path, name), (1, 1))

    leave(names[0])
    engine = Engine(path, COW)
    engine.write(1, rows(range(2), ts=1))
    assert not storage.exists(names[0])
    leave(names[1])
    engine.write(2, rows(range(2), ts=2))
    assert storage.exists(names[1])


def test_a_restore_in_the_way_is_named_and_the_table_is_given_back_for_the_command_that_ends_it(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, COW)
    engine.write(0, rows(range(2)))
    engine.writer.stop()
    leave_a_dead_batch(Engine(path, COW), 1, rows(range(2), ts=1))
    LocalStorage(path).put(".hoodie/timeline/20990101000000000.restore.requested", b"")
    with pytest.raises(ActionPendingError, match="savepoint restore"):
        Engine(path, COW).write(1, rows(range(2), ts=1))
    assert find_holder(LocalStorage(path)).is_released


def test_the_first_of_several_writers_ends_what_is_left_before_it_lets_others_in(tmp_path):
    path, options = str(tmp_path / "t"), {**COW, **SHARED}
    engine = Engine(path, options)
    engine.write(0, rows(range(4), v="old"))
    engine.writer.stop()
    leave_a_dead_batch(Engine(path, options), 1, rows(range(4), ts=1, v="lost"))
    one = Engine(path, options)
    one.write(1, rows(range(2), ts=1, v="new"))
    assert is_open(find_holder(LocalStorage(path)))
    assert values(path) == {"k0": "new", "k1": "new", "k2": "old", "k3": "old"}
    assert not HudiTable.open(path).load_timeline().pending
