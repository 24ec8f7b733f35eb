"""A timeline that is listed while archival deletes its oldest instants."""

import os
from contextlib import nullcontext
from unittest import mock

import pytest
from instants import completed, inflight, requested

from table.errors import CommitConflictError
from table.storage.local import LocalStorage
from table.timeline.active_timeline import load_timeline
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

    def __init__(self, listings):
        self.listings, self.asked = list(listings), 0

    def list_names(self, _folder):
        self.asked += 1
        return [file.file_name for time in self.listings.pop(0) for file in files_of(time)]


def test_a_long_listing_with_a_gap_is_repeated():
    """The first one saw instants that were archived then, and not the next ones, which were archived, too."""
    storage = Archiving([TIMES[:5] + TIMES[10:], TIMES[12:], TIMES[12:]])
    timeline = load_timeline(storage)
    assert [instant.time for instant in timeline] == TIMES[12:]
    assert storage.asked == 3


def test_a_long_listing_is_repeated_once_where_nothing_goes():
    storage = Archiving([TIMES[:300], TIMES])
    assert [instant.time for instant in load_timeline(storage)] == TIMES[:300]
    assert storage.asked == 2


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
        _check_alone(build_timeline(before), now, mine)
