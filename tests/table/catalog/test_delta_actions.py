"""Actions of a Delta log: what a commit says, that a log and its checkpoints can be read back, and what is refused."""

import json
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiers import examples

from table.catalog.delta.delta_actions import (
    DeltaState,
    DeltaTarget,
    apply_commit,
    decode_checkpoint,
    encode_checkpoint,
    encode_commit,
    plan_commit,
)
from table.errors import CorruptFileError, UnsupportedTableError

NO_COLUMNS, COLUMNS = '{"type": "struct", "fields": []}', '{"type": "struct", "fields": [1]}'
PATHS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("%/ =+~é"), min_size=1, max_size=8)


def target_of(paths, schema=NO_COLUMNS):
    return DeltaTarget({path: len(path) for path in paths}, schema, "t", "20260101000000000")


def state_of(*paths):
    return apply_commit(DeltaState(), 0, encode_commit(plan_commit(DeltaState(), target_of(paths), "an-id", 7)))


@given(st.lists(st.sets(PATHS, max_size=4), min_size=1, max_size=4))
@settings(max_examples=examples(50), deadline=None)
def test_after_each_commit_the_log_names_the_files_of_its_target_and_so_does_a_checkpoint(targets):
    state = DeltaState()
    for version, target in enumerate(map(target_of, targets)):
        state = apply_commit(state, version, encode_commit(plan_commit(state, target, "an-id", version)))
        assert (state.version, state.files) == (version, target.files)
        assert plan_commit(state, target, "another", 9) == []
    assert decode_checkpoint(state.version, encode_checkpoint(state, 9)) == state


def test_the_first_commit_keeps_other_writers_out_and_names_the_instant_of_the_snapshot():
    info, protocol, _, add = plan_commit(DeltaState(), target_of(["a"]), "an-id", 7)
    assert info["commitInfo"]["hudiInstant"] == "20260101000000000"
    assert protocol == {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["hudistream"]}}
    assert add["add"] == {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 7, "dataChange": True}


def test_other_columns_are_told_and_the_table_keeps_its_id_and_its_time_of_creation():
    told = plan_commit(state_of("a"), target_of(["a"], COLUMNS), "another-id", 8)[-1]["metaData"]
    assert (told["id"], told["createdTime"], told["schemaString"]) == ("an-id", 7, COLUMNS)


def test_columns_that_folders_tell_are_partition_columns_and_files_are_named_again_when_these_change():
    values = {"a": {"d": "1", "n": "2"}}
    target = replace(target_of(["a"]), partition_columns=("d", "n"), values=values)
    _, metadata, again = plan_commit(state_of("a"), target, "another-id", 8)
    assert metadata["metaData"]["partitionColumns"] == ["d", "n"]
    assert (again["add"]["partitionValues"], again["add"]["dataChange"]) == (values["a"], False)
    state = apply_commit(state_of("a"), 1, encode_commit([metadata, again]))
    assert (state.files, state.values) == ({"a": 1}, values)
    assert decode_checkpoint(1, encode_checkpoint(state, 9)) == state
    assert plan_commit(state, target, "", 9) == []
    _, metadata, again = plan_commit(state, target_of(["a"]), "", 9)  # a new path does not tell them
    assert (metadata["metaData"]["partitionColumns"], again["add"]["partitionValues"]) == ([], {})
    assert apply_commit(state, 2, encode_commit([again])).values == {}


def test_paths_are_spelled_as_in_a_url_and_only_a_checkpoint_tells_no_change_of_rows():
    path, spelled = "d=1/a b_~é50%2F#?+:-0.parquet", "d=1/a%20b_~%C3%A950%252F%23%3F%2B%3A-0.parquet"
    checkpoint = pq.read_table(pa.BufferReader(encode_checkpoint(state_of(path), 9))).to_pylist()
    _, removed, added = plan_commit(state_of(path), target_of(["new " + path]), "", 7)
    assert (added["add"]["path"], added["add"]["dataChange"]) == ("new%20" + spelled, True)
    assert removed["remove"] == {"path": spelled, "deletionTimestamp": 7, "dataChange": True}
    assert (checkpoint[-1]["add"]["path"], checkpoint[-1]["add"]["dataChange"]) == (spelled, False)


@pytest.mark.parametrize("protocol", [{}, {"writerFeatures": ["appendOnly"]}, {"writerFeatures": None}], ids=str)
def test_a_log_without_the_feature_of_hudistream_is_refused_with_the_way_out(protocol):
    with pytest.raises(UnsupportedTableError, match=r"of another writer .* Keep one of the two, and delete or move"):
        plan_commit(DeltaState(0, {}, {}, protocol, {"schemaString": NO_COLUMNS}), target_of([]), "", 7)


def test_actions_that_say_nothing_about_files_are_passed_over_and_the_older_state_stays_as_it_was():
    before = DeltaState(4, {"kept": 1, "left": 2})
    data = b'{"txn": {"appId": "x"}}\n\n{"remove": {"path": "left"}}\r\n{"remove": {"path": "unknown"}}\n{"cdc": {}}'
    assert (apply_commit(before, 5, data), before.files) == (DeltaState(5, {"kept": 1}), {"kept": 1, "left": 2})


def test_a_table_without_a_time_of_creation_stays_without():
    before = DeltaState(0, {}, {}, {"writerFeatures": ["hudistream"]}, {"schemaString": NO_COLUMNS, "id": "an-id"})
    [_, action] = plan_commit(before, target_of([], COLUMNS), "another-id", 8)
    assert action["metaData"]["id"] == "an-id"
    assert "createdTime" not in action["metaData"]


PARTS = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.text(max_size=3), max_size=2)
JSON = PARTS | st.dictionaries(st.sampled_from(["path", "size", "schemaString", "id", "writerFeatures"]), PARTS)
ACTIONS = st.dictionaries(st.sampled_from(["add", "remove", "metaData", "protocol"]), JSON, max_size=2)


@given(st.lists(ACTIONS | JSON, max_size=3))
@example([{"remove": {"path": ["a"]}}])
@example([{"metaData": {"schemaString": NO_COLUMNS}}])
@example([{"protocol": "hudistream"}])
@example([{"protocol": {"writerFeatures": 7}}])
def test_whatever_json_a_line_holds_the_commit_is_applied_or_named_as_damaged(lines):
    data, state = "\n".join(map(json.dumps, lines)).encode(), None
    try:
        state = apply_commit(DeltaState(3), 4, data)
    except CorruptFileError as error:
        said = str(error).partition(": ")[0]
    if state is None:
        assert said == "commit 4 of the Delta log cannot be read"
        return
    assert state.version == 4
    with suppress(UnsupportedTableError):
        plan_commit(state, target_of(["a"], COLUMNS), "another-id", 8)
