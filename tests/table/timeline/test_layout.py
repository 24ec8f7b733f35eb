"""What a layout decides: with another one, the timeline reads and writes other files, in another order."""

import pickle

import pytest

from table.clock import InstantClock
from table.config.table_config import TableConfig
from table.errors import CorruptFileError, UnsupportedTableError
from table.hudi_table import HudiTable
from table.storage.local import LocalStorage
from table.timeline.active_timeline import (
    begin_instant,
    create_settled,
    delete_instant_file,
    load_timeline,
    request_instant,
)
from table.timeline.commit_cache import CommitCache
from table.timeline.instant import COMPLETED_AS, Action, Instant, State
from table.timeline.layout import LAYOUT_1, LAYOUT_2, RequestTimeLayout, layout_of, name_instant
from table.timeline.metadata.avro_commit import decode_avro_commit
from table.timeline.metadata.commit import CommitMetadata, encode_commit
from table.timeline.timeline import build_timeline

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


OTHER = OtherLayout()


def test_a_layout_that_is_not_known_is_refused_with_the_way_out():
    assert layout_of(1) is LAYOUT_1
    assert layout_of(2) == LAYOUT_2
    with pytest.raises(UnsupportedTableError, match=r"layout.version=3; known are 1, 2: use Hudi.*downgrade"):
        layout_of(3)
    with pytest.raises(UnsupportedTableError, match="layout.version=3"):
        HudiTable(LocalStorage("nowhere"), TableConfig("t", ("id",), layout_version=3)).load_timeline()


def test_instants_are_where_and_as_the_layout_says(tmp_path):
    storage = LocalStorage(str(tmp_path))
    asked = request_instant(storage, load_timeline(storage, OTHER), Action.COMMIT, InstantClock())
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
    assert CommitCache(storage).read(found).operation == "INSERT"
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


# file names of layout 2: action, state, whether the completion time is there; None where it is no instant
NAMES_2 = {
    "{t}.commit.requested": (Action.COMMIT, State.REQUESTED, False),
    "{t}.inflight": (Action.COMMIT, State.INFLIGHT, False),
    "{t}_{c}.commit": (Action.COMMIT, State.COMPLETED, True),
    "{t}.deltacommit.requested": (Action.DELTA_COMMIT, State.REQUESTED, False),
    "{t}.deltacommit.inflight": (Action.DELTA_COMMIT, State.INFLIGHT, False),
    "{t}_{c}.deltacommit": (Action.DELTA_COMMIT, State.COMPLETED, True),
    "{t}.compaction.requested": (Action.COMPACTION, State.REQUESTED, False),
    "{t}.compaction.inflight": (Action.COMPACTION, State.INFLIGHT, False),
    "{t}.logcompaction.inflight": (Action.LOG_COMPACTION, State.INFLIGHT, False),
    "{t}.replacecommit.requested": (Action.REPLACE_COMMIT, State.REQUESTED, False),
    "{t}.clustering.requested": (Action.CLUSTERING, State.REQUESTED, False),
    "{t}.clustering.inflight": (Action.CLUSTERING, State.INFLIGHT, False),
    "{t}_{c}.replacecommit": (Action.REPLACE_COMMIT, State.COMPLETED, True),
    "{t}_{c}.clean": (Action.CLEAN, State.COMPLETED, True),
    "{t}_{c}.rollback": (Action.ROLLBACK, State.COMPLETED, True),
    "{t}_{c}.restore": (Action.RESTORE, State.COMPLETED, True),
    "{t}.savepoint.inflight": (Action.SAVEPOINT, State.INFLIGHT, False),
    "{t}_{c}.savepoint": (Action.SAVEPOINT, State.COMPLETED, True),
    "{t}_{c}.indexing": (Action.INDEXING, State.COMPLETED, True),
    "{t}.commit": (Action.COMMIT, State.COMPLETED, False),
    "{t}_{c}.commit.requested": None,
    "{t}_{c}.inflight": None,
    "{t}_.commit": None,
    "{t}_{c}.commit.crc": None,
    "{t}_{c}.nonsense": None,
    ".{t}_{c}.commit": None,
    "history": None,
    "_version_": None,
}


