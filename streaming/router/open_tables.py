"""The tables of a router whose writers are kept from batch to batch: a thread, a lease and a cache each."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from streaming.router.routed_table import RoutedTable
from table import clock, threads


class OpenTables:
    """Writers by table, the one that wrote last at the end. Several threads may use it.

    Args:
        make: makes the writer of a table.
        most: how many are kept. More are open only while a batch writes more tables at the same time.
        idle_s: after so many seconds without rows a writer is stopped.
    """

    def __init__(self, make: Callable[[str], RoutedTable], most: int, idle_s: float) -> None:
        self._make, self._most, self._idle_s = make, most, idle_s
        self._open: OrderedDict[str, RoutedTable] = OrderedDict()
        self._last_s: dict[str, float] = {}
        self._in_use: set[str] = set()
        self._lock = threads.make_lock()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def is_busy(self) -> bool:
        """Whether something runs for one of them, such as services."""
        with self._lock:
            return any(table.is_busy for table in self._open.values())

    @contextmanager
    def use(self, name: str) -> Iterator[RoutedTable]:
        """The writer of a table, which is not stopped meanwhile."""
        with self._lock:
            if name not in self._open:
                self._open[name] = self._make(name)
            self._open.move_to_end(name)
            self._in_use.add(name)
            table = self._open[name]
            leaving = self._take_out(lambda _: len(self._open) > self._most)
        _stop(leaving)
        try:
            yield table
        finally:
            with self._lock:
                self._in_use.discard(name)
                self._last_s[name] = clock.monotonic_s()

    def close_idle(self) -> None:
        """Stops the writers that have had no rows for long, unless their services run."""
        now_s = clock.monotonic_s()
        with self._lock:
            leaving = self._take_out(
                lambda name: now_s - self._last_s.get(name, now_s) > self._idle_s and not self._open[name].is_busy
            )
        _stop(leaving)

    def close(self) -> None:
        """Stops all writers, and waits for their services."""
        with self._lock:
            leaving = self._take_out(lambda _: True)
        _stop(leaving)

    def _take_out(self, is_leaving: Callable[[str], bool]) -> list[RoutedTable]:
        found = []
        for name in list(self._open):
            if name not in self._in_use and is_leaving(name):
                found.append(self._open.pop(name))
                self._last_s.pop(name, None)
        return found


def _stop(tables: list[RoutedTable]) -> None:
    for table in tables:
        table.stop()
