"""What a layout decides: with another one, the timeline reads and writes other files, in another order."""

import pickle

import pytest

from table.config.table_config import TableConfig
from table.errors import UnsupportedTableError
from table.hudi_table import HudiTable
from table.storage.local import LocalStorage
from table.timeline.active_timeline import (
    begin_instant,
    create_settled,
    delete_instant_file,
    load_timeline,
    read_instant,
    request_instant,
)
from table.timeline.instant import COMPLETED_AS, Action, Instant, State
from table.timeline.layout import LAYOUT_1, RequestTimeLayout, layout_of, name_instant
from table.timeline.metadata.commit import CommitMetadata

T = [f"2026010100000000{n}" for n in range(10)]


class OtherNames:
    """Names with a completion time, in another folder: enough of a layout to see who asks it."""

    folder = ".hoodie/timeline"

    def format(self, instant):
        if instant.state is State.COMPLETED:
            assert instant.completion_time is not None
            action = COMPLETED_AS.get(instant.action, instant.action)
            return f"{instant.time}_{instant.completion_time}.{action.value}"
        return f"{instant.time}.{instant.action.value}.{instant.state.value.lower()}"

    def parse(self, file_name):
        times, _, rest = file_name.partition(".")
        action, _, state = rest.partition(".")
        time, _, completed_at = times.partition("_")
        found = State(state.upper()) if state else State.COMPLETED
        return Instant(time, Action(action), found, completed_at or None, names=self)


class OtherLayout(RequestTimeLayout):
    version = 99
    names = OtherNames()

    def visible_since(self, instant):
        return instant.completion_time

    def encode_commit(self, metadata):
        return metadata.operation.encode()

    def decode_commit(self, data, name):
        return CommitMetadata(operation=data.decode())


OTHER = OtherLayout()


def test_a_layout_that_is_not_known_is_refused_with_the_way_out():
    assert layout_of(1) is LAYOUT_1
    with pytest.raises(UnsupportedTableError, match=r"layout.version=2; known is 1: use Hudi.*downgrade"):
        layout_of(2)
    with pytest.raises(UnsupportedTableError, match="layout.version=2"):
        HudiTable(LocalStorage("nowhere"), TableConfig("t", ("id",), layout_version=2)).load_timeline()


def test_instants_are_where_and_as_the_layout_says(tmp_path):
    storage = LocalStorage(str(tmp_path))
    asked = request_instant(storage, load_timeline(storage, OTHER), Action.COMMIT, "UTC")
    begun = begin_instant(storage, asked)
    done = begun.to(State.COMPLETED, completion_time=T[5])
    create_settled(storage, done.path, OTHER.encode_commit(CommitMetadata(operation="INSERT")))
    names = [f"{asked.time}.commit.inflight", f"{asked.time}.commit.requested", f"{asked.time}_{T[5]}.commit"]
    assert sorted(entry.name for entry in storage.list_dir(".hoodie/timeline")) == sorted(names)
    assert len(load_timeline(storage)) == 0
    line = load_timeline(storage, OTHER)
    [found] = line
    assert (found, found.completion_time) == (done, T[5])
    assert line.completed_file(asked.time, Action.COMMIT).path == done.path
    assert OTHER.decode_commit(read_instant(storage, found), "x").operation == "INSERT"
    for file in line.files_of(asked.time, Action.COMMIT):
        delete_instant_file(storage, file)
    assert len(load_timeline(storage, OTHER)) == 0


def test_the_layout_orders_what_is_completed(tmp_path):
    storage = LocalStorage(str(tmp_path))
    for time, completed_at in ((T[1], T[6]), (T[2], T[4]), (T[3], T[7])):
        instant = Instant(time, Action.COMMIT, State.COMPLETED, completed_at, names=OTHER.names)
        storage.put(instant.path, b"")
    line = load_timeline(storage, OTHER)
    assert [i.time for i in line] == [T[1], T[2], T[3]]
    assert [i.time for i in line.completed_writes] == [T[2], T[1], T[3]]
    assert [i.time for i in line.writes_after(line.completed_writes[0])] == [T[1], T[3]]
    assert [i.time for i in line.writes_after(line.completed_writes[-1])] == []


def test_an_instant_in_another_state_keeps_its_names_and_not_its_completion_time():
    done = Instant(T[1], Action.COMMIT, State.COMPLETED, T[2], names=OTHER.names)
    assert done.at(State.REQUESTED).path == f".hoodie/timeline/{T[1]}.commit.requested"
    assert done.at(State.REQUESTED).completion_time is None
    assert name_instant(OTHER, T[1], Action.COMMIT, State.COMPLETED) == done
    assert pickle.loads(pickle.dumps(done)).path == done.path
