"""What happened to a table's completed writes between two looks at its timeline (pure).

Whoever remembers something of a table asks here whether it still holds, and what came since::

    request times   1  2  3  4  5  6  7  8
    before          a  b  c     e  f
    now                   c  d     f  g  h
                    archived: a, b    late: d    undone: e    came: d, g, h

Archival takes the oldest first. So a write that is gone although an older one is still there was undone. And as long
as the newest write of the earlier look is there, no later one can have come and been archived in between.

The same holds for other actions that archival retires oldest first, such as cleans.
"""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """The change from one look to the next, by request times.

    Attributes:
        came: completed now, and not at the earlier look.
        late: those of `came` that were requested before the newest write of the earlier look.
        undone: completed then, and gone although archival cannot have taken them.
        archived: completed then, gone now, and older than all that is there.
        is_gapless: whether the newest write of the earlier look is still there. Else others may have come and gone
            unseen. False if there was none.
    """

    came: frozenset[str]
    late: frozenset[str]
    undone: frozenset[str]
    archived: frozenset[str]
    is_gapless: bool

    @staticmethod
    def between(before: Collection[str], now: Collection[str]) -> "Change":
        """The change between two looks.

        Args:
            before: request times of the completed writes at the earlier look.
            now: those of the later look.
        """
        then, there = frozenset(before), frozenset(now)
        came, gone = there - then, then - there
        newest, first = max(then, default=""), min(there, default="")
        archived = frozenset(time for time in gone if time < first)
        late = frozenset(time for time in came if time < newest)
        return Change(came, late, gone - archived, archived, newest in there)

    @property
    def is_none(self) -> bool:
        """Whether both looks show the same writes."""
        return not (self.came or self.undone or self.archived)


def came_and_went(pending: Collection[str], now: Collection[str]) -> frozenset[str]:
    """Writes that may have been completed and archived since they were seen pending.

    Args:
        pending: their request times.
        now: request times of the completed writes.
    """
    there = frozenset(now)
    first = min(there, default="")
    return frozenset(time for time in pending if time not in there and time < first)
