"""Names of base files, log files and markers: built, parsed, refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.files.names import (
    BaseFileName,
    LogFileName,
    MarkerName,
    build_file_id,
    log_write_token,
    may_be_of_instant,
    parse_base_file,
    parse_log_file,
    parse_marker,
)

TIMES = st.integers(20000101000000000, 20991231235959999).map(str)
IDS = st.uuids().map(lambda uuid: build_file_id(str(uuid), 3))
TOKENS = st.tuples(*[st.integers(0, 2**31 - 1)] * 3).map(lambda parts: "-".join(map(str, parts)))


@given(IDS, TOKENS, TIMES)
def test_a_base_file_has_the_name_that_is_parsed(file_id, token, time):
    name = BaseFileName(file_id, token, time)
    assert parse_base_file(str(name)) == name
    assert parse_log_file(str(name)) is None


@given(IDS, TIMES, st.integers(1, 999), TOKENS, st.sampled_from(["", ".cdc"]))
def test_a_log_file_has_the_name_that_is_parsed(file_id, time, version, token, suffix):
    name = LogFileName(file_id, time, version, token, suffix)
    assert parse_log_file(str(name)) == name
    assert parse_base_file(str(name)) is None


@pytest.mark.parametrize(
    ("name", "token"),
    [(".f1-0_20260101000000000.log.1", ""), (".f1-0_20260101000000000.log.12_7-8-9", "7-8-9")],
)
def test_logs_of_the_first_versions_of_hudi_have_no_token(name, token):
    assert parse_log_file(name).write_token == token


@pytest.mark.parametrize(
    "name",
    [
        "",
        "part-0.parquet",
        "a_b.parquet",
        "a_0-0-0_.parquet",
        ".a_1.log",
        ".a_1.log.x_0-0-0",
        ".hoodie_partition_metadata",
    ],
)
def test_other_names_are_none(name):
    assert parse_base_file(name) is None
    assert parse_log_file(name) is None


@given(IDS, TOKENS, TIMES, st.sampled_from(["CREATE", "MERGE", "APPEND"]), st.sampled_from(["", "p/", "p/q/"]))
def test_a_marker_has_the_path_of_its_file(file_id, token, time, kind, folder):
    marker = MarkerName(f"{folder}{BaseFileName(file_id, token, time)}", kind)
    assert parse_marker(str(marker)) == marker


@pytest.mark.parametrize(
    "path", ["../a.parquet", "p/../../a.parquet", "/a.parquet", ".hoodie/hoodie.properties", "p//a", "./a", "p/\0/a"]
)
def test_a_marker_that_leads_out_of_the_data_folders_is_none(path):
    assert parse_marker(f"{path}.marker.CREATE") is None


@pytest.mark.parametrize(
    "name", ["a.parquet", "a.parquet.marker.DELETE", "a.parquet.marker.CREATE.tmp", ".marker.CREATE"]
)
def test_what_is_no_marker_is_none(name):
    assert parse_marker(name) is None


@given(TOKENS, TIMES, st.booleans())
def test_the_token_of_a_log_file_tells_its_instant_and_fits_into_an_int_of_java(token, time, has_deletes):
    made = log_write_token(token, time, has_deletes=has_deletes)
    task, stage, attempt = map(int, made.split("-"))
    assert (str(task), str(attempt)) == (token.split("-")[0], token.split("-")[2])
    assert 0 <= stage < 2**31
    assert may_be_of_instant(made, time)
    assert not may_be_of_instant(made, str(int(time) + 1))


def test_a_log_file_without_a_token_is_of_no_instant():
    assert not may_be_of_instant("", "20260101000000000")
