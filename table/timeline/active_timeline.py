"""The active timeline on storage: list instants, move them, read what they hold (HoodieActiveTimeline).

Every move creates the next file with create-if-absent; nothing is renamed. A file that the store
may or may not have created is read back before the caller gets an answer.
"""

from typing import Protocol

from table import clock
from table.errors import BrokenInvariantError, CommitOutcomeUnknownError, StorageError, TimelineMovedError
from table.storage.interface import METAFOLDER, TEMPORARY_PREFIX, Storage, join
from table.timeline.instant import Action, Instant, State
from table.timeline.layout import LAYOUT_1, TimelineLayout, name_instant
from table.timeline.timeline import Timeline, build_timeline

_STALE_MS = 600_000
_TRIES = 5
# a local folder is read in pieces of 32 KiB, in which deletions wait for the reader; an object store's page has 1,000
_NAMES_OF_ONE_MOMENT = 300


def load_timeline(storage: Storage, layout: TimelineLayout = LAYOUT_1) -> Timeline:
    """The active timeline, from one listing of its folder; a long one is listed again until it is known to be whole.

    While a long folder is listed, archival may delete an instant that was listed and a later one that was not yet:
    what the later one wrote would seem not to be committed. Archival deletes the oldest instants first. So a listing
    has no such gap if nothing completed that it shows is missing from the next one. Behind an archival that goes on for
    longer than some tries, the last listing is taken as it is: to wait could stop writers and readers for minutes.

    Args:
        layout: the table's: `HudiTable.load_timeline` gives it.
    """
    parse, folder = layout.names.parse, layout.names.folder
    names = storage.list_names(folder)
    for _ in range(_TRIES):
        if len(names) <= _NAMES_OF_ONE_MOMENT:
            break
        again = storage.list_names(folder)
        gone = map(parse, set(names).difference(again))
        if not any(instant is not None and instant.is_completed for instant in gone):
            break
        names = again
    return build_timeline((instant for instant in map(parse, names) if instant is not None), layout)


def list_temporaries(storage: Storage, now_ms: int, layout: TimelineLayout = LAYOUT_1) -> list[str]:
    """Paths of half-written files of processes that died while they created one, relative to the table.

    Args:
        now_ms: the store's time: a machine's own clock may be ahead, and would take a live one for dead.
        layout: the table's.
    """
    return [
        join(folder, entry.name)
        for folder in dict.fromkeys((METAFOLDER, layout.names.folder))
        for entry in storage.list_dir(folder)
        if entry.name.startswith(TEMPORARY_PREFIX) and not entry.is_dir and entry.modified_ms < now_ms - _STALE_MS
    ]


def sweep_temporaries(storage: Storage, now_ms: int, layout: TimelineLayout = LAYOUT_1) -> None:
    """Deletes what `list_temporaries` finds."""
    for path in list_temporaries(storage, now_ms, layout):
        storage.delete_metafile(path)


def read_instant(storage: Storage, instant: Instant) -> bytes:
    """Content of an instant's file. An absent file proves nothing: whatever was to be decided is open.

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
    """Content of an instant's file; None where it was archived since the timeline was listed."""
    try:
        return storage.read(instant.path)
    except FileNotFoundError:
        return None


class TimeClaim(Protocol):
    """Says whose an instant time is, before its request is on the timeline."""

    def take(self, time: str) -> bool:
        """Claims a time. Returns False where it is somebody else's."""

    def give_up(self, time: str) -> None:
        """Takes a claim back; one that was not had is left alone."""


def request_instant(
    storage: Storage,
    timeline: Timeline,
    action: Action,
    zone: str,
    content: bytes = b"",
    claim: TimeClaim | None = None,
) -> Instant:
    """`request_and_list` without the timeline."""
    return request_and_list(storage, timeline, action, zone, content, claim)[0]


