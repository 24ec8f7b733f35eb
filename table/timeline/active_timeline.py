"""The active timeline on storage: lists instants, changes their states, reads their files (HoodieActiveTimeline).

Each change of state creates the next file with create-if-absent. No file is renamed. If the store may or may not have
created a file, the file is read back before the caller gets an answer.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

from table import clock
from table.errors import BrokenInvariantError, CommitOutcomeUnknownError, StorageError, TimelineMovedError
from table.storage.at_once import together
from table.storage.interface import METAFOLDER, TEMPORARY_PREFIX, Storage, join
from table.timeline.instant import Action, Instant, State
from table.timeline.layout import LAYOUT_1, TimelineLayout, name_instant
from table.timeline.timeline import Timeline, build_timeline, find_witnesses, rebuild_timeline

_STALE_MS = 600_000
_TRIES = 5
# most names that a listing returns as of one moment: a local folder is read in pieces of 32 KiB, and deletions wait
# while a piece is read; a page of an object store has 1,000 names
_NAMES_OF_ONE_MOMENT = 300
_MOST_LONG = 4
# by table and folder: the names of its last long listing, and their timeline
_LONG: dict[tuple[str, str], tuple[frozenset[str], Timeline]] = {}


def load_timeline(storage: Storage, layout: TimelineLayout = LAYOUT_1) -> Timeline:
    """The active timeline, from one listing of its folder. A long folder is listed again if archival went on meanwhile.

    While a long folder is listed, archival may delete an instant that is in the listing, and a later instant that the
    listing has not reached. The files of the later instant would then seem not to be committed. Or the listing has the
    requested file of an instant, and not its completed file, which was deleted before the listing reached it: the
    instant would seem to be pending. `find_witnesses` has what shows both. If archival goes on for longer than some
    tries, the last listing is used: waiting could stop writers and readers for minutes.

    Args:
        layout: the table's; `HudiTable.load_timeline` passes it.
    """
    for _ in range(_TRIES):
        names = storage.list_names(layout.names.folder)
        if len(names) <= _NAMES_OF_ONE_MOMENT:
            return parse_timeline(names, layout)
        timeline = _kept_timeline(storage.base_uri, names, layout)
        if all(storage.exists(instant.path) for instant in find_witnesses(timeline)):
            break
    return timeline


def _kept_timeline(table: str, names: Sequence[str], layout: TimelineLayout) -> Timeline:
    """The timeline of a long listing: from the last one of the same table, from which it differs in a few names."""
    place, now = (table, layout.names.folder), frozenset(names)
    before, near = _LONG.pop(place, (frozenset[str](), None))
    if near is None or near.layout != layout:
        files = _parse(names, layout)
        timeline, count = build_timeline(files, layout), len(files)
    else:
        added, removed = _parse(now - before, layout), _parse(before - now, layout)
        timeline, count = rebuild_timeline(near, added, removed), len(near.files) + len(added) - len(removed)
    if len(timeline.files) != count:  # two names stand for one file, so a difference of names would say too little
        return parse_timeline(names, layout)
    _LONG[place] = now, timeline
    for old in list(_LONG)[:-_MOST_LONG]:
        _LONG.pop(old, None)
    return timeline


def parse_timeline(names: Iterable[str], layout: TimelineLayout = LAYOUT_1) -> Timeline:
    """The timeline of the files in a folder (pure). Names that are not those of instants do not count."""
    return build_timeline(_parse(names, layout), layout)


def _parse(names: Iterable[str], layout: TimelineLayout) -> list[Instant]:
    return [instant for instant in map(layout.names.parse, names) if instant is not None]


def list_temporaries(storage: Storage, now_ms: int, layout: TimelineLayout = LAYOUT_1) -> list[str]:
    """Paths of temporary files that dead processes left while they created a file, relative to the table.

    Args:
        now_ms: the store's time. By a machine's clock that is ahead, the file of a live process would seem to be left.
    """
    return [
        join(folder, entry.name)
        for folder in dict.fromkeys((METAFOLDER, layout.names.folder))
        for entry in storage.list_dir(folder)
        if entry.name.startswith(TEMPORARY_PREFIX) and not entry.is_dir and entry.modified_ms < now_ms - _STALE_MS
    ]


def sweep_temporaries(storage: Storage, now_ms: int, layout: TimelineLayout = LAYOUT_1) -> None:
    """Deletes the files that `list_temporaries` finds."""
    for path in list_temporaries(storage, now_ms, layout):
        storage.delete_metafile(path)


def read_instant(storage: Storage, instant: Instant) -> bytes:
    """The content of an instant's file. An absent file proves nothing: the caller must not decide anything from it.

    Raises:
        TimelineMovedError: the file was archived or undone since the timeline was listed.
    """
    data = find_instant(storage, instant)
    if data is None:
        raise TimelineMovedError(
            f"{instant.path} of {storage.base_uri!r} was archived or undone before it was read: nothing was decided; "
            "try again"
        )
    return data


def find_instant(storage: Storage, instant: Instant) -> bytes | None:
    """The content of an instant's file; None where it was archived since the timeline was listed."""
    try:
        return storage.read(instant.path)
    except FileNotFoundError:
        return None


class TimeClaim(Protocol):
    """Reserves an instant time for one writer, before its request is on the timeline."""

    def take(self, time: str) -> bool:
        """Claims a time. Returns False where another writer has it."""

    def give_up(self, time: str) -> None:
        """Gives a claimed time back. Does nothing if this claim does not have the time."""


