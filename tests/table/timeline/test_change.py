"""What happened between two looks at a timeline: a table of cases, and random histories."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.timeline.change import Change, came_and_went

# before, now -> came, late, undone, archived, is gapless; a digit is a request time
CASES = {
    "nothing": ("123", "123", "", "", "", "", True),
    "two empty looks": ("", "", "", "", "", "", False),
    "the first write": ("", "1", "1", "", "", "", False),
    "writes came": ("12", "1234", "34", "", "", "", True),
    "one came late": ("13", "123", "2", "2", "", "", True),
    "the oldest were archived": ("123", "3", "", "", "", "12", True),
    "some came, the oldest were archived": ("123", "345", "45", "", "", "12", True),
    "all were archived, others may have been there": ("12", "45", "45", "", "", "12", False),
    "the newest was undone": ("123", "12", "", "", "3", "", False),
    "one in the middle was undone": ("123", "13", "", "", "2", "", True),
    "all were undone": ("12", "", "", "", "12", "", False),
    "everything": ("12356", "34678", "478", "4", "5", "12", True),
}


@pytest.mark.parametrize("name", CASES)
def test_a_change_says_what_happened(name):
    before, now, came, late, undone, archived, is_gapless = CASES[name]
    change = Change.between(before, now)
    assert change == Change(*map(frozenset, (came, late, undone, archived)), is_gapless)
    assert change.is_none == (before == now)


@pytest.mark.parametrize(
    ("pending", "now", "went"),
    [("", "", ""), ("3", "12", ""), ("3", "23", ""), ("1", "23", "1"), ("14", "23", "1"), ("1", "", "")],
)
def test_a_pending_write_may_have_come_and_gone(pending, now, went):
    assert came_and_went(pending, now) == frozenset(went)


EVENTS = st.lists(st.tuples(st.sampled_from(["commit", "late", "undo", "archive"]), st.integers(0, 40)), max_size=12)


def _happen(there, events):
    """The completed writes after some events, and which of them happened to which."""
    there, done = set(there), {"commit": set(), "undo": set(), "archive": set()}
    for what, number in events:
        if what == "commit":
            done["commit"].add(time := max([*there, *done["commit"], 100]) + 1)
            there.add(time)
        elif what == "late" and number > max(done["archive"], default=-1) and number not in done["undo"]:
            # it was pending: archival takes nothing that was requested after a pending write
            done["commit"] |= {number} - there
            there.add(number)
        elif what == "undo" and len(there) > 1:
            there.remove(time := sorted(there)[-1 - number % (len(there) - 1)])  # not the oldest: archival's
            done["undo"].add(time)
        elif what == "archive" and len(there) > 1:
            there.remove(time := min(there))
            done["archive"].add(time)
    return there, done


@given(st.sets(st.integers(31, 40), min_size=1), EVENTS)
def test_of_any_history_nothing_that_stays_is_missed_and_nothing_undone_is_called_archived(before, events):
    now, done = _happen(before, events)
    spelled = [{f"{time:03}" for time in times} for times in (before, now)]
    change = Change.between(*spelled)
    numbers = {name: {int(time) for time in getattr(change, name)} for name in ("came", "late", "undone", "archived")}
    assert numbers["came"] == (done["commit"] & now) - before
    assert numbers["late"] == {time for time in numbers["came"] if time < max(before)}
    assert numbers["undone"] | numbers["archived"] == before - now
    assert numbers["archived"] >= done["archive"] & before
    assert numbers["undone"] <= done["undo"]
    if change.is_gapless:  # nothing requested later has come and been archived
        assert not {time for time in done["archive"] - before if time > max(before)}
