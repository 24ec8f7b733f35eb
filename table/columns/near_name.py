"""Finds the known name that a user probably meant (pure)."""

import difflib
from collections.abc import Iterable


def find_near_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that differs from `name` only in case, else the closest one, else None."""
    names = list(known)
    same = [each for each in names if each.lower() == name.strip().lower()]
    near = same or difflib.get_close_matches(name, names, 1, 0.6)
    return near[0] if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message, such as ``; did you mean id?``; "" if no known name is near."""
    near = find_near_name(name, known)
    return "" if near is None else f"; did you mean {near}?"
