"""Rows of a range of commits: which commits are meant, which rows they wrote, and what is refused."""

import os
import pickle
from dataclasses import replace
from datetime import datetime, timezone

import pyarrow.compute as pc
import pytest
from engine import Engine, rows

from hudistream import HudiTable
from table import CleanSettings, InvalidConfigError, UnsupportedTableError, clock
from table.scan.change_range import ChangeRange, choose_range, first_pending_write, newest_settled
from table.timeline.instant import Action, Instant, State
from table.timeline.timeline import build_timeline

UPSERT = {"hoodie.datasource.write.operation": "upsert"}


def instants(*spelled):
    """``1`` is a completed commit, ``2i`` one that is inflight, ``3c`` a compaction that is requested."""
    found = []
    for text in spelled:
        action = Action.COMPACTION if text.endswith("c") else Action.COMMIT
        state = {"i": State.INFLIGHT, "r": State.REQUESTED, "c": State.REQUESTED}.get(text[-1], State.COMPLETED)
        found.append(Instant(text[0] * 17, action, state))
    return build_timeline(found)


def at(digit):
    return str(digit) * 17


@pytest.mark.parametrize(("spelled", "hole", "settled"), [
    ([], None, None),
    (["1", "2"], None, "2"),
    (["1", "2", "3i"], "3", "2"),
    (["1", "2i", "3"], "2", "1"),
    (["1r", "2"], "1", None),
    (["1", "2c", "3"], None, "3"),
])  # fmt: skip
def test_a_reader_goes_as_far_as_nothing_is_pending(spelled, hole, settled):
    timeline = instants(*spelled)
    assert first_pending_write(timeline) == (at(hole) if hole else None)
    assert newest_settled(timeline) == (at(settled) if settled else None)


@pytest.mark.parametrize(("spelled", "since", "until", "expected"), [
    (["1", "2", "3"], "1", None, ("1", "3")),
    (["1", "2", "3"], "1", "2", ("1", "2")),
    (["1", "2i", "3"], "0", None, ("0", "1")),
    (["1", "2i", "3"], "2", None, ("2", "2")),
    (["1", "2", "4i"], "0", "3", ("0", "3")),
    ([], "0", None, None),
    (["1i"], "0", None, None),
])  # fmt: skip
def test_the_range_of_a_question(spelled, since, until, expected):
    chosen = choose_range(instants(*spelled), at(since), at(until) if until else None, "asked")
    assert chosen == (ChangeRange(at(expected[0]), at(expected[1])) if expected else None)


@pytest.mark.parametrize(("spelled", "since", "until", "said"), [
    (["1", "2"], "2", "1", "asked: the range ends before it begins"),
    (["1", "2i", "3"], "0", "3", f"the write {at(2)} is not completed.* until {at(1)}, or leave until out"),
    (["1i", "2"], "0", "2", "ask again later"),
])  # fmt: skip
def test_a_range_that_would_be_read_differently_later_is_refused(spelled, since, until, said):
    with pytest.raises(InvalidConfigError, match=said):
        choose_range(instants(*spelled), at(since), at(until), "asked")


@pytest.fixture
def history(tmp_path):
    """Keys 0 to 8 inserted; 0 to 2 updated; 3 updated; 4 deleted; 20 inserted."""
    path = str(tmp_path / "t")
    keys = {"hoodie.datasource.write.operation": "delete"}
    steps = [(UPSERT, rows(range(9), v="a")), (UPSERT, rows(range(3), ts=1, v="b")), (UPSERT, rows([3], ts=2, v="c"))]
    steps += [(keys, rows([4], ts=3)), (UPSERT, rows([20], ts=4, v="d"))]
    return path, [Engine(path, how).write(None, what).instant_time for how, what in steps]


def changed(table, since=None, until=None, **how):
    found = table.changes(since, until, ["id", "v"], **how).to_arrow()
    return {(int(row["id"][1:]), row["v"]) for row in found.to_pylist()}


@pytest.fixture
def table(history):
    return HudiTable.open(history[0])


def test_a_range_gives_the_latest_row_of_each_key_that_it_wrote(table, history):
    _, times = history
    updated = {(0, "b"), (1, "b"), (2, "b")}
    assert changed(table, times[0], times[1]) == updated
    assert changed(table, times[0], times[2]) == updated | {(3, "c")}
    assert changed(table, times[1]) == {(3, "c"), (20, "d")}
    assert changed(table, times[2], times[3]) == set()  # deleted keys are not shown
    assert changed(table, times[4]) == set()
    assert changed(table, until=times[0]) == {(n, "a") for n in range(9)}


@pytest.mark.parametrize("earliest", [None, "earliest", "0", "000", "00000000000000"])
def test_from_the_first_commit_on(table, history, earliest):
    assert changed(table, earliest) == changed(table, "2020-01-01") == {
        (0, "b"), (1, "b"), (2, "b"), (3, "c"), *((n, "a") for n in range(5, 9)), (20, "d")
    }  # fmt: skip


