"""Calls that wait for a store, several at once."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, overload

from table import threads
from table.storage.interface import Storage

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
One = TypeVar("One")
Two = TypeVar("Two")
Three = TypeVar("Three")
Four = TypeVar("Four")


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


@overload
def together(storage: Storage, one: Callable[[], One], two: Callable[[], Two], /) -> tuple[One, Two]: ...


@overload
def together(
    storage: Storage, one: Callable[[], One], two: Callable[[], Two], three: Callable[[], Three], /
) -> tuple[One, Two, Three]: ...


@overload
def together(
    storage: Storage,
    one: Callable[[], One],
    two: Callable[[], Two],
    three: Callable[[], Three],
    four: Callable[[], Four],
    /,
) -> tuple[One, Two, Three, Four]: ...


def together(storage: Storage, *calls: Callable[[], Any]) -> tuple[Any, ...]:
    """Makes different calls that need no order among them: at the same time, if each waits for a request.

    Where they wait for no network, each call is made after the one before it, and none after one that fails.

    Args:
        storage: what is waited for.
        calls: in the order in which they would be made one after another.

    Returns:
        What they return, in their order.

    Raises:
        Exception: the error of the first call, in their order, that failed; the others have ended, too.
    """
    if storage.calls_at_once == 1:
        return tuple(call() for call in calls)
    return tuple(threads.run_together(calls))
