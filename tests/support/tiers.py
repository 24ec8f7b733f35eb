"""Which cases of a test run in `make test`, and how many examples; the others run in `make test-all` only."""

from collections import defaultdict
from itertools import combinations

import pytest
from costs import BUDGET_S, function_of, load_costs
from hypothesis import settings

# of the examples that `make test-all` draws, one in so many is drawn in `make test`, but never less than a few
_SHARE, _FEW = 4, 10
EVERYTHING = "not places"  # what `make test-all` selects
_is_thorough = True


def set_pace(expression):
    """Says how many examples are drawn from now on.

    Args:
        expression: which marks are selected, as pytest's `-m` has it. Where slow tests run, all examples are drawn.
    """
    global _is_thorough
    _is_thorough = "slow" in expression.replace("not slow", "") or expression in ("", EVERYTHING)
    settings.register_profile("pace", max_examples=examples(100))
    settings.load_profile("pace")


def examples(count):
    """How many examples hypothesis draws.

    Args:
        count: how many in `make test-all`.
    """
    return count if _is_thorough else min(count, max(_FEW, count // _SHARE))


def one_in(step):
    """The step between the places at which a test tries something: 1 in `make test-all`."""
    return 1 if _is_thorough else step


def quick(count, cases):
    """The first cases of a test are quick, the others are slow.

    Args:
        count: how many are quick.
        cases: values of one parameter, or a tuple of values for several.
    """
    cases = list(cases)
    return [*cases[:count], *(slow(case) for case in cases[count:])]


def slow(case):
    """A case that `make test-all` runs."""
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.slow)


def mark_beyond_pairs(items):
    """Marks as slow what a product of three or more parameters has beyond each pair of their values.

    What was lost once came from two features that met.

    Args:
        items: collected tests, in their order.
    """
    cases = defaultdict(list)
    for item in items:
        values = _values_of(item)
        if len(values) > 2 and not item.get_closest_marker("slow"):
            cases[item.function].append((item, set(combinations(values, 2))))
    for found in cases.values():
        open_pairs = set().union(*(pairs for _, pairs in found))
        while open_pairs:  # the case with most pairs that none has yet; of equal ones the first
            chosen = max(found, key=lambda case: len(case[1] & open_pairs))
            open_pairs -= chosen[1]
            found.remove(chosen)
        for item, _ in found:
            item.add_marker(pytest.mark.slow)


def mark_beyond_budget(items):
    """Marks as slow what a function has beyond its budget: the first case stays, then the last, then the others.

    Args:
        items: collected tests, in their order.
    """
    costs, cases = load_costs(), defaultdict(list)
    for item in items:
        if not item.get_closest_marker("slow"):
            cases[function_of(item.nodeid)].append(item)
    for name in cases.keys() & costs.keys():
        first, *others = cases[name]
        for item in [first, *others[-1:], *others[:-1]][max(1, int(BUDGET_S / costs[name])) :]:
            item.add_marker(pytest.mark.slow)


def _values_of(item):
    """A test's value of each parameter. Parameters that are given together, case by case, are one."""
    given = getattr(getattr(item, "callspec", None), "params", {})
    together = [mark.args[0] for mark in item.iter_markers("parametrize")]
    names = [name.replace(" ", "").split(",") if isinstance(name, str) else list(name) for name in together]
    alone = [[name] for name in given if not any(name in group for group in names)]
    return [(tuple(group), tuple(id(given[name]) for name in group)) for group in sorted([*names, *alone])]
