"""Commits of other writers: what is kept of them, what is refused, and what Hudi finds in ours."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from table.errors import CorruptFileError
from table.timeline.metadata.commit import (
    CommitMetadata,
    WriteStat,
    decode_commit,
    encode_commit,
    outline_of_json,
    stat_from_json,
)

STAT = WriteStat("f-0", "p/f-0_0-1-2_3.parquet", "p", num_writes=5, num_inserts=3)
VALUES = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
NEW_NAMES = st.text(max_size=8).map("new{}".format)


def decode(**document):
    return decode_commit(json.dumps(document).encode(), "x.commit")


@given(st.dictionaries(NEW_NAMES, VALUES, max_size=3))
@settings(deadline=None)
def test_fields_of_a_stat_that_a_newer_hudi_adds_are_written_again(new):
    again = stat_from_json({**STAT.to_json(), **new}, "p")
    assert again.extra == new
    assert again.to_json() == {**STAT.to_json(), **new}


def test_counts_of_a_compaction_of_another_writer_are_written_again():
    counted = {
        "totalLogRecords": 7,
        "totalLogFilesCompacted": 2,
        "numUpdates": 1,
        "minEventTime": 5,
        "runtimeStats": {"totalScanTime": 3, "totalUpsertTime": 4, "totalCreateTime": 0},
    }
    again = stat_from_json({**STAT.to_json(), **counted}, "p")
    assert again.extra == counted
    assert again.upsert_ms == 4
    assert again.to_json() == {**STAT.to_json(), **counted}
    assert stat_from_json({**STAT.to_json(), "totalLogRecords": None}, "p").extra == {}


@pytest.mark.parametrize(
    ("stat", "read"),
    [
        ({}, WriteStat("", "", "p")),
        ({"fileId": None, "prevCommit": None, "numWrites": None, "runtimeStats": None}, WriteStat("", "", "p")),
        ({"partitionPath": "q", "prevBaseFile": "b", "numWrites": 2}, WriteStat("", "", "q", "null", "b", 2)),
        ({"runtimeStats": {"totalCreateTime": None}}, WriteStat("", "", "p")),
    ],
)
def test_a_field_that_is_missing_or_null_has_its_default_and_the_path_is_that_of_the_entry(stat, read):
    assert stat_from_json(stat, "p") == read


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("numInserts", "7", "num_inserts is '7'"),
        ("fileSizeInBytes", 7.5, "file_size_bytes is 7.5"),
        ("path", 7, "path is 7"),
        ("prevBaseFile", ["a"], "prev_base_file is ['a']"),
    ],
)
def test_a_field_of_another_type_is_named_with_its_value_and_file(name, value, said):
    with pytest.raises(CorruptFileError) as raised:
        decode(partitionToWriteStats={"p": [{name: value}]})
    assert str(raised.value) == f"x.commit is not the JSON of a commit: {said}"


@pytest.mark.parametrize(
    ("document", "read"),
    [
        ({}, CommitMetadata(operation="UNKNOWN")),
        ({"operationType": None, "extraMetadata": None}, CommitMetadata(operation="UNKNOWN")),
        ({"operationType": "UPSERT", "compacted": True}, CommitMetadata(operation="UPSERT", compacted=True)),
        ({"extraMetadata": {"schema": None, "a": ""}}, CommitMetadata(operation="UNKNOWN", extra={"a": ""})),
        ({"partitionToReplaceFileIds": {"": []}}, CommitMetadata(operation="UNKNOWN", replaced={"": ()})),
    ],
)
def test_a_commit_says_no_more_than_its_fields(document, read):
    assert decode(**document) == read


@pytest.mark.parametrize(
    ("data", "is_empty"),
    [
        (b" \n", True),
        (encode_commit(CommitMetadata(operation="INSERT")), False),
        (encode_commit(CommitMetadata((STAT,), "UNKNOWN")), False),
        (encode_commit(CommitMetadata(operation="UNKNOWN", replaced={"p": ("a",)})), False),
    ],
)
def test_only_of_a_commit_without_content_nothing_is_known(data, is_empty):
    assert decode_commit(data).is_empty is is_empty


def test_file_groups_are_those_written_and_those_replaced_each_with_its_path():
    commit = CommitMetadata((STAT, WriteStat("f-0", "q/x", "q")), replaced={"p": ("f-0", "g-0"), "r": ()})
    assert commit.file_groups == {("p", "f-0"), ("q", "f-0"), ("p", "g-0")}


@pytest.mark.parametrize(("stats", "lines"), [(0, True), (64, True), (65, False)])
def test_a_commit_of_many_files_is_one_line_and_both_forms_have_an_outline(stats, lines):
    data = encode_commit(CommitMetadata((STAT,) * stats, "UPSERT", {"a": "\u00fc"}))
    assert (b"\n" in data) is lines
    assert (outline_of_json(data).operation, outline_of_json(data).extra) == ("UPSERT", {"a": "\u00fc"})


@pytest.mark.parametrize("replaced", [{}, {"p": ("a",)}])
def test_replaced_file_groups_are_a_field_only_where_there_are_any_and_then_the_end_is_no_outline(replaced):
    data = encode_commit(CommitMetadata(operation="UPSERT", replaced=replaced))
    assert ("partitionToReplaceFileIds" in json.loads(data)) is bool(replaced)
    assert (outline_of_json(data) is None) is bool(replaced)