def request_and_list(
    storage: Storage,
    timeline: Timeline,
    action: Action,
    zone: str,
    content: bytes = b"",
    claim: TimeClaim | None = None,
) -> tuple[Instant, Timeline]:
    """Requests a new instant whose time is greater than every one on the timeline, and that no other action has.

    Of two callers that pick the same time for the same action, create-if-absent lets one win. For other
    actions the timeline is listed after the request: who sees another instant of the same time withdraws
    and picks again, so that never both stay. So does who claims a time, if a later write was completed meanwhile: a
    reader that follows the table reads up to the first pending write, and would never read what comes below.

    Args:
        timeline: as loaded.
        action: what is requested.
        zone: the table's.
        content: of the requested file.
        claim: of the time, before the request is visible (a heartbeat); None: whoever creates the request has it.

    Returns:
        The instant, and the timeline as it was after the request.

    Raises:
        InvalidConfigError: when the timeline is ahead of our clock.
        StorageError: when the store fails.
    """
    last = timeline.last_time
    for attempt in range(_TRIES):
        time = clock.next_instant_time(last, clock.now_ms() + attempt, zone)
        instant = name_instant(timeline.layout, time, action, State.REQUESTED)
        if (claim is None or claim.take(time)) and storage.create_exclusive(instant.path, content, durable=True):
            now = load_timeline(storage, timeline.layout)
            is_one = all(other.action is action for other in now if other.time == instant.time)
            if is_one and not (claim is not None and _was_passed(now, instant)):
                return instant, now
            delete_instant_file(storage, instant)
            last = max(last or "", now.last_time or "")
        if claim is not None:
            claim.give_up(time)
        last = max(last or "", instant.time)
        clock.sleep_s(0.001 * (attempt + 1) * (1 + clock.jitter()))
    raise StorageError(f"no instant time could be had for a {action.value}: others took {_TRIES} in turn")


def _was_passed(now: Timeline, instant: Instant) -> bool:
    """Whether the request came too late for its time.

    A later write was completed before it was visible: readers may have read past its time. Or a later compaction was
    requested: log files of this write would belong to a slice below it.
    """
    later = (*now.completed_writes, *now.pending_of(Action.COMPACTION, Action.LOG_COMPACTION))
    return any(other.time > instant.time for other in later)


def begin_instant(storage: Storage, instant: Instant, content: bytes = b"") -> Instant:
    """Moves a requested instant to inflight. One that is inflight already is taken as it is."""
    moved = instant.to(State.INFLIGHT)
    storage.create_exclusive(moved.path, content, durable=True)
    return moved


def complete_instant(storage: Storage, instant: Instant, content: bytes, completion_time: str | None = None) -> Instant:
    """Moves an inflight instant to completed: from here on what it did is visible.

    Args:
        instant: inflight.
        content: of the completed file.
        completion_time: part of the file's name in timeline layout 2, and decided before, once for all who complete the
            instant (`EndRecord.completion_time`); None in layout 1.

    Raises:
        BrokenInvariantError: the names of the table's layout hold a time of completion, and none is given.
        CommitOutcomeUnknownError: when the store failed and could not be asked what happened.
        StorageError: when another process completed the instant with other content.
    """
    if instant.names.hold_completion and completion_time is None:
        raise BrokenInvariantError(f"{instant.path} is to be completed, and nothing has decided at which time")
    moved = instant.to(State.COMPLETED, completion_time)
    if create_settled(storage, moved.path, content) == content:
        return moved
    raise StorageError(f"{moved.path} was completed by another process with other content")


def create_settled(storage: Storage, path: str, data: bytes) -> bytes:
    """Creates a file if it is absent, and repeats the question until the store says whose it is.

    A request that was given up may still arrive. It then finds the file that a later request created:
    so a definite answer to any of the requests settles all of them. To read an absent file settles none.

    Returns:
        The content that is there.

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


def delete_instant_file(storage: Storage, instant: Instant) -> None:
    """Deletes one state file of an instant, as a rollback or the archival does."""
    storage.delete_metafile(instant.path)