@pytest.mark.parametrize("pattern", NAMES_2)
def test_names_of_layout_2(pattern):
    name, expected = pattern.format(t=T[1], c=T[2]), NAMES_2[pattern]
    found = LAYOUT_2.names.parse(name)
    if expected is None:
        assert found is None
        return
    action, state, has_completion = expected
    assert (found.time, found.action, found.state) == (T[1], action, state)
    assert found.completion_time == (T[2] if has_completion else None)
    assert found.path == f".hoodie/timeline/{name}"
    assert LAYOUT_2.visible_since(found) == (T[2] if has_completion else T[1])


def test_layout_1_knows_no_clustering_of_its_own():
    assert LAYOUT_1.names.parse(f"{T[1]}.clustering.requested") is None
    assert LAYOUT_1.names.parse(f"{T[1]}_{T[2]}.commit") is None


def test_the_states_of_a_clustering_and_of_a_compaction_are_one_instant_each():
    names = [f"{T[1]}.clustering.requested", f"{T[1]}.clustering.inflight", f"{T[1]}_{T[4]}.replacecommit",
             f"{T[2]}.compaction.requested", f"{T[2]}.compaction.inflight", f"{T[2]}_{T[3]}.commit",
             f"{T[5]}.clustering.requested"]  # fmt: skip
    line = build_timeline(map(LAYOUT_2.names.parse, names), LAYOUT_2)
    assert [(i.time, i.action, i.state) for i in line] == [
        (T[1], Action.REPLACE_COMMIT, State.COMPLETED),
        (T[2], Action.COMMIT, State.COMPLETED),
        (T[5], Action.CLUSTERING, State.REQUESTED),
    ]
    assert [i.time for i in line.completed_writes] == [T[2], T[1]]
    assert line.visible_times == {T[1]: T[4], T[2]: T[3]}
    assert [i.time for i in line.writes_between(T[3], T[4])] == [T[1]]
    assert [i.time for i in line.writes_between(T[2])] == [T[2], T[1]]
    assert line.writes_between(T[4]) == ()
    assert line.find(T[1], Action.CLUSTERING).path == f".hoodie/timeline/{T[1]}_{T[4]}.replacecommit"


def test_the_folders_of_layout_2_are_those_of_the_properties():
    config = TableConfig("t", ("id",), layout_version=2, timeline_folder="line", archive_folder="old")
    table = HudiTable(LocalStorage("nowhere"), config)
    assert table.layout.names.folder == ".hoodie/line"
    assert table.archived_timeline.folder == ".hoodie/line/old"
    assert pickle.loads(pickle.dumps(table)).layout == table.layout


def test_layout_2_reads_commits_of_layout_1():
    moved = encode_commit(CommitMetadata(operation="INSERT", extra={"a": "b"}))
    assert decode_avro_commit(moved, "x").extra == {"a": "b"}
    assert decode_avro_commit(b"", "x").operation == "UNKNOWN"
    for damaged in (b"Obj\x01 and no more", b"{", b"no Avro"):
        with pytest.raises(CorruptFileError, match="x is not"):
            decode_avro_commit(damaged, "x")


@pytest.mark.parametrize("action", [Action.COMPACTION, Action.CLUSTERING, Action.LOG_COMPACTION, Action.COMMIT])
def test_the_completed_file_of_a_service_is_found_by_the_action_of_its_request(action):
    """A restore that undoes a compaction of layout 2 left its completed file, whose name has another action."""
    done = name_instant(LAYOUT_2, T[0], action, State.INFLIGHT).to(State.COMPLETED, T[1])
    assert build_timeline([done], LAYOUT_2).completed_file(T[0], action).path == done.path
