"""Flushes files to the disk while their task writes the next files."""

from concurrent.futures import Executor, Future

from table import threads
from table.storage.interface import Storage

_WORTH_A_THREAD_BYTES = 1024 * 1024


class Flushes:
    """The published files of one attempt: every file is on the disk before the task reports any of them.

    A flush of a large file takes milliseconds, in which the processor is idle. So one thread waits for the disk. A
    flush of a small file takes less time than a call in a thread.
    """

    def __init__(self) -> None:
        self._pool: Executor | None = None
        self._running: list[Future[None]] = []

    def begin(self, storage: Storage, path: str, size_bytes: int) -> None:
        """Begins to flush a file.

        Args:
            path: relative to the table.
            size_bytes: size of the file.

        Raises:
            StorageError: the store fails while a small file is flushed; errors of the thread come from `wait`.
        """
        if size_bytes < _WORTH_A_THREAD_BYTES or not storage.waits_for_disk:
            storage.sync(path)
            return
        if self._pool is None:
            self._pool = threads.make_pool(1, "hudistream-flush")
        self._running.append(self._pool.submit(storage.sync, path))

    def wait(self) -> None:
        """Waits until all files are on the disk.

        Raises:
            StorageError: a file could not be flushed.
        """
        running, self._running = self._running, []
        pool, self._pool = self._pool, None
        try:
            for one in running:
                one.result()
        finally:
            if pool is not None:
                pool.shutdown()
