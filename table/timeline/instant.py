"""Instants: what can happen to a table, and in which state it is (pure).

How an instant's file is named is said by the timeline's layout (`table.timeline.layout`), which hands its
`InstantNames` to the instants that it parses. The names of both layouts stand here; those of layout 1 are the default.
"""

import re
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import Protocol

from table.errors import BrokenInvariantError
from table.storage.interface import METAFOLDER, join


class Action(str, Enum):
    """What an instant does."""

    COMMIT = "commit"
    DELTA_COMMIT = "deltacommit"
    REPLACE_COMMIT = "replacecommit"
    CLUSTERING = "clustering"  # in layout 2; in layout 1 a pending clustering is a replace commit
    COMPACTION = "compaction"
    LOG_COMPACTION = "logcompaction"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    RESTORE = "restore"
    INDEXING = "indexing"
    SCHEMA_COMMIT = "schemacommit"


class State(str, Enum):
    """How far an instant has come."""

    REQUESTED = "REQUESTED"
    INFLIGHT = "INFLIGHT"
    COMPLETED = "COMPLETED"


STATE_ORDER = {State.REQUESTED: 0, State.INFLIGHT: 1, State.COMPLETED: 2}

# a completed compaction shows up under another action
COMPLETED_AS = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}

WRITE_ACTIONS = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
# those that can have an end record
DECIDED_ACTIONS = WRITE_ACTIONS | {Action.COMPACTION, Action.ROLLBACK, Action.RESTORE, Action.CLEAN, Action.SAVEPOINT}

# the only moves that exist; None is "not there"
ALLOWED_TRANSITIONS: frozenset[tuple[State | None, State | None]] = frozenset(
    {
        (None, State.REQUESTED),
        (State.REQUESTED, State.INFLIGHT),
        (State.INFLIGHT, State.COMPLETED),
        (State.INFLIGHT, State.REQUESTED),  # a compaction that is to run again
        (State.INFLIGHT, None),  # undone by a rollback
        (State.REQUESTED, None),
        (None, State.INFLIGHT),  # savepoints have no request
        (State.COMPLETED, None),  # undone by a restore, or retired to the archive
    }
)


class InstantNames(Protocol):
    """How a layout names the files of instants (InstantFileNameGenerator, InstantGenerator)."""

    @property
    def folder(self) -> str:
        """Where they are, relative to the table."""

    @property
    def hold_completion(self) -> bool:
        """Whether the name of a completed file says when the instant was completed."""

    def format(self, instant: "Instant") -> str:
        """File name of an instant, without the folder."""

    def parse(self, file_name: str) -> "Instant | None":
        """The instant that a file name stands for, or None when it is none."""


class RequestTimeNames:
    """Names of layout 1: the time of the request alone (InstantFileNameGeneratorV1, InstantGeneratorV1).

    All in ``.hoodie/``::

        <time>.<action>.requested   <time>.<action>.inflight   <time>.<action>

    with three exceptions: the inflight file of a commit is ``<time>.inflight``, and a completed compaction is a
    ``.commit``, a completed log compaction a ``.deltacommit``.
    """

    folder = METAFOLDER
    hold_completion = False

    def format(self, instant: "Instant") -> str:
        """File name of an instant."""
        if instant.state is State.COMPLETED:
            return f"{instant.time}.{COMPLETED_AS.get(instant.action, instant.action).value}"
        return _pending_name(instant)

    def parse(self, file_name: str) -> "Instant | None":
        """The instant that a file name stands for, or None when it is none."""
        return _parse_one_time(file_name)


@dataclass(frozen=True, slots=True)
class CompletionTimeNames:
    """Names of layout 2: completed instants name both of their times (InstantFileNameGeneratorV2, InstantGeneratorV2).

    ::

        <time>.<action>.requested   <time>.<action>.inflight   <time>_<completion time>.<action>

    The inflight file of a commit is ``<time>.inflight``. A completed compaction is a ``.commit``, a completed log
    compaction a ``.deltacommit``, a completed clustering a ``.replacecommit``. A completed file without a completion
    time is one of layout 1 that was moved here.

    Attributes:
        folder: where they are, relative to the table.
    """

    folder: str = join(METAFOLDER, "timeline")

    @property
    def hold_completion(self) -> bool:
        """Always."""
        return True

    def format(self, instant: "Instant") -> str:
        """File name of an instant."""
        if instant.state is not State.COMPLETED:
            return _pending_name(instant)
        times = instant.time if instant.completion_time is None else f"{instant.time}_{instant.completion_time}"
        return f"{times}.{COMPLETED_AS.get(instant.action, instant.action).value}"

    def parse(self, file_name: str) -> "Instant | None":
        """The instant that a file name stands for, or None when it is none."""
        return _parse_two_times(file_name, self)


