"""The active timeline on storage: list instants, move them, read what they hold (ActiveTimelineV1).

Every move creates the next file with create-if-absent; nothing is renamed. A file that the store
may or may not have created is read back before anybody is told about it.
"""

from table import clock
from table.errors import CommitOutcomeUnknownError, CorruptFileError, StorageError
from table.storage import METAFOLDER, TEMPORARY_PREFIX, Storage, join
from table.timeline.instant import Action, Instant, State, parse_instant
from table.timeline.timeline import Timeline, build_timeline, requested

STALE_TEMPORARY_MS = 600_000


def load_timeline(storage: Storage) -> Timeline:
    """The active timeline: one listing of ``.hoodie``."""
    files = []
    for entry in storage.list_dir(METAFOLDER):
        if entry.is_dir:
            continue
        instant = parse_instant(entry.name)
        if instant is not None:
            files.append(instant)
        elif entry.name.startswith(TEMPORARY_PREFIX) and entry.modified_ms < clock.now_ms() - STALE_TEMPORARY_MS:
            storage.delete(join(METAFOLDER, entry.name))
    return build_timeline(files)


def read_instant(storage: Storage, instant: Instant) -> bytes:
    """Content of an instant's file.

    Raises:
        CorruptFileError: when it is not there although the timeline showed it.
    """
    path = instant_path(instant)
    try:
        return storage.read(path)
    except FileNotFoundError as error:
        raise CorruptFileError(f"the instant file {path} of {storage.base_uri!r} is gone") from error


def find_instant(storage: Storage, instant: Instant) -> bytes | None:
    """Content of an instant's file; None where it was archived since the timeline was listed."""
    try:
        return storage.read(instant_path(instant))
    except FileNotFoundError:
        return None


def instant_path(instant: Instant) -> str:
    """Path of an instant's file, relative to the table."""
    return join(METAFOLDER, instant.file_name)


def request_instant(storage: Storage, timeline: Timeline, action: Action, zone: str, content: bytes = b"") -> Instant:
    """Requests a new instant whose time is greater than every one on the timeline.

    Two callers that pick the same time are told apart by create-if-absent: one picks again.

    Raises:
        InvalidConfigError: when the timeline is ahead of our clock.
        StorageError: when the store fails.
    """
    last = timeline.last_time
    while True:
        instant = requested(clock.next_instant_time(last, clock.now_ms(), zone), action)
        if storage.create_exclusive(instant_path(instant), content, durable=True):
            return instant
        last = instant.time


def begin_instant(storage: Storage, instant: Instant, content: bytes = b"") -> Instant:
    """Moves a requested instant to inflight. One that is inflight already is taken as it is."""
    moved = instant.to(State.INFLIGHT)
    storage.create_exclusive(instant_path(moved), content, durable=True)
    return moved


def complete_instant(storage: Storage, instant: Instant, content: bytes) -> Instant:
    """Moves an inflight instant to completed: from here on what it did is visible.

    Raises:
        CommitOutcomeUnknownError: when the store failed and could not be asked what happened.
        StorageError: when somebody else completed the instant with other content.
    """
    moved = instant.to(State.COMPLETED)
    path = instant_path(moved)
    failure: StorageError | None = None
    try:
        if storage.create_exclusive(path, content, durable=True):
            return moved
    except StorageError as error:
        failure = error
    # lost answer, or there already: only its content tells whose it is
    try:
        found = storage.read(path)
    except FileNotFoundError:
        if failure is not None:
            raise failure from None
        raise CommitOutcomeUnknownError(f"{path} was there and then was not: run the batch again") from None
    except StorageError as error:
        raise CommitOutcomeUnknownError(f"whether {path} was created is not known: {error}") from error
    if found == content:
        return moved
    raise StorageError(f"{path} was completed by somebody else with other content")


def delete_instant_file(storage: Storage, instant: Instant) -> None:
    """Deletes one state file of an instant, as a rollback or the archival does."""
    storage.delete(instant_path(instant))
