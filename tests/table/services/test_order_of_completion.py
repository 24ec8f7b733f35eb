"""Writes of several writers complete in another order than they were requested in (timeline layout 2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.options.groups import ArchiveSettings, CleanSettings
from table.services.archival.plan import plan_archival
from table.services.clean.plan import earliest_in_use, earliest_to_retain
from table.timeline.instant import Action, CompletionTimeNames, Instant, State
from table.timeline.layout import LAYOUT_2
from table.timeline.timeline import build_timeline

NAMES = CompletionTimeNames()


def at(number):
    return f"20260101{number:09d}"


def timeline_of(completions, pending=()):
    """Requests at 0, 10, 20 …, each completed at a time of its own; some are pending."""
    files = []
    for number, completed in enumerate(completions):
        requested = Instant(at(10 * number), Action.COMMIT, State.REQUESTED, names=NAMES)
        files += [requested, requested.to(State.INFLIGHT)]
        if number not in pending:
            files.append(requested.to(State.INFLIGHT).to(State.COMPLETED, at(completed)))
    return build_timeline(files, LAYOUT_2)


def test_both_orders():
    timeline = timeline_of([95, 40, 50])
    assert [i.time for i in timeline.completed_writes] == [at(10), at(20), at(0)]
    assert [i.time for i in timeline.writes_by_time] == [at(0), at(10), at(20)]


ORDERS = st.permutations(range(200, 212))


@given(ORDERS, st.sets(st.integers(0, 11), max_size=3))
def test_archival_leaves_no_write_behind_one_that_it_retires(order, pending):
    """A write that was requested first, and completed last, would move the line below what was retired after it."""
    timeline = timeline_of(order, pending)
    plan = plan_archival(timeline, ArchiveSettings(min_commits=2, max_commits=3))
    retired = {instant.time for instant in plan.instants}
    staying = timeline.committed_times - retired
    assert not retired or max(retired) < min(staying)
    assert plan.first_active is None or plan.first_active == min(staying)


@given(ORDERS, st.integers(1, 4))
def test_cleaning_retains_the_newest_versions_by_their_times(order, retained):
    timeline = timeline_of(order)
    earliest = earliest_to_retain(timeline, CleanSettings(commits_retained=retained), "")
    assert earliest.time == at(10 * (12 - retained))


def test_what_a_pending_write_may_read_is_retained():
    timeline = timeline_of([95, 40, 50, 60], pending=[2])
    assert earliest_in_use(timeline).time == at(10)
    assert earliest_to_retain(timeline, CleanSettings(commits_retained=1), "").time == at(10)


@pytest.mark.parametrize("order", [[200, 201, 202, 203], [203, 202, 201, 200]])
def test_the_newest_write_of_archival_is_the_last_requested(order):
    plan = plan_archival(timeline_of(order), ArchiveSettings(min_commits=1, max_commits=2))
    assert [instant.time for instant in plan.instants] == [at(0), at(10), at(20)]
