"""Which partition paths appeared and disappeared since a sync."""

import pytest

from table.catalog.path_changes import PathChanges, are_told, find_path_changes, settled_until, written_beyond
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.commit import CommitMetadata, WriteStat
from table.timeline.timeline import build_timeline


def commit(time, state=State.COMPLETED, action=Action.COMMIT):
    return Instant(time, action, state)


@pytest.mark.parametrize(
    ("instants", "expected"),
    [
        ([], ""),
        ([commit("1"), commit("2")], "2"),
        ([commit("1"), commit("2", State.INFLIGHT), commit("3")], "1"),
        ([commit("1", State.REQUESTED), commit("2")], ""),
        ([commit("1"), commit("2", State.INFLIGHT, Action.CLEAN), commit("3")], "3"),  # a clean writes no partition
    ],
)
def test_a_sync_goes_as_far_as_no_write_is_pending(instants, expected):
    assert settled_until(build_timeline(instants)) == expected


def test_what_was_archived_is_not_told():
    timeline = build_timeline([commit("2"), commit("3")])
    assert are_told(timeline, "2")
    assert not are_told(timeline, "1")


def test_what_was_registered_behind_a_pending_write_must_still_be_there():
    pending = commit("2", State.INFLIGHT)
    before = build_timeline([commit("1"), pending, commit("3"), commit("4")])
    beyond = written_beyond(before, settled_until(before))
    assert beyond == "3,4"
    assert are_told(before, "1", beyond)
    assert not are_told(build_timeline([commit("1"), pending, commit("4")]), "1", beyond)  # 3 was undone
    assert written_beyond(build_timeline([commit("1"), commit("2")]), "2") == ""
    many = build_timeline([commit("0"), *(commit(f"{number:03d}") for number in range(1, 400))])
    assert not are_told(many, "0", written_beyond(many, "0"))  # too many for a property


def test_the_later_event_of_a_path_counts():
    def wrote(path):
        return WriteStat(partition_path=path, file_id="f", path=f"{path}/f.parquet")

    writes = [
        (commit("1"), CommitMetadata((wrote("a"), wrote("b")))),
        (commit("2"), CommitMetadata((), replaced={"a": ("f",), "c": ("f",)})),
        (commit("3"), CommitMetadata((wrote("c"),))),
    ]
    assert find_path_changes(writes) == PathChanges(("b", "c"), ("a",))
    assert find_path_changes([]) == PathChanges()
    # an overwrite writes what it replaces: the path stays
    assert find_path_changes([(commit("1"), CommitMetadata((wrote("a"),), replaced={"a": ("g",)}))]) == PathChanges(
        ("a",)
    )
