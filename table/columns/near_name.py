"""The name that somebody may have meant (pure)."""

import difflib
from collections.abc import Iterable


def find_near_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that differs from `name` in upper and lower case only, else the closest one, else None."""
    names = list(known)
    same = [each for each in names if each.lower() == name.strip().lower()]
    near = same or difflib.get_close_matches(name, names, 1, 0.6)
    return near[0] if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean id?`` for a message, or "" where no known name is near."""
    near = find_near_name(name, known)
    return "" if near is None else f"; did you mean {near}?"
