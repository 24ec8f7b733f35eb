"""Files on their way to the disk, while their task writes the next ones."""

from concurrent.futures import Executor, Future

from table import threads
from table.storage.interface import Storage

_WORTH_A_THREAD_BYTES = 1024 * 1024


class Flushes:
    """The files that one attempt at a task has published: each is on the disk before the task reports any.

    A disk takes milliseconds for a large file, in which the processor has nothing to do. So one thread waits for it.
    A small file takes less than what it costs to hand it to a thread.
    """

    def __init__(self) -> None:
        self._pool: Executor | None = None
        self._running: list[Future[None]] = []

    def begin(self, storage: Storage, path: str, size_bytes: int) -> None:
        """Begins to flush a file.

        Args:
            path: of the file, relative to the table.
            size_bytes: of the file.

        Raises:
            StorageError: the store fails, where nothing is worth waiting for.
        """
        if size_bytes < _WORTH_A_THREAD_BYTES or not storage.waits_for_disk:
            storage.sync(path)
            return
        if self._pool is None:
            self._pool = threads.make_pool(1, "hudistream-flush")
        self._running.append(self._pool.submit(storage.sync, path))

    def wait(self) -> None:
        """Returns when all files are on the disk.

        Raises:
            StorageError: one of them is not.
        """
        running, self._running = self._running, []
        pool, self._pool = self._pool, None
        try:
            for one in running:
                one.result()
        finally:
            if pool is not None:
                pool.shutdown()
