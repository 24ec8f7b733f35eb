"""Instants: the actions on a table, and their states (pure).

The timeline's layout (`table.timeline.layout`) determines how the files of instants are named: it passes its
`InstantNames` to the instants that it parses. This module has the names of both layouts. Layout 1 is the default.
"""

import re
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Protocol

from table.errors import BrokenInvariantError
from table.storage.interface import METAFOLDER, join
from table.timeline.kept_names import KeptNames


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
    """The state of an instant."""

    REQUESTED = "REQUESTED"
    INFLIGHT = "INFLIGHT"
    COMPLETED = "COMPLETED"


STATE_ORDER = {State.REQUESTED: 0, State.INFLIGHT: 1, State.COMPLETED: 2}

# the action in the name of the completed file, where it differs from the action of the pending instant
COMPLETED_AS = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}

WRITE_ACTIONS = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
# actions whose instants can have an end record
DECIDED_ACTIONS = WRITE_ACTIONS | {
    Action.COMPACTION, Action.CLUSTERING, Action.ROLLBACK, Action.RESTORE, Action.CLEAN, Action.SAVEPOINT,
}  # fmt: skip

# the only transitions; None: the instant has no file
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
        """The folder of the instant files, relative to the table."""

    @property
    def hold_completion(self) -> bool:
        """Whether the name of a completed file contains the completion time."""

    def format(self, instant: "Instant") -> str:
        """File name of an instant, without the folder."""

    def parse(self, file_name: str) -> "Instant | None":
        """The instant that a file name stands for; None if it is not the name of an instant file."""


class RequestTimeNames:
    """Names of layout 1: they contain only the request time (InstantFileNameGeneratorV1, InstantGeneratorV1).

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
        """The instant that a file name stands for; None if it is not the name of an instant file."""
        return _KEPT_OF_ONE_TIME(file_name)


@dataclass(frozen=True, slots=True)
class CompletionTimeNames:
    """Names of layout 2: completed files have both times (InstantFileNameGeneratorV2, InstantGeneratorV2).

    ::

        <time>.<action>.requested   <time>.<action>.inflight   <time>_<completion time>.<action>

    The inflight file of a commit is ``<time>.inflight``. A completed compaction is a ``.commit``, a completed log
    compaction a ``.deltacommit``, a completed clustering a ``.replacecommit``. A completed file without a completion
    time was moved here from layout 1.

    Attributes:
        folder: the folder of the instant files, relative to the table.
    """

    folder: str = join(METAFOLDER, "timeline")

    @property
    def hold_completion(self) -> bool:
        """Always true."""
        return True

    def format(self, instant: "Instant") -> str:
        """File name of an instant."""
        if instant.state is not State.COMPLETED:
            return _pending_name(instant)
        times = instant.time if instant.completion_time is None else f"{instant.time}_{instant.completion_time}"
        return f"{times}.{COMPLETED_AS.get(instant.action, instant.action).value}"

    def parse(self, file_name: str) -> "Instant | None":
        """The instant that a file name stands for; None if it is not the name of an instant file."""
        kept = _KEPT_OF_TWO_TIMES.get(self.folder)
        if kept is None:
            kept = _KEPT_OF_TWO_TIMES.setdefault(self.folder, KeptNames(partial(_parse_two_times, self)))
        return kept(file_name)


_ONE_TIME = re.compile(r"^(\d{14,})\.([a-z]+)(?:\.(requested|inflight))?$")
_TWO_TIMES = re.compile(r"^(\d{14,})(?:_(\d{14,}))?\.([a-z]+)(?:\.(requested|inflight))?$")
_ACTIONS = {action.value: action for action in Action}
REQUEST_TIME_NAMES = RequestTimeNames()


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


def _parse_two_times(names: CompletionTimeNames, file_name: str) -> "Instant | None":
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


_KEPT_OF_ONE_TIME = KeptNames(_parse_one_time)
_KEPT_OF_TWO_TIMES: dict[str, KeptNames["Instant | None"]] = {}  # by the folder of the instants


def _pending_name(instant: "Instant") -> str:
    if instant.state is State.INFLIGHT and instant.action is Action.COMMIT:
        return f"{instant.time}.inflight"
    return f"{instant.time}.{instant.action.value}.{instant.state.value.lower()}"


@dataclass(frozen=True, order=True, slots=True)
class Instant:
    """One instant in one state. Orders by time, then action, then state.

    Attributes:
        time: request time.
        completion_time: None for a pending instant, and where the layout's file names do not contain it.
        names: how its files are named.
    """

    time: str
    action: Action
    state: State
    completion_time: str | None = field(default=None, compare=False)
    names: InstantNames = field(default=REQUEST_TIME_NAMES, compare=False, repr=False)

    @property
    def is_completed(self) -> bool:
        """Whether its changes are visible."""
        return self.state is State.COMPLETED

    @property
    def file_name(self) -> str:
        """Name of its file, without the folder."""
        return self.names.format(self)

    @property
    def path(self) -> str:
        """Path of its file, relative to the table."""
        return join(self.names.folder, self.file_name)

    def at(self, state: State) -> "Instant":
        """This instant in another state. Its file need not exist."""
        return replace(self, state=state, completion_time=None)

    def to(self, state: State, completion_time: str | None = None) -> "Instant":
        """The same instant, moved to another state.

        Args:
            state: the new state.
            completion_time: for a completed instant, if the layout's file names contain it.

        Raises:
            BrokenInvariantError: when there is no such transition.
        """
        check_transition(self.state, state)
        action = COMPLETED_AS.get(self.action, self.action) if state is State.COMPLETED else self.action
        return replace(self, action=action, state=state, completion_time=completion_time)


def check_transition(before: State | None, after: State | None) -> None:
    """Refuses a transition that is not in `ALLOWED_TRANSITIONS`.

    Raises:
        BrokenInvariantError: names both states.
    """
    if (before, after) not in ALLOWED_TRANSITIONS:
        raise BrokenInvariantError(f"an instant cannot go from {before} to {after}")


def just_after(time: str) -> str:
    """A bound that sorts after an instant time and before every later one. It need not be a valid time.

    Args:
        time: 14 or 17 digits.
    """
    return f"{int(f'{time:0<17}') + 1:017d}"
