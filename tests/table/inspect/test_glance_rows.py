"""A table among others: what its row says."""

import pytest

from table.inspect.glance_rows import COLUMNS, Glance, row_of
from table.inspect.health_facts import Backlog, Code, Health, Verdict


def health(**changed):
    backlog = Backlog(None, 0, 0, 7, 0, 3)
    facts = {"last_commit": "20260101000000000", "last_commit_age_s": 7300.0, "rows_per_minute": 1234.5}
    return Health(
        "/lake/a", 9, "MERGE_ON_READ", **{**facts, **changed}, writer=None, writer_lives=None, live_files=2,
        live_bytes=2048, small_files=1, log_files=1, log_bytes=1024, backlog=backlog,
    )  # fmt: skip


def test_a_row_has_a_text_for_each_column():
    row = dict(zip(COLUMNS, row_of(Glance("/lake/a", health()), "/lake/"), strict=True))
    assert row == {
        "table": "a", "health": "well", "last commit": "2 h ago", "rows/min": "1,234", "live": "3.0 KiB", "files": "3",
        "small": "1", "since clean": "never", "since compaction": "7",
    }  # fmt: skip


def test_a_table_that_cannot_be_read_is_broken_and_says_why():
    one = Glance("/lake/a", None, "it is torn")
    assert row_of(one, "/lake") == ("a", "broken", *[""] * (len(COLUMNS) - 2))
    assert one.verdict is Verdict.BROKEN
    assert [(finding.code, finding.text) for finding in one.findings] == [(Code.UNREADABLE, "it is torn")]


@pytest.mark.parametrize(("below", "name"), [("/lake/a", "/lake/a"), ("/lake", "a"), ("/", "lake/a")])
def test_a_name_is_the_rest_of_the_path(below, name):
    assert row_of(Glance("/lake/a", health(last_commit=None)), below)[0] == name
