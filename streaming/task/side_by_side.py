"""Files of one task that wait for the store at the same time.

On an object store a file costs ten requests that follow one another, and the processor has nothing to do meanwhile. So
small files are written side by side. The order of the steps of one file is kept. On a disk, and for large files, one is
written after another, so that memory stays bounded.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Generic, TypeVar

from table import threads

Written = TypeVar("Written")

MOST_FILES = 16
MOST_BYTES = 32 * 1024 * 1024  # of rows, and of files that are rewritten, at the same time


class SideBySide(Generic[Written]):
    """Writes files, and reports each in the order in which they were given.

    Args:
        calls_at_once: of the store; with 1, files are written in the calling thread.
        memory_bytes: most bytes that a task holds.
        report: takes what a file's work returned. It is called in the thread of the task.
    """

    def __init__(self, calls_at_once: int, memory_bytes: int, report: Callable[[Written], None]) -> None:
        self._most = min(MOST_FILES, calls_at_once)
        self.most_bytes = min(MOST_BYTES, memory_bytes)
        self._report = report
        self._pool: Executor | None = None
        self._running: deque[tuple[Future[Written], int]] = deque()
        self._held_bytes = 0

    @property
    def is_one_by_one(self) -> bool:
        """Whether nothing is gained by several files at a time."""
        return self._most == 1

    def write(self, size_bytes: int, work: Callable[[], Written]) -> None:
        """Writes a file: at once, or beside the others.

        Args:
            size_bytes: of its rows, and of the file that it continues.
            work: writes it, from its marker to its place.

        Raises:
            HudiError: this file, or one before it, was not written.
        """
        if self.is_one_by_one or size_bytes > self.most_bytes:
            self.wait()
            self._report(work())
            return
        while self._running and (len(self._running) >= self._most or self._held_bytes + size_bytes > self.most_bytes):
            self._take()
        if self._pool is None:
            self._pool = threads.make_pool(self._most, "hudistream-files")
        self._running.append((self._pool.submit(work), size_bytes))
        self._held_bytes += size_bytes

    def wait(self) -> None:
        """Returns when all files are written.

        Raises:
            HudiError: one of them is not.
        """
        while self._running:
            self._take()
        self._close()

    def abandon(self) -> None:
        """After a failure, waits until no file is being written any more. What was written is found by its marker."""
        for future, _ in self._running:
            future.cancel()
        for future, _ in self._running:
            with suppress(BaseException):
                future.result()
        self._running.clear()
        self._close()

    def _take(self) -> None:
        future, size_bytes = self._running.popleft()
        self._held_bytes -= size_bytes
        self._report(future.result())

    def _close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()