def request_instant(
    storage: Storage,
    timeline: Timeline,
    action: Action,
    times: clock.InstantClock,
    content: bytes = b"",
    claim: TimeClaim | None = None,
) -> Instant:
    """As `request_and_list`, but returns only the instant."""
    return request_and_list(storage, timeline, action, times, content, claim)[0]


def request_and_list(
    storage: Storage,
    timeline: Timeline,
    action: Action,
    times: clock.InstantClock,
    content: bytes = b"",
    claim: TimeClaim | None = None,
    begin: Callable[[Instant], Any] | None = None,
) -> tuple[Instant, Timeline]:
    """Requests a new instant. Its time is greater than every time on the timeline, and no other action has it.

    If two callers pick the same time for the same action, create-if-absent lets one of them win. For other actions the
    timeline is listed after the request. A caller that sees another instant of the same time withdraws its request and
    picks another time, so that the two instants never both stay. A caller with a claim also withdraws if a later write
    was completed meanwhile: a reader that follows the table reads up to the first pending write, and would never read a
    write that completes with an earlier time.

    Args:
        timeline: as the caller loaded it.
        times: the table's.
        content: bytes of the requested file.
        claim: claims the time before the request is visible (a heartbeat); None: the caller that creates the requested
            file has the time.
        begin: is called with the requested instant while the timeline is listed. It may move the instant to inflight:
            a request that is withdrawn takes both files along.

    Returns:
        The instant, and the timeline as listed after the request.

    Raises:
        InvalidConfigError: when the timeline is ahead of this machine's clock.
        StorageError: when the store fails.
    """
    last = timeline.last_time
    for attempt in range(_TRIES):
        time = times.next_time(last, attempt)
        instant = name_instant(timeline.layout, time, action, State.REQUESTED)
        if (claim is None or claim.take(time)) and storage.create_exclusive(instant.path, content, durable=True):
            look = partial(load_timeline, storage, timeline.layout)
            now = look() if begin is None else together(storage, look, partial(begin, instant))[0]
            is_one = all(other.action is action for other in now if other.time == instant.time)
            if is_one and not (claim is not None and _was_passed(now, instant)):
                return instant, now
            if begin is not None:
                delete_instant_file(storage, instant.to(State.INFLIGHT))
            delete_instant_file(storage, instant)
            last = max(last or "", now.last_time or "")
        if claim is not None:
            claim.give_up(time)
        last = max(last or "", instant.time)
        clock.sleep_s(0.001 * (attempt + 1) * (1 + clock.jitter()))
    raise StorageError(f"no instant time could be had for a {action.value}: others took {_TRIES} in turn")


def _was_passed(now: Timeline, instant: Instant) -> bool:
    """Whether the request came too late for its time.

    Either a later write was completed before the request was visible: readers may have read past the request's time.
    Or a later compaction was requested: log files of this write would belong to a slice below the compaction.
    """
    later = (*now.completed_writes, *now.pending_of(Action.COMPACTION, Action.LOG_COMPACTION))
    return any(other.time > instant.time for other in later)


def begin_instant(storage: Storage, instant: Instant, content: bytes = b"") -> Instant:
    """Moves a requested instant to inflight. An instant that is already inflight stays as it is."""
    moved = instant.to(State.INFLIGHT)
    storage.create_exclusive(moved.path, content, durable=True)
    return moved


def complete_instant(storage: Storage, instant: Instant, content: bytes, completion_time: str | None = None) -> Instant:
    """Moves an inflight instant to completed. From then on readers see its changes.

    Args:
        instant: the inflight instant.
        content: bytes of the completed file.
        completion_time: part of the completed file's name in timeline layout 2. It was decided before, so that each
            process that completes the instant uses the same time (`EndRecord.completion_time`). None in layout 1.

    Raises:
        BrokenInvariantError: file names of the table's layout contain a completion time, and none is given.
        CommitOutcomeUnknownError: when the store failed, and gave no definite answer to later requests.
        StorageError: when another process completed the instant with other content.
    """
    if instant.names.hold_completion and completion_time is None:
        raise BrokenInvariantError(f"{instant.path} is to be completed, and nothing has decided at which time")
    moved = instant.to(State.COMPLETED, completion_time)
    if create_settled(storage, moved.path, content) == content:
        return moved
    raise StorageError(f"{moved.path} was completed by another process with other content")


def create_settled(storage: Storage, path: str, data: bytes) -> bytes:
    """Creates a file if it is absent, and repeats the request until the store says what the file contains.

    A request that was given up may still reach the store. It then finds the file that a later request created. So a
    definite answer to one request settles all of them. A read that finds no file settles none.

    Returns:
        The content of the file.

    Raises:
        CommitOutcomeUnknownError: the store gave no definite answer.
    """
    failure: Exception | None = None
    for attempt in range(_TRIES):
        if attempt:
            clock.sleep_s(0.05 * 2**attempt)
        try:
            if storage.create_exclusive(path, data, durable=True):
                return data
        except StorageError as error:
            failure = error
        try:
            return storage.read(path)
        except (StorageError, FileNotFoundError) as error:
            failure = failure or error
    raise CommitOutcomeUnknownError(f"it is not known whether {path} was created: {failure}") from failure


def delete_instant_file(storage: Storage, instant: Instant) -> bool:
    """Deletes one state file of an instant, as a rollback or the archival does. Returns False if it did not exist."""
    return storage.delete_metafile(instant.path)
