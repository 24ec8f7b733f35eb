"""The stream readers as Spark calls them: columns that change, files that go, commits that are undone."""

import json

import pytest
from environments import SPARK_4, make_environment, run_program

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    said = run_program(make_environment(*SPARK_4["4.2"]), "spark4_readers.py", tmp_path_factory.mktemp("readers"))
    return json.loads(said.splitlines()[-1])


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("how", ["new", "wider"])
def test_a_stream_goes_on_across_a_change_of_columns_one_commit_at_a_time(found, version, how):
    last = "b3x" if how == "new" else "b3"
    after_restart, whole = found[f"{version} {how} rows"]
    assert after_restart == [["a2"], [last]]
    assert whole == [["a1", "b1"], ["a2"], [last]]
    after_restart, whole = found[f"{version} {how} feed"]
    assert after_restart == [["ua2"], [f"u{last}"]]
    assert whole == [["ia1", "ib1"], ["ua2"], [f"u{last}"]]


def test_a_table_whose_first_commit_has_no_columns_is_read_from_its_start(found):
    assert found["empty"] == [[[], ["a1", "b1"]], [[], ["ia1", "ib1"]]]


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_stream_of_rows_that_is_slower_than_cleaning_is_late_and_complete(found, version):
    rows = [row for batch in found[f"{version} cleaned"] for row in batch]
    assert sorted(rows) == ["a2", "b4", "c3"]


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("older", [True, False], ids=["the newest", "the only one"])
def test_a_feed_says_that_a_commit_was_undone_that_it_has_shown(found, version, older):
    newer, old = found[f"{version} undone {older}"]
    assert "undid the commit" in old
    assert "undid the commit" in newer


def test_an_offset_that_does_not_say_where_the_stream_began_is_continued(found):
    assert found["offset"] == [["a2"]]
