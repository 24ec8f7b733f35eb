"""The checker of histories: five that cannot be explained, some that can, and small ones against all permutations."""

import math
from itertools import permutations

import pytest
from history import Read, Write, apply, explain
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

FIRST = {"k": (0, "first")}
NEVER = math.inf


def write(process, began, ended, order, refused=False, **rows):
    return Write(process, began, ended, {key: (order, value) for key, value in rows.items()}, refused)


def read(began, ended, process="reader", **rows):
    return Read(process, began, ended, tuple(rows.items()))


EXPLAINED = {
    "a write is seen while it runs, or is not seen": [
        *(write("A", 1, 9, 1, k="a1"), read(2, 3, k="first"), read(4, 5, k="a1"), read(6, 7, k="a1")),
    ],
    "an unknown outcome, visible much later": [
        *(write("A", 1, NEVER, 1, k="a1"), read(2, 3, k="first"), write("A", 4, 5, 2, l="a2")),
        *(read(6, 7, k="first", l="a2"), read(8, 9, k="a1", l="a2")),
    ],
    "an unknown outcome, never visible": [write("A", 1, NEVER, 1, k="a1"), read(7, 8, k="first")],
    "a refused write has no effect": [write("A", 1, 2, 1, refused=True, k="a1"), read(3, 4, k="first")],
    "the greater ordering value stays": [
        *(write("A", 1, 2, 5, k="a1"), write("B", 3, 4, 3, k="b1"), read(5, 6, k="a1")),
    ],
    "a delete": [write("A", 1, 2, 1, k=None), read(3, 4)],
}
UNEXPLAINED = {
    "an acknowledged write is lost": (
        [write("A", 1, 2, 1, k="a1"), read(3, 4, k="first")],
        "shows k=first, not a1",
    ),
    "a refused write is seen": (
        [write("A", 1, 2, 1, refused=True, k="a1"), read(3, 4, k="a1")],
        "rows of a write that was refused",
    ),
    "half a write is seen": (
        [write("A", 1, 9, 1, k="a1", l="a1"), read(2, 3, k="a1")],
        "no order explains it",
    ),
    "a read goes back": (
        [write("A", 1, 9, 1, k="a1"), read(2, 3, k="a1"), read(4, 5, process="another", k="first")],
        "no order explains it",
    ),
    "two readers see two writes in opposite orders": (
        [
            *(write("A", 1, 9, 1, a="a1"), write("B", 1, 9, 2, b="b1")),
            *(read(2, 4, process="one", k="first", a="a1"), read(2, 4, process="other", k="first", b="b1")),
        ],
        "no order explains it",
    ),
    "a row is there twice": ([Read("reader", 1, 2, (("k", "first"), ("k", "first")))], "keys twice"),
    "a deleted row comes back": (
        [write("A", 1, 2, 1, k=None), read(3, 4), read(5, 6, k="first")],
        "shows k=first",
    ),
    "a row that no write made": ([read(1, 2, k="first", x="x")], "shows x=x"),
    "an unknown outcome takes effect and goes": (
        [write("A", 1, NEVER, 1, k="a1"), read(2, 3, k="a1"), read(4, 5, k="first")],
        "no order explains it",
    ),
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_history_that_has_an_order(name):
    assert explain(EXPLAINED[name], FIRST) is None


@pytest.mark.parametrize("name", UNEXPLAINED)
def test_a_history_that_has_none(name):
    calls, said = UNEXPLAINED[name]
    assert said in explain(calls, FIRST)


def test_a_search_without_end_says_so():
    unknown = [write("A", 1, NEVER, number, **{f"u{number}": "u"}) for number in range(12)]
    assert "no order was found in 50 steps" in explain([*unknown, read(2, 3, k="other")], FIRST, most_steps=50)


def is_explained_by(order, first):
    """Whether an order of calls, written down as the definition has it, explains a history."""
    state = dict(first)
    for position, call in enumerate(order):
        if any(later.ended < call.began for later in order[position + 1 :]):
            return False
        if isinstance(call, Write):
            state = apply(call.rows, state)
        elif dict(call.rows) != {key: value for key, (_, value) in state.items() if value is not None}:
            return False
    return True


def has_order(calls, first):
    """Every choice of unknown writes, in every order."""
    calls = [call for call in calls if not (isinstance(call, Write) and call.refused)]
    known = [call for call in calls if call.ended < NEVER]
    unknown = [call for call in calls if call.ended == NEVER]
    for chosen in range(1 << len(unknown)):
        taken = known + [call for index, call in enumerate(unknown) if chosen >> index & 1]
        if any(is_explained_by(order, first) for order in permutations(taken)):
            return True
    return False


@st.composite
def histories(draw):
    """Up to five calls on two keys. Each write has a value of its own."""
    calls, values = [], ["first"]
    for number in range(draw(st.integers(1, 3))):
        began = draw(st.integers(0, 8))
        keys = draw(st.sets(st.sampled_from("kl"), min_size=1))
        value = draw(st.sampled_from([f"w{number}", f"w{number}", None]))
        ended = draw(st.sampled_from([began + 1, began + 3, NEVER]))
        calls.append(Write(f"W{number}", began, ended, dict.fromkeys(sorted(keys), (draw(st.integers(1, 3)), value))))
        values.append(f"w{number}")
    for number in range(draw(st.integers(1, 2))):
        began = draw(st.integers(0, 9))
        rows = {key: draw(st.sampled_from([*values, None])) for key in "kl"}
        shown = tuple((key, value) for key, value in rows.items() if value is not None)
        calls.append(Read(f"R{number}", began, began + draw(st.integers(1, 4)), shown))
    return calls


@given(histories())
@settings(max_examples=examples(600), deadline=None)
def test_the_search_agrees_with_all_permutations(calls):
    assert (explain(calls, FIRST) is None) == has_order(calls, FIRST)
