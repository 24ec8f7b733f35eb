"""May a commit become visible? The rules by table, one fact changed at a time."""

import pytest

from table.config.table_config import TableConfig
from table.timeline.metadata.commit import CommitMetadata, WriteStat
from table.transaction.checkpoint import SINK_KEY
from table.transaction.conflicts import CommitFacts, find_conflict

CONFIG = TableConfig("t", ("id",))
GROUPS = frozenset({("p", "a")})
FACTS = {
    "instant_time": "5", "file_groups": GROUPS, "schema": "s", "inflight_exists": True,
    "rolled_back": frozenset(), "restored": False, "seen": frozenset("23"), "missing": frozenset(),
    "inputs": frozenset({"p/old"}), "cleaned": frozenset(), "others": {}, "compactions": frozenset({"4"}),
    "scheduled": frozenset(), "withdrawn": frozenset(),
    "config_before": CONFIG, "config_now": CONFIG,
}  # fmt: skip


def cleaned(time, file_id="c"):
    return f"q/{file_id}_0-0-0_{time}.parquet"


def elsewhere(*previous):
    """Commits of others, each of which replaced a version of file group ``c``."""
    stats = [WriteStat("c", f"q/c_{time}", "q", prev_commit=time) for time in previous]
    return {str(6 + at): CommitMetadata((stat,)) for at, stat in enumerate(stats)}


# deletes in the log of another file group, by a commit that tells no schema
LOGGED = {"6": CommitMetadata((WriteStat("c", "q/.c_4.log.1_0-0-0", "q", num_deletes=2),))}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, None),
        ({"inflight_exists": False}, "inflight file of instant 5 is not there"),
        ({"rolled_back": frozenset({"5"})}, "was rolled back"),
        ({"rolled_back": frozenset({"4"})}, None),
        ({"rolled_back": frozenset({"3"})}, "commit 3 was undone"),
        ({"missing": frozenset({"2"})}, "commit 2 was undone"),
        ({"decided": frozenset({"4"})}, "commit 4 is decided, and its completed file is not there"),
        ({"restored": True}, "a restore began"),
        ({"cleaned": frozenset({"p/old", "p/other"})}, "a clean deletes p/old"),
        ({"cleaned": frozenset({"p/other"})}, None),
        ({"cleaned": frozenset({cleaned(3)}), "others": elsewhere("4")}, None),
        ({"cleaned": frozenset({cleaned(4)}), "others": elsewhere("4")}, "which was current when the batch began"),
        ({"cleaned": frozenset({cleaned(6)}), "others": elsewhere("4", "6")}, "which was current"),
        ({"cleaned": frozenset({cleaned(4)}), "others": elsewhere("4"), "looks": False}, None),
        ({"cleaned": frozenset({cleaned(3, "a")}), "others": elsewhere("4")}, None),
        ({"cleaned": frozenset({cleaned(3)}), "others": elsewhere("null")}, "which was current"),
        ({"cleaned": frozenset({"q/.c_3.log.1_0-0-0"}), "others": elsewhere("4")}, None),
        ({"cleaned": frozenset({"q/.c_4.log.1_0-0-0"}), "others": elsewhere("4")}, "which was current"),
        ({"cleaned": frozenset({cleaned(4)}), "others": elsewhere("4"), "compactions": frozenset("6")}, "was current"),
        ({"others": {"6": CommitMetadata((WriteStat("a", "p/a", "p"),))}}, "commit 6 wrote file group a in 'p'"),
        ({"others": {"6": CommitMetadata((WriteStat("a", "p/a", "p"),))}, "compactions": frozenset("6")}, None),
        ({"others": {"6": CommitMetadata((WriteStat("a", "q/a", "q"),))}}, None),
        ({"others": {"6": CommitMetadata(replaced={"p": ("a",)})}}, "commit 6 wrote file group a"),
        ({"others": {"4": CommitMetadata((WriteStat("a", "p/a", "p"),))}}, None),
        ({"others": {"6": CommitMetadata(extra={"schema": "other"})}}, "changed the table's schema"),
        ({"others": LOGGED, "widens_order": True}, "commit 6 deleted by older ordering values"),
        ({"others": LOGGED}, None),
        ({"others": {"6": CommitMetadata(LOGGED["6"].stats, extra={"schema": "s"})}, "widens_order": True}, None),
        ({"others": elsewhere("4"), "widens_order": True}, None),
        ({"scheduled": frozenset({"6"})}, "6 was scheduled while the batch ran"),
        ({"scheduled": frozenset({"6"}), "file_groups": frozenset()}, None),
        ({"withdrawn": frozenset({"4"})}, "compaction 4 was withdrawn"),
        ({"unseen_from": "3", "line_then": "1", "line_now": "4"}, "commits up to 4 were archived while the batch ran"),
        ({"unseen_from": "3", "line_then": "1", "line_now": "3"}, None),
        ({"unseen_from": "3", "line_then": "4", "line_now": "4"}, None),  # it was there before the batch began
        ({"config_now": None}, "the file does not exist any more"),
        ({"config_now": TableConfig("t", ("id",), version=8)}, "version 6 -> 8"),
        ({"config_now": TableConfig("t", ("id",), metadata_partitions="files")}, "metadata_partitions"),
    ],
)
def test_what_keeps_a_commit_from_becoming_visible(changes, message):
    conflict = find_conflict(CommitFacts(**{**FACTS, **changes}))
    assert (conflict is None) if message is None else (message in conflict.reason)


def test_file_groups_that_another_commit_changed_are_named_where_nothing_else_stands_against_ours():
    both = frozenset({("p", "a"), ("p", "b"), ("p", "c")})
    others = {"6": CommitMetadata((WriteStat("a", "p/a", "p"), WriteStat("c", "p/c", "p")), extra={SINK_KEY: "them"})}
    conflict = find_conflict(CommitFacts(**{**FACTS, "file_groups": both, "others": others}))
    assert conflict.file_groups == {("p", "a"), ("p", "c")}
    assert "of sink 'them'" in conflict.reason
    assert "and 1 more file groups" in conflict.reason
    undone = find_conflict(CommitFacts(**{**FACTS, "file_groups": both, "others": others, "restored": True}))
    assert undone.file_groups == frozenset()


def test_two_file_groups_of_one_bucket_are_one_place():
    ours, theirs = "00000003-aaaa-0", "00000003-bbbb-0"
    others = {"6": CommitMetadata((WriteStat(theirs, f"p/{theirs}", "p"),))}
    assert find_conflict(CommitFacts(**{**FACTS, "file_groups": frozenset({("p", ours)}), "others": others}))
    assert not find_conflict(CommitFacts(**{**FACTS, "file_groups": frozenset({("q", ours)}), "others": others}))
