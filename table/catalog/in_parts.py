"""Calls that carry many things are made in parts, several at once."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from table.threads import make_pool

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
CONNECTIONS = 4


def act_in_parts(
    items: Iterable[ItemT], most: int, act: Callable[[Sequence[ItemT]], ResultT], connections: int = CONNECTIONS
) -> list[ResultT]:
    """Acts on parts of what is given.

    Args:
        items: all there is.
        most: items of a part.
        act: is called with each part, in several threads if there are several parts.
        connections: threads.

    Returns:
        What each call returned, in order. An error of one of them is raised when all have ended.
    """
    every = list(items)
    parts = [every[start : start + most] for start in range(0, len(every), most)]
    if len(parts) <= 1:
        return [act(part) for part in parts]
    with make_pool(min(connections, len(parts)), "hudistream-catalog") as pool:
        return list(pool.map(act, parts))
