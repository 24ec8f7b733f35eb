"""Calls that wait for a store, several at once."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from table import threads
from table.storage.interface import Storage

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


def each_at_once(storage: Storage, ask: Callable[[Asked], Answer], asked: Iterable[Asked]) -> Iterator[Answer]:
    """Calls `ask` for each item and yields the answers in order. Calls run in parallel if each waits for a request.

    Args:
        storage: what is waited for; it says how many calls make sense at once.
        ask: what is done with an item.
        asked: the items.
    """
    if storage.calls_at_once == 1:
        yield from map(ask, asked)
        return
    with threads.make_pool(storage.calls_at_once, "hudistream-store") as pool:
        yield from pool.map(ask, asked)
