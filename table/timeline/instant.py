"""Instants: what can happen to a table, in which state it is, and how that is spelled as a file name.

Layout version 1 (InstantFileNameGeneratorV1, InstantGeneratorV1). The names, all in ``.hoodie/``::

    <time>.<action>.requested   <time>.<action>.inflight   <time>.<action>

with three exceptions: the inflight file of a commit is ``<time>.inflight``, and a completed
compaction is a ``.commit``, a completed log compaction a ``.deltacommit``.
"""

import re
from dataclasses import dataclass
from enum import Enum

from table.errors import BrokenInvariantError


class Action(str, Enum):
    """What an instant does."""

    COMMIT = "commit"
    DELTA_COMMIT = "deltacommit"
    REPLACE_COMMIT = "replacecommit"
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
COMPLETED_AS = {Action.COMPACTION: Action.COMMIT, Action.LOG_COMPACTION: Action.DELTA_COMMIT}

WRITE_ACTIONS = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
DECIDED_ACTIONS = WRITE_ACTIONS | {Action.ROLLBACK, Action.RESTORE}  # those that can have an end record

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

_FILE_NAME = re.compile(r"^(\d{14,})\.(?:([a-z]+)(?:\.(requested|inflight))?|(inflight))$")
_ACTIONS = {action.value: action for action in Action}


@dataclass(frozen=True, order=True, slots=True)
class Instant:
    """One instant in one state. Orders by time, then action, then state."""

    time: str
    action: Action
    state: State

    @property
    def is_completed(self) -> bool:
        """Whether what it did is visible."""
        return self.state is State.COMPLETED

    @property
    def file_name(self) -> str:
        """The name of its file in ``.hoodie/``."""
        return format_instant(self)

    def to(self, state: State) -> "Instant":
        """The same instant in another state.

        Raises:
            BrokenInvariantError: when there is no such transition.
        """
        check_transition(self.state, state)
        action = COMPLETED_AS.get(self.action, self.action) if state is State.COMPLETED else self.action
        return Instant(self.time, action, state)


def check_transition(before: State | None, after: State | None) -> None:
    """Refuses a move that is not in the table.

    Raises:
        BrokenInvariantError: names both states.
    """
    if (before, after) not in ALLOWED_TRANSITIONS:
        raise BrokenInvariantError(f"an instant cannot go from {before} to {after}")


def format_instant(instant: Instant) -> str:
    """File name of an instant."""
    if instant.state is State.COMPLETED:
        return f"{instant.time}.{COMPLETED_AS.get(instant.action, instant.action).value}"
    if instant.state is State.INFLIGHT and instant.action is Action.COMMIT:
        return f"{instant.time}.inflight"
    return f"{instant.time}.{instant.action.value}.{instant.state.value.lower()}"


def parse_instant(file_name: str) -> Instant | None:
    """The instant that a file name stands for, or None when it is none."""
    match = _FILE_NAME.match(file_name)
    if match is None:
        return None
    time, action, state, bare_inflight = match.groups()
    if bare_inflight:
        return Instant(time, Action.COMMIT, State.INFLIGHT)
    if action == "inflight":
        return Instant(time, Action.COMMIT, State.INFLIGHT)
    if action not in _ACTIONS:
        return None
    return Instant(time, _ACTIONS[action], State(state.upper()) if state else State.COMPLETED)
