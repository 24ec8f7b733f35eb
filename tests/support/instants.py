"""Instants of layout 1, by their times."""

from table.timeline.instant import Action, Instant, State


def completed(time: str, action: Action = Action.COMMIT) -> Instant:
    """A completed instant."""
    return Instant(time, action, State.COMPLETED)


def requested(time: str, action: Action = Action.COMMIT) -> Instant:
    """A requested instant."""
    return Instant(time, action, State.REQUESTED)


def inflight(time: str, action: Action = Action.COMMIT) -> Instant:
    """An inflight instant."""
    return Instant(time, action, State.INFLIGHT)