def test_times_may_be_written_as_for_as_of(table, history):
    _, times = history
    since, until = (
        datetime.fromtimestamp(clock.parse_instant_time(time) / 1000, tz=timezone.utc) for time in times[1:3]
    )
    assert changed(table, since, until.isoformat()) == {(3, "c")}


def test_rows_carry_their_commit_and_a_condition_is_asked_of_them(table, history):
    _, times = history
    found = table.changes(times[0], where=[("v", "=", "b"), ("id", "!=", "k0")]).to_arrow()
    assert found["id"].to_pylist() == ["k1", "k2"]
    assert set(found["_hoodie_commit_time"].to_pylist()) == {times[1]}
    assert changed(table, times[0], where=pc.field("id") == "k20") == {(20, "d")}
    assert len(table.changes(times[0], limit=2).to_arrow()) == 2


def test_every_way_out_gives_the_same_rows(table, history):
    _, times = history
    scan = table.changes(times[0], times[2])
    expected = scan.to_arrow().sort_by("id")
    assert scan.to_dataset().to_table().sort_by("id") == expected
    assert scan.to_batches().read_all().sort_by("id") == expected
    parts = pickle.loads(pickle.dumps(scan.splits()))
    assert sorted(n for part in parts for n in part.to_arrow()["id"].to_pylist()) == expected["id"].to_pylist()


def test_files_that_the_range_did_not_write_are_not_opened(tmp_path):
    path = str(tmp_path / "t")
    times = [
        Engine(path, UPSERT).write(None, rows(range(n * 10, n * 10 + 9), lambda _, n=n: f"p{n}")).instant_time
        for n in range(5)
    ]
    scan = HudiTable.open(path).changes(times[3])
    told = scan.explain()
    assert (told.files_read, told.pruning.files, told.pruning.files_without_changes) == (1, 5, 4)
    assert (told.since, told.as_of) == (times[3], times[4])
    assert f"changes since {times[3]}" in str(told)
    assert "no commit of the range wrote them: 4" in str(told)


def test_a_range_whose_end_was_cleaned_is_refused_and_one_that_began_there_is_whole(table, history):
    _, times = history
    everything = changed(table)
    assert table.clean(CleanSettings(commits_retained=1, grace_ms=0))
    with pytest.raises(InvalidConfigError, match=f"{times[1]} may have been cleaned; ask for a time from {times[4]}"):
        changed(table, times[0], times[1])
    assert changed(table, times[0]) == {row for row in everything if row[1] != "a"}


def test_a_savepoint_holds_the_end_of_a_range_open(table, history):
    _, times = history
    table.create_savepoint(times[1])
    assert table.clean(CleanSettings(commits_retained=1, grace_ms=0))
    assert changed(table, times[0], times[1]) == {(0, "b"), (1, "b"), (2, "b")}


@pytest.mark.parametrize(("since", "until", "said"), [
    ("2999-01-01", None, "since='2999-01-01' .* lies in the future"),
    (None, "2999-01-01", "until='2999-01-01' .* lies in the future"),
    (None, "2020-01-01", "lies before the first active commit"),
    ("yesterday", None, "since='yesterday' is no time"),
    (None, "tomorrow", "until='tomorrow' is no time"),
])  # fmt: skip
def test_a_range_that_cannot_be_is_refused(table, since, until, said):
    with pytest.raises(InvalidConfigError, match=said):
        changed(table, since, until)


def test_a_pending_write_ends_an_open_range(table, history):
    path, times = history
    os.rename(f"{path}/.hoodie/{times[3]}.commit", f"{path}/kept")
    assert table.newest_instant == times[2]
    assert changed(table, times[2]) == set()
    with pytest.raises(InvalidConfigError, match=f"the write {times[3]} is not completed"):
        changed(table, times[2], times[4])
    os.rename(f"{path}/kept", f"{path}/.hoodie/{times[3]}.commit")
    assert table.newest_instant == times[4]
    assert changed(table, times[2]) == {(20, "d")}


def test_an_empty_table_has_no_changes(tmp_path):
    path = str(tmp_path / "t")
    Engine(path, UPSERT).write(None, rows([]))
    table = HudiTable.open(path)
    assert table.changes().to_arrow().num_rows == 0


def test_a_table_without_meta_columns_is_refused(table):
    bare = HudiTable(table.storage, replace(table.config, populate_meta_fields=False))
    with pytest.raises(UnsupportedTableError, match="do not say which commit wrote them"):
        bare.changes().to_arrow()


def test_the_columns_of_changes_are_those_of_the_newest_snapshot_whatever_their_end(tmp_path):
    path = str(tmp_path / "t")
    first = Engine(path, UPSERT).write(None, rows(range(3))).instant_time
    wider = rows(range(3)).append_column("more", rows(range(3)).column("ts"))
    Engine(path, UPSERT).write(None, wider)
    table = HudiTable.open(path)
    until_first = table.changes("0", first)
    assert until_first.schema == until_first.to_arrow().schema
    assert until_first.schema == table.changes("0").schema
    assert until_first.to_arrow().column("more").null_count == 3
    assert "more" not in table.scan(as_of=first).schema.names
    assert table.changes("0", first, ["id"]).schema.names == ["id"]
