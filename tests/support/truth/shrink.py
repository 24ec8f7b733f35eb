"""Makes a case smaller for as long as it shows the same difference."""

import time
from dataclasses import replace

from .cases import FIRST, GONE, IDENTITY, KEY_2, ORDER, PATH, PATH_2


def shrink(case, judge, kind, seconds=60):
    """The smallest case that was found.

    Args:
        case: shows the difference.
        judge: runs cases.
        kind: `Difference.kind` of the difference.
        seconds: most time that it takes.
    """
    until = time.time() + seconds

    def shows(smaller):
        try:
            found = judge.run(smaller)
        except Exception:  # a part that the rest needs was taken away
            return False
        return any(one.kind == kind for one in found.differences)

    changed = True
    while changed and time.time() < until:
        changed = False
        for ways in WAYS:
            smaller = True
            while smaller is not None and time.time() < until:
                smaller = next((one for one in ways(case) if time.time() < until and shows(one)), None)
                case, changed = (case, changed) if smaller is None else (smaller, True)
    return case


def _fewer_questions(case):
    return (replace(case, questions=part) for part in _parts(case.questions))


def _fewer_steps(case):
    return (replace(case, steps=part) for part in _parts(case.steps))


def _fewer_rows(case):
    for number, step in enumerate(case.steps):
        yield from (_with_step(case, number, replace(step, rows=rows)) for rows in _parts(step.rows) if rows)


def _fewer_columns(case):
    return (_without_column(case, name) for name in _columns(case) if name not in (*IDENTITY, ORDER))


def _nulls(case):
    """Without values, all of a column in a batch before one by one."""
    for number, step in enumerate(case.steps):
        for name in [name for name in step.kinds if name not in (*IDENTITY, ORDER)]:
            with_value = [at for at, row in enumerate(step.rows) if row.get(name) is not None]
            for chosen in [with_value, *([at] for at in with_value)] if with_value else []:
                rows = tuple({**row, name: None} if at in chosen else row for at, row in enumerate(step.rows))
                yield _with_step(case, number, replace(step, rows=rows))


def _parts(items):
    """All but one half, then all but one."""
    if len(items) > 3:
        middle = len(items) // 2
        yield from (items[:middle], items[middle:])
    yield from ((*items[:at], *items[at + 1 :]) for at in reversed(range(len(items))))


def _with_step(case, number, step):
    return replace(case, steps=(*case.steps[:number], step, *case.steps[number + 1 :]))


def _columns(case):
    return list(dict.fromkeys([*case.shape.kinds, *(name for step in case.steps for name in step.kinds)]))


def _without_column(case, gone):
    def less(named):
        return {name: value for name, value in named.items() if name != gone}

    steps = tuple(
        replace(step, rows=tuple(map(less, step.rows)), kinds=less(step.kinds))
        for step in case.steps
        if gone not in {term[0].split(".")[0] for group in step.where or () for term in group}
    )
    questions = tuple(
        replace(asked, columns=(asked.columns and tuple(name for name in asked.columns if name != gone)) or None)
        for asked in case.questions
        if gone not in asked.asked
    )
    return replace(case, shape=replace(case.shape, kinds=less(case.shape.kinds)), steps=steps, questions=questions)


def _simpler_shapes(case):
    shape = case.shape
    if any(step.by != FIRST for step in case.steps):
        yield replace(case, steps=tuple(replace(step, by=FIRST) for step in case.steps))
    for key in shape.options:
        kept = {name: value for name, value in shape.options.items() if name != key}
        yield replace(case, shape=replace(shape, options=kept))
    if shape.index != "BLOOM":
        yield replace(case, shape=replace(shape, index="BLOOM"))
    if shape.version != 6:
        yield replace(case, shape=replace(shape, version=6))
    if shape.merge_on_read:
        yield replace(case, shape=replace(shape, merge_on_read=False))
    if KEY_2 in shape.kinds:
        keyed = (replace(asked, keys=asked.keys and tuple(key[:1] for key in asked.keys)) for asked in case.questions)
        yield _without_column(replace(case, questions=tuple(keyed)), KEY_2)
    if shape.partitioned:
        yield _without_column(case, PATH_2 if PATH_2 in shape.kinds else PATH)
    if ORDER in shape.kinds and shape.merging == "event":
        yield _without_column(case, ORDER)
    if GONE in shape.kinds:
        yield _without_column(case, GONE)


def _simpler_conditions(case):
    for number, asked in enumerate(case.questions):
        before, after = case.questions[:number], case.questions[number + 1 :]
        if asked.columns is not None:
            yield replace(case, questions=(*before, replace(asked, columns=None), *after))
        for name in ("deletes", "before", "each_commit"):  # the others say what the model compares
            less = {key: value for key, value in (asked.feed or {}).items() if key != name}
            if less and less != asked.feed:
                yield replace(case, questions=(*before, replace(asked, feed=less), *after))
        for where in _simpler(asked.where):
            yield replace(case, questions=(*before, replace(asked, where=where), *after))
    for number, step in enumerate(case.steps):
        for where in _simpler(step.where):
            if where is not None:
                yield _with_step(case, number, replace(step, where=where))


def _simpler(where):
    if where is None:
        return
    if len(where) > 1:
        yield from ([*where[:at], *where[at + 1 :]] for at in range(len(where)))
    for at, group in enumerate(where):
        if len(group) > 1:
            for inner in range(len(group)):
                yield [*where[:at], [*group[:inner], *group[inner + 1 :]], *where[at + 1 :]]
        for inner, (name, operator, value) in enumerate(group):
            if isinstance(value, list) and value:
                for gone in range(len(value)):
                    term = (name, operator, [*value[:gone], *value[gone + 1 :]])
                    yield [*where[:at], [*group[:inner], term, *group[inner + 1 :]], *where[at + 1 :]]


WAYS = (_fewer_questions, _fewer_steps, _fewer_rows, _fewer_columns, _simpler_shapes, _simpler_conditions, _nulls)
