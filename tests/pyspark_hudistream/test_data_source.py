"""The format hudistream in the Sparks that have sources in Python."""

import json
import zipfile

import pytest
from engine import Engine, rows
from environments import ROOT, SPARK_4, make_environment, run_program
from tiers import slow

from table import read_table

pytestmark = pytest.mark.spark

UPSERT = {"hoodie.datasource.write.operation": "upsert"}
GOLDEN = ROOT / "tests" / "golden"


@pytest.fixture(scope="module", params=map(slow, ["4.2", "4.0", "4.1"]))
def session(request, tmp_path_factory):
    """What one session of a Spark has read: (its version, the table, what a program said)."""
    return read_in(request.param, tmp_path_factory.mktemp("spark4"))


@pytest.fixture(scope="module", params=map(slow, ["4.2", "4.0", "4.1"]))
def followed(request, tmp_path_factory):
    """As `session`, of streams that follow tables: (the version of Spark, what a program said)."""
    version, _, found = read_in(request.param, tmp_path_factory.mktemp("spark4"), "streams")
    return version, found


def read_in(version, folder, *what):
    with zipfile.ZipFile(GOLDEN / "mor_avro_logs.zip") as archive:
        archive.extractall(folder / "merged")
    path = str(folder / "t")
    engine = Engine(path, UPSERT)
    first = engine.write(None, rows(range(9), v="v0")).instant_time
    engine.write(None, rows(range(4, 6), ts=1, v="v1"))
    said = run_program(
        make_environment(*SPARK_4[version]), "spark4_source.py", path, folder / "merged", first, folder / "f",
        folder / "c", *what,
    )  # fmt: skip
    return version, path, json.loads(said.splitlines()[-1])


def test_a_table_is_read_through_the_format(session):
    _, path, found = session
    assert found["rows"] == 9
    assert found["columns"] == read_table(path, meta_columns=True).column_names
    assert sorted(map(tuple, found["some"])) == [("v0", "k1"), ("v0", "k7"), ("v1", "k4")]
    assert found["since"] == found["by_hudis_keys"] == ["k4", "k5"]
    assert found["as_of"] == ["v0"]
    assert found["nothing"] == 0


def test_every_type_comes_through(session):
    _, _, found = session
    assert found["types"] == [40, "struct<city:string,geo:struct<lat:double>>", "timestamp"]


def test_log_files_are_merged(session):
    expected = json.loads((GOLDEN / "mor_avro_logs.expected.json").read_text())["rows"]
    _, _, found = session
    assert found["merged"] == len(expected)
    assert found["merged_eu"] == sum(row["region"] == "eu" for row in expected)
    assert found["optimized"] != len(expected)


def test_what_does_not_fit_is_refused(session):
    _, _, found = session
    assert "did you mean columns" in found["unknown"]
    assert "leave the schema out" in found["schema_of_feed"]
    assert "for streams" in found["of_streams"]
    assert "HudiSink(path, key" in found["written"]
    assert "foreachBatch(HudiSink" in found["stream_written"]


def test_a_stream_follows_a_table_commit_by_commit(followed):
    version, found = followed
    if version != "4.2":
        pytest.skip(f"Spark {version} does not tell a source where a batch begins")
    stream = found["stream"]
    later = ["k0v3", "k9v4"]
    ones = [["k0v0", "k1v0", "k2v0", "k3v0"], ["k0v1", "k1v1"], ["k2v2"]]
    assert stream["one"] == [ones, [["k0v3"], ["k9v4"]], []]
    assert stream["all"] == [[["k0v3", "k1v1", "k2v2", "k3v0", "k9v4"]], []]
    assert [[batch for batch in run if batch] for run in stream["late"]] == [[], [later]]
    assert stream["from"] == [[["k1v1"]]]
    assert stream["bytes"] == [ones]
    assert "starting_offset" in stream["refused"]
    assert stream["pins"] <= 6  # of runs with batches: that of the last one may stay until it expires


def test_a_stream_that_is_slower_than_cleaning_gets_every_key_once(followed):
    version, found = followed
    if version != "4.2":
        pytest.skip(f"Spark {version} does not tell a source where a batch begins")
    # the first commits cannot be seen any more as they were: later versions come with their own commits
    assert found["cleaned"] == [["k3v0"], ["k1v1"], ["k2v2"], ["k0v3"]]


def test_a_stream_of_changes_whose_start_was_cleaned_is_refused(followed):
    version, found = followed
    if version != "4.2":
        pytest.skip(f"Spark {version} does not tell a source where a batch begins")
    count, said, last = found["cleaned_changes"]
    assert count == 4  # from the earliest on all rows are inserts
    assert f"may have been cleaned; ask for a time from {last}" in said


def test_an_older_spark_reads_all_that_is_there_in_a_batch(followed):
    version, found = followed
    if version == "4.2":
        pytest.skip("newer ones limit their batches")
    read = [[batch for batch in run if batch] for run in found["old"]]
    assert read == [[["k0v1", "k1v1", "k2v0", "k3v0"]], [["k0v2"]], []]
    assert "need Spark 4.2" in found["limited"]
