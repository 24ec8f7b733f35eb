"""Calls with many items are made in parts, several parts at once."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from table.threads import make_pool

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
CONNECTIONS = 4


def act_in_parts(
    items: Iterable[ItemT], most: int, act: Callable[[Sequence[ItemT]], ResultT], connections: int = CONNECTIONS
) -> list[ResultT]:
    """Acts on items in parts.

    Args:
        items: all items.
        most: most items of a part.
        act: is called with each part, in several threads if there are several parts.
        connections: number of threads.

    Returns:
        The result of each call, in order. An error of a call is raised when all calls have ended.
    """
    every = list(items)
    parts = [every[start : start + most] for start in range(0, len(every), most)]
    if len(parts) <= 1:
        return [act(part) for part in parts]
    with make_pool(min(connections, len(parts)), "hudistream-catalog") as pool:
        return list(pool.map(act, parts))
