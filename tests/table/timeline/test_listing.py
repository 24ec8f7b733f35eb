"""A timeline that is listed while archival deletes its oldest instants."""

import os
from contextlib import nullcontext
from types import SimpleNamespace
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from instants import completed, inflight, requested

from table.errors import CommitConflictError
from table.storage.local import LocalStorage
from table.timeline.active_timeline import _LONG, _kept_timeline, load_timeline, parse_timeline
from table.timeline.instant import Action, Instant, State
from table.timeline.layout import LAYOUT_1, layout_of, name_instant
from table.timeline.timeline import build_timeline
from table.transaction.commit import _check_alone

TIMES = [f"2026112310{number:04d}000" for number in range(400)]


def files_of(time):
    return [requested(time), inflight(time), completed(time)]


@pytest.fixture
def storage(tmp_path):
    storage = LocalStorage(str(tmp_path))
    for time in TIMES[:5]:
        for file in files_of(time):
            storage.create_exclusive(file.path, b"")
    return storage


@pytest.mark.parametrize("seen", range(16))
def test_an_instant_that_is_archived_meanwhile_is_completed_or_not_there(storage, seen):
    """Also where it goes between two of the entries that the operating system has handed out already."""
    scan = os.scandir

    class Entries(list):
        def __enter__(self):
            return self.handed_out()

        def __exit__(self, *_):
            """Nothing is open."""

        def handed_out(self):
            for number, entry in enumerate(self):
                if number == seen:
                    for file in files_of(TIMES[0]):
                        storage.delete_metafile(file.path)
                yield entry

    def listed(path):
        with scan(path) as entries:
            return Entries(sorted(entries, key=lambda entry: (len(entry.name), entry.name), reverse=True))

    with mock.patch("os.scandir", listed):
        timeline = load_timeline(storage)
    assert not timeline.pending
    assert [instant.time for instant in timeline][-4:] == TIMES[1:5]


class Archiving:
    """Lists many instants; archival goes on while it does, and listings show what goes in turn."""

    base_uri = "archiving"

    def __init__(self, listings):
        self.listings, self.asked = [names_of(files) for files in listings], 0

    def list_names(self, _folder):
        self.asked += 1
        return self.listings.pop(0)

    def exists(self, path):
        """What the next listing has, or the last one where there is no other."""
        return not self.listings or path.rpartition("/")[2] in self.listings[0]


def names_of(files):
    return [file.file_name for each in files for file in ([each] if isinstance(each, Instant) else files_of(each))]


def test_a_long_listing_with_a_gap_is_repeated():
    """The first one saw instants that were archived then, and not the next ones, which were archived, too."""
    storage = Archiving([TIMES[:5] + TIMES[10:], TIMES[12:], TIMES[12:]])
    timeline = load_timeline(storage)
    assert [instant.time for instant in timeline] == TIMES[12:]
    assert storage.asked == 2


def test_a_write_is_not_pending_because_its_completed_file_was_deleted_before_the_listing_reached_it():
    storage = Archiving([[requested(TIMES[0]), inflight(TIMES[0]), *TIMES[1:]], TIMES[1:]])
    timeline = load_timeline(storage)
    assert not timeline.pending
    assert [instant.time for instant in timeline] == TIMES[1:]


def test_archival_that_goes_on_stops_nobody():
    storage = Archiving([TIMES[number:] for number in range(9)])
    assert len(load_timeline(storage)) == len(TIMES) - 4
    assert storage.asked == 5


def test_a_long_listing_is_made_once_where_nothing_goes():
    storage = Archiving([TIMES[:300], TIMES])
    assert [instant.time for instant in load_timeline(storage)] == TIMES[:300]
    assert storage.asked == 1


DERIVED = ("completed_writes", "writes_by_time", "visible_times", "committed_times", "pending", "last_time")
CHANGES = st.lists(
    st.tuples(st.sampled_from(TIMES[:300]), st.sampled_from(list(Action)), st.sampled_from(State), st.booleans()),
    max_size=8,
)


@given(st.lists(CHANGES, min_size=1, max_size=5), st.sampled_from([LAYOUT_1, layout_of(2)]))
def test_a_timeline_that_is_built_from_the_last_one_is_the_same(batches, layout):
    _LONG.clear()
    names = {name_instant(layout, time, Action.COMMIT, State.REQUESTED).file_name for time in TIMES}
    for changes in batches:
        for time, action, state, comes in changes:
            ends = TIMES[-1] if layout.names.hold_completion and state is State.COMPLETED else None
            name = Instant(time, action, state, ends, names=layout.names).file_name
            (names.add if comes else names.discard)(name)
        timeline, expected = _kept_timeline("t", sorted(names), layout), parse_timeline(names, layout)
        assert timeline == expected
        assert [i.file_name for i in timeline] == [i.file_name for i in expected]
        for name in DERIVED:
            assert getattr(timeline, name) == getattr(expected, name)
    _LONG.clear()


def test_two_files_of_one_end_are_told_apart():
    """A name that goes may stand for the same file as one that stays."""
    layout = layout_of(2)
    [requested_name, first, second] = (
        Instant(TIMES[0], Action.COMMIT, state, end, names=layout.names).file_name
        for state, end in ((State.REQUESTED, None), (State.COMPLETED, TIMES[1]), (State.COMPLETED, TIMES[2]))
    )
    for gone in (first, second):
        _LONG.clear()
        names = {requested_name, first, second}
        _kept_timeline("t", sorted(names), layout)
        names.remove(gone)
        assert [i.file_name for i in _kept_timeline("t", sorted(names), layout)] == list(names - {requested_name})
    _LONG.clear()


def test_few_long_timelines_are_kept():
    _LONG.clear()
    for number in range(9):
        _kept_timeline(f"t{number}", names_of(TIMES), LAYOUT_1)
    assert [table for table, _ in _LONG] == ["t5", "t6", "t7", "t8"]
    _LONG.clear()


def test_a_short_listing_is_of_one_moment():
    storage = Archiving([TIMES[:90]])
    assert len(load_timeline(storage)) == 90
    assert storage.asked == 1


@pytest.mark.parametrize(("before", "is_refused"), [([completed(TIMES[0])], False), ([], True)])
def test_an_inflight_file_alone_is_no_writer_when_its_instant_was_completed_before(before, is_refused):
    """Where listings are no moments, as over a network, it is what archival has not deleted yet."""
    mine = requested(TIMES[1])
    now = build_timeline([inflight(TIMES[0]), mine])
    with pytest.raises(CommitConflictError) if is_refused else nullcontext():
        _check_alone(build_timeline(before), SimpleNamespace(timeline=now), mine)
