"""Rollbacks as files of Hudi: what comes back of ours, and what a plan or record of another writer may lack."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from table.errors import CorruptFileError
from table.timeline.metadata.avro_record import decode_record, encode_record
from table.timeline.metadata.rollback import (
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    decode_named_files,
    decode_rollback_metadata,
    decode_rollback_plan,
    encode_rollback_metadata,
    encode_rollback_plan,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PATHS = st.sampled_from(["", "p", "day=1/p"])
FILES = st.lists(TEXT, max_size=3).map(tuple)
REQUESTS = st.builds(RollbackRequest, PATHS, st.sampled_from(["", "f-0"]), TEXT, FILES)
ACTIONS = st.sampled_from(["commit", "deltacommit", "replacecommit", "compaction", "clustering"])
PLANS = st.builds(RollbackPlan, TEXT, ACTIONS, st.lists(REQUESTS, max_size=3).map(tuple))
DONE = st.builds(RollbackMetadata, TEXT, st.integers(0, 2**40), TEXT, TEXT, st.dictionaries(PATHS, FILES))


def their_plan(target, requests=None):
    return encode_record("rollback_plan", {"instantToRollback": target, "RollbackRequests": requests, "version": 1})


def their_record(**fields):
    ours = decode_record("rollback_metadata", encode_rollback_metadata(RollbackMetadata("9", 5, "1", "commit", {})))
    return encode_record("rollback_metadata", {**ours, **fields})


@given(PLANS)
@settings(deadline=None)
def test_a_plan_comes_back_as_it_was_and_names_its_files_in_order(plan):
    data = encode_rollback_plan(plan)
    assert decode_rollback_plan(data) == plan
    named = tuple(file for request in plan.requests for file in request.files)
    assert decode_named_files(data) == (plan.instant_time, named)


@given(DONE)
@settings(deadline=None)
def test_what_a_rollback_did_comes_back_and_counts_its_files(done):
    data = encode_rollback_metadata(done)
    assert decode_rollback_metadata(data) == done
    assert decode_record("rollback_metadata", data)["totalFilesDeleted"] == sum(map(len, done.deleted.values()))


def test_a_plan_that_names_log_blocks_is_refused_and_its_files_are_known():
    requests = [{"partitionPath": "p", "filesToBeDeleted": ["/t/p/a"], "logBlocksToBeDeleted": {"/t/p/.l": 7}}]
    data = their_plan({"commitTime": "1", "action": "deltacommit"}, requests)
    with pytest.raises(CorruptFileError, match=r"^x\.plan names log blocks, .*finish it with the writer that began it"):
        decode_rollback_plan(data, "x.plan")
    assert decode_named_files(data, "x.plan") == ("1", ("/t/p/a",))


def test_a_plan_without_a_target_is_refused_and_undoes_no_instant():
    with pytest.raises(CorruptFileError, match=r"^x\.plan does not say what to roll back$"):
        decode_rollback_plan(their_plan(None), "x.plan")
    assert decode_named_files(their_plan(None), "x.plan") == ("", ())


@pytest.mark.parametrize("requests", [None, [], [{"partitionPath": "p"}]])
def test_of_what_a_plan_of_hudi_leaves_out_nothing_is_deleted(requests):
    plan = decode_rollback_plan(their_plan({"commitTime": "1", "action": "commit"}, requests))
    expected = tuple(RollbackRequest("p", "", "", ()) for _ in requests or ())
    assert plan == RollbackPlan("1", "commit", expected)


def test_a_plan_for_an_action_that_is_not_known_is_damaged():
    with pytest.raises(CorruptFileError, match=r"^x\.plan is damaged: .* rollback_plan: .*'mystery'"):
        decode_rollback_plan(their_plan({"commitTime": "1", "action": "mystery"}), "x.plan")


@pytest.mark.parametrize(
    ("undone", "instant", "action"),
    [
        ({"instantsRollback": []}, "1", "commit"),
        ({"instantsRollback": [{"commitTime": "2", "action": "deltacommit"}]}, "2", "deltacommit"),
        ({"instantsRollback": [], "commitsRollback": []}, "", ""),
    ],
)
def test_the_undone_instant_is_a_commit_where_an_older_hudi_names_its_time_alone(undone, instant, action):
    done = decode_rollback_metadata(their_record(**undone))
    assert (done.instant_time, done.action) == (instant, action)


@pytest.mark.parametrize("path", ["../other", ".hoodie", "/etc"])
def test_a_record_of_a_path_outside_of_the_table_is_damaged(path):
    data = encode_rollback_metadata(RollbackMetadata("9", 5, "1", "commit", {path: ("x",)}))
    with pytest.raises(CorruptFileError, match=r"^x\.rollback is damaged"):
        decode_rollback_metadata(data, "x.rollback")
