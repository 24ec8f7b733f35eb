"""Keeps what names of a timeline say while listings have them: a timeline is listed several times per batch."""

from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")

MOST = 40_000
"""Names of a generation: a savepoint that holds archival may leave three files for each of 10,000 instants."""
_SEEN_AGAIN = 8  # a generation ends when each of its names was asked for so often
_LEAST = 1_024


class KeptNames(Generic[Value]):
    """A cache that forgets the names that are no longer asked for.

    A name is forgotten when a whole generation has not asked for it. So the cache holds about the names of the present
    timelines, be they few or many, and does not fill up with those of archived instants.

    Args:
        parse: what a name says.
    """

    def __init__(self, parse: Callable[[str], Value]) -> None:
        self._parse = parse
        self._young: dict[str, Value] = {}
        self._old: dict[str, Value] = {}
        self._asked = 0

    def __call__(self, name: str) -> Value:
        """The value of a name."""
        self._asked += 1
        young = self._young
        if name in young:
            return young[name]
        if len(young) >= MOST or self._asked > max(_LEAST, _SEEN_AGAIN * len(young)):
            self._young, self._old, self._asked = {}, young, 0
        value = self._old[name] if name in self._old else self._parse(name)
        self._young[name] = value
        return value

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
