"""Whether one order of writes and reads explains everything that the processes were told (pure).

A history is what clients saw from outside: when a call began, when it returned, and what it said. It is *explained* by
an order of all calls in which

- no call comes before one that had returned before it began,
- each acknowledged write takes effect whole, each refused one has no effect, and one whose outcome is unknown takes
  effect once or never,
- each read shows exactly the rows of that moment.

This is linearizability (Herlihy and Wing, 1990), searched for as Wing and Gong and Lowe do: depth first, and a
configuration (which calls are done, which rows they left) is entered once.

Nothing here knows the table format, the sink or the worlds of the harness.
"""

import math
from collections import Counter
from dataclasses import dataclass

MOST_STEPS = 200_000


@dataclass(frozen=True)
class Write:
    """A write, all of whose rows become visible at once.

    Attributes:
        process: who called.
        began, ended: seconds of one clock; `ended` is infinite where the caller was never told.
        rows: key -> (ordering value, value), or (ordering value, None) where the key is deleted. The row with the
            greater ordering value stays, and at equal ones the newer write's.
        refused: whether the caller was told that nothing is visible.
    """

    process: str
    began: float
    ended: float
    rows: dict
    refused: bool = False


@dataclass(frozen=True)
class Read:
    """A snapshot. `rows`: (key, value) of each row, one that is there twice twice."""

    process: str
    began: float
    ended: float
    rows: tuple


def explain(calls, first=None, most_steps=MOST_STEPS):
    """Looks for an order that explains a history.

    Args:
        calls: `Write` and `Read` objects, in any order.
        first: key -> (ordering value, value) before all of them.
        most_steps: configurations that are tried.

    Returns:
        None where there is such an order, else the text of what cannot be explained.
    """
    refused = [call for call in calls if isinstance(call, Write) and call.refused]
    history = [call for call in calls if call not in refused]
    return _wrong_by_itself(history, refused) or _search(history, dict(first or {}), most_steps)


def _wrong_by_itself(history, refused):
    """What one read proves, whatever the order."""
    forbidden = {value: write for write in refused for _, value in write.rows.values() if value is not None}
    for read in history:
        if isinstance(read, Read):
            doubled = [key for key, count in Counter(key for key, _ in read.rows).items() if count > 1]
            if doubled:
                return f"{_name(read)} shows keys twice: {sorted(doubled)[:8]}"
            shown = [(key, value) for key, value in read.rows if value in forbidden]
            if shown:
                return f"{_name(read)} shows rows of a write that was refused: {shown[:8]}"
    return None


def _search(history, state, most_steps):
    calls = sorted(history, key=lambda call: (call.ended, call.began))
    shown = {index: dict(call.rows) for index, call in enumerate(calls) if isinstance(call, Read)}
    needed = sum(1 << index for index, call in enumerate(calls) if call.ended < math.inf)
    entered, deepest = set(), (-1, "")
    stack = [(0, state)]
    while stack:
        done, state = stack.pop()
        done, possible, stuck = _read_what_fits(calls, shown, done, state)
        if done & needed == needed:
            return None
        if stuck is not None and done.bit_count() > deepest[0]:
            deepest = done.bit_count(), stuck
        configuration = done, frozenset(state.items())
        if configuration in entered:
            continue
        entered.add(configuration)
        if len(entered) > most_steps:
            return f"no order was found in {most_steps} steps; the longest one ends where {deepest[1]}"
        # the last one that is pushed is tried first: the write that returned first
        stack += [(done | 1 << index, apply(calls[index].rows, state)) for index in reversed(possible)]
    return f"no order explains it; the longest one ends where {deepest[1]}"


def _read_what_fits(calls, shown, done, state):
    """Takes each read that may come now and shows the state: it changes nothing, so that no other order needs it later.

    Returns:
        (calls that are done, indexes of writes that may come next, text about the first read that does not fit).
    """
    visible = {key: value for key, (_, value) in state.items() if value is not None}
    while True:
        left = [index for index in range(len(calls)) if not done >> index & 1]
        until = min((calls[index].ended for index in left), default=math.inf)
        possible = [index for index in left if calls[index].began <= until]
        fits = [index for index in possible if shown.get(index) == visible]
        if not fits:
            break
        for index in fits:
            done |= 1 << index
    reads = [index for index in possible if index in shown]
    stuck = f"{_name(calls[reads[0]])} {_differ(shown[reads[0]], visible)}" if reads else "no read is left"
    return done, [index for index in possible if index not in shown], stuck


def apply(rows, state):
    """The state after a write. A deleted key keeps its ordering value: (ordering value, None)."""
    after = dict(state)
    for key, row in rows.items():
        if key not in after or after[key][0] <= row[0]:
            after[key] = row
    return after


def _name(call):
    return f"the read by {call.process} from {call.began:.3f} to {call.ended:.3f}"


def _differ(found, expected):
    gone = sorted(expected.keys() - found.keys())
    more = sorted(found.keys() - expected.keys())
    other = sorted(key for key in found.keys() & expected.keys() if found[key] != expected[key])
    said = [f"does not show {key}={expected[key]}" for key in gone[:4]] + [
        f"shows {key}={found[key]}" for key in more[:4]
    ]
    return "; ".join(said + [f"shows {key}={found[key]}, not {expected[key]}" for key in other[:4]])