_NAMES_KEPT = 4_096  # a timeline is listed several times a batch, and nearly all of its names are the same
_ONE_TIME = re.compile(r"^(\d{14,})\.([a-z]+)(?:\.(requested|inflight))?$")
_TWO_TIMES = re.compile(r"^(\d{14,})(?:_(\d{14,}))?\.([a-z]+)(?:\.(requested|inflight))?$")
_ACTIONS = {action.value: action for action in Action}
REQUEST_TIME_NAMES = RequestTimeNames()


@lru_cache(_NAMES_KEPT)
def _parse_one_time(file_name: str) -> "Instant | None":
    match = _ONE_TIME.match(file_name)
    if match is None:
        return None
    time, action, state = match.groups()
    if action == "inflight":
        return Instant(time, Action.COMMIT, State.INFLIGHT)
    if action not in _ACTIONS or action == Action.CLUSTERING.value:
        return None
    return Instant(time, _ACTIONS[action], State(state.upper()) if state else State.COMPLETED)


@lru_cache(_NAMES_KEPT)
def _parse_two_times(file_name: str, names: CompletionTimeNames) -> "Instant | None":
    match = _TWO_TIMES.match(file_name)
    if match is None:
        return None
    time, completed_at, action, state = match.groups()
    if action == "inflight" and not (state or completed_at):
        return Instant(time, Action.COMMIT, State.INFLIGHT, names=names)
    if action not in _ACTIONS or (state and completed_at):
        return None
    found = State(state.upper()) if state else State.COMPLETED
    return Instant(time, _ACTIONS[action], found, completed_at, names=names)


def _pending_name(instant: "Instant") -> str:
    if instant.state is State.INFLIGHT and instant.action is Action.COMMIT:
        return f"{instant.time}.inflight"
    return f"{instant.time}.{instant.action.value}.{instant.state.value.lower()}"


@dataclass(frozen=True, order=True, slots=True)
class Instant:
    """One instant in one state. Orders by time, then action, then state.

    Attributes:
        time: when it was requested.
        action: what it does.
        state: how far it has come.
        completion_time: when it was completed, where the layout's names say so; else None.
        names: how its files are named.
    """

    time: str
    action: Action
    state: State
    completion_time: str | None = field(default=None, compare=False)
    names: InstantNames = field(default=REQUEST_TIME_NAMES, compare=False, repr=False)

    @property
    def is_completed(self) -> bool:
        """Whether what it did is visible."""
        return self.state is State.COMPLETED

    @property
    def file_name(self) -> str:
        """The name of its file."""
        return self.names.format(self)

    @property
    def path(self) -> str:
        """Path of its file, relative to the table."""
        return join(self.names.folder, self.file_name)

    def at(self, state: State) -> "Instant":
        """The file of this instant in another state, which may or may not be there."""
        return replace(self, state=state, completion_time=None)

    def to(self, state: State, completion_time: str | None = None) -> "Instant":
        """The same instant, moved to another state.

        Args:
            state: the new one.
            completion_time: of a completed instant, where the layout's names hold it.

        Raises:
            BrokenInvariantError: when there is no such transition.
        """
        check_transition(self.state, state)
        action = COMPLETED_AS.get(self.action, self.action) if state is State.COMPLETED else self.action
        return replace(self, action=action, state=state, completion_time=completion_time)


def check_transition(before: State | None, after: State | None) -> None:
    """Refuses a move that is not in the table.

    Raises:
        BrokenInvariantError: names both states.
    """
    if (before, after) not in ALLOWED_TRANSITIONS:
        raise BrokenInvariantError(f"an instant cannot go from {before} to {after}")


def just_after(time: str) -> str:
    """A bound that sorts behind an instant time and before every later one. It need not be a moment: it is compared.

    Args:
        time: 14 or 17 digits.
    """
    return f"{int(f'{time:0<17}') + 1:017d}"
