"""The commits of an incremental query."""

import pytest
from instants import completed, inflight, requested

from table.errors import InvalidConfigError
from table.scan.change_range import (
    EARLIEST,
    ChangeRange,
    choose_range,
    first_pending_write,
    newest_settled,
    range_of_commit,
)
from table.timeline.instant import Action, Instant, State
from table.timeline.layout import LAYOUT_2
from table.timeline.timeline import build_timeline
from table.view.file_group import BaseFile, FileSlice

T = [f"2026010100000000{number}" for number in range(10)]
DONE = [completed(T[1]), completed(T[2], Action.DELTA_COMMIT), completed(T[4], Action.REPLACE_COMMIT)]


@pytest.mark.parametrize(
    ("others", "hole", "settled"),
    [
        ([], None, T[4]),
        ([inflight(T[3])], T[3], T[2]),  # it may complete with a time before T[4]
        ([requested(T[5])], T[5], T[4]),
        ([requested(T[0])], T[0], None),
        ([requested(T[3], Action.COMPACTION), inflight(T[3], Action.CLEAN)], None, T[4]),  # they change no rows
    ],
)
def test_a_range_ends_before_the_first_pending_write(others, hole, settled):
    timeline = build_timeline([*DONE, *others])
    assert first_pending_write(timeline) == hole
    assert newest_settled(timeline) == settled
    chosen = choose_range(timeline, EARLIEST, None, "since")
    assert chosen == (ChangeRange(EARLIEST, settled) if settled is not None else None)


def test_completion_times_of_layout_2_increase_so_a_pending_write_hides_nothing():
    written = [Instant(T[1], Action.COMMIT, State.COMPLETED, T[6]), Instant(T[4], Action.COMMIT, State.COMPLETED, T[5])]
    timeline = build_timeline([*written, requested(T[2])], LAYOUT_2)
    assert first_pending_write(timeline) is None
    assert newest_settled(timeline) == T[6]
    assert choose_range(timeline, T[5], None, "since") == ChangeRange(T[5], T[6])


def test_a_reader_that_is_ahead_gets_an_empty_range_and_keeps_its_place():
    assert choose_range(build_timeline(DONE), T[7], None, "since") == ChangeRange(T[7], T[7])


def test_a_table_without_commits_has_no_range():
    assert choose_range(build_timeline([]), EARLIEST, None, "since") is None


def test_a_range_that_ends_before_it_begins_is_refused():
    with pytest.raises(InvalidConfigError, match="mine: the range ends before it begins"):
        choose_range(build_timeline(DONE), T[4], T[2], "mine")


@pytest.mark.parametrize(("pending", "way"), [(T[3], f"until {T[2]}, or leave"), (T[0], "ask again later")])
def test_an_end_behind_a_pending_write_is_refused_with_the_way_out(pending, way):
    timeline = build_timeline([*DONE, inflight(pending)])
    with pytest.raises(InvalidConfigError, match=f"the write {pending} is not completed.*{way}"):
        choose_range(timeline, EARLIEST, T[4], "mine")


def test_an_end_before_a_pending_write_is_taken():
    timeline = build_timeline([*DONE, inflight(T[3])])
    assert choose_range(timeline, T[1], T[2], "mine") == ChangeRange(T[1], T[2])


@pytest.mark.parametrize(("time", "may"), [(T[1], False), (T[2], False), (T[3], True)])
def test_a_base_file_holds_no_row_of_a_later_commit(time, may):
    base = BaseFile("p", f"f_0-0-0_{time}.parquet", "f", time, 1)
    assert ChangeRange(T[2], T[4]).may_hold(FileSlice("p", "f", time, base, ())) == may
    assert ChangeRange(T[2], T[4], frozenset({T[3]})).may_hold(FileSlice("p", "f", time, base, ())) == may


def test_a_range_without_commits_is_held_by_no_base_file():
    base = BaseFile("p", f"f_0-0-0_{T[3]}.parquet", "f", T[3], 1)
    assert not ChangeRange(T[2], T[4], frozenset()).may_hold(FileSlice("p", "f", T[3], base, ()))


@pytest.mark.parametrize(
    ("time", "found"),
    [
        (T[4], (T[2], T[4])),  # not the time right before it: the pending write 3 may be undone later
        (T[2], ("20260101000000001", T[2])),  # older commits may be archived
        (T[3], None),
        (T[9], None),
    ],
)
def test_the_range_of_one_commit_begins_with_the_commit_before(time, found):
    timeline = build_timeline([completed(T[2]), requested(T[3]), completed(T[4]), completed(T[6])])
    assert range_of_commit(timeline, time) == found
