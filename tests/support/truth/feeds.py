"""What a change feed is to show: two snapshots are compared, row by row (pure)."""

from itertools import pairwise

from .cases import COMMIT, values_of
from .conditions import holds
from .kinds import KINDS, spell, widened

OPERATION, INSTANT, BEFORE = "_change_operation", "_change_instant", "_change_before"


def feed_of(model, question, meaning):
    """The rows of a feed, sorted: step where each commit is shown, operation, spelled values after, and before."""
    end = question.until if question.until is not None else max(model.states)
    kinds = model.states[end].kinds
    names = question.columns if question.columns is not None else tuple(kinds)
    writes = [number for number in sorted(model.states) if (question.since or 0) < number <= end]
    steps = [question.since or 0, *(writes if question.feed.get("each_commit") else [end])]
    made = []
    for since, until in pairwise(steps):
        old, new = (_rows(model, number, kinds, question) for number in (since, until))
        for name in dict.fromkeys([*old, *new]):
            pair = _wanted(old.get(name), question, kinds, meaning), _wanted(new.get(name), question, kinds, meaning)
            compared = tuple(kinds) if question.feed.get("unchanged", True) else names
            if _is_change(*pair, since, compared, kinds, by_value=compared is names):
                step = until if question.feed.get("each_commit") else None
                made.append((step, *_change(*pair, names, kinds)))
    shown = [row for row in made if question.feed.get("deletes", True) or row[1] != "d"]
    return sorted(shown if question.feed.get("before") else [row[:3] for row in shown], key=repr)


def spelled_feed(rows, question, names, kinds, steps):
    """The rows that a reader gave, as `feed_of` has them.

    Args:
        steps: instant time -> number of the step.
    """
    known = steps if question.feed.get("each_commit") else {}
    return sorted((_spelled_change(row, names, kinds, known) for row in rows), key=repr)


def _rows(model, number, kinds, question):
    """Rows of a snapshot by what identifies them, with the columns at the end of the range."""
    shape, state = model.shape, model.states.get(number)
    names = shape.keys + shape.paths if question.feed.get("moves") == "delete_insert" else shape.keys
    found = {}
    for row in state.rows if state is not None else ():
        values = {name: widened(row.get(name), kind) for name, kind in kinds.items()}
        found[values_of(row, names)] = {**values, COMMIT: row[COMMIT]}
    return found


def _wanted(row, question, kinds, meaning):
    return row if row is not None and holds(question.where, row, kinds, meaning) else None


def _is_change(old, new, since, compared, kinds, *, by_value):
    if old is None or new is None:
        return old is not new
    return _spelled(old, compared, kinds) != _spelled(new, compared, kinds) or (not by_value and new[COMMIT] > since)


def _change(old, new, names, kinds):
    operation = "i" if old is None else "d" if new is None else "u"
    before = None if old is None else _spelled(old, names, kinds)
    return operation, before if new is None else _spelled(new, names, kinds), before


def _spelled(row, names, kinds):
    return tuple(spell(row[name], KINDS[kinds[name]].type) for name in names)


def _spelled_change(row, names, kinds, steps):
    change = steps.get(row[INSTANT]), row[OPERATION], _spelled(row, names, kinds)
    if BEFORE not in row:
        return change
    before = row[BEFORE]
    return *change, None if before is None else _spelled(before, names, kinds)
