"""The batches of one router that wait: which there are, and what becomes of them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from streaming.router.aside import Waiting, forget, list_waiting, put_aside, sweep_staged
from table import clock
from table.log import get_logger
from table.storage.interface import Storage

_MOST_DOUBLINGS = 20  # of the pause between two attempts

log = get_logger("hudistream.router")


class NotYetError(Exception):
    """A table that failed is not tried yet."""


@dataclass
class Attempts:
    """How often a table failed, why, and when it is tried again.

    Attributes:
        failed: how often.
        next_s: when it is tried again, seconds of the monotonic clock.
        error: why it failed the last time.
    """

    failed: int = 0
    next_s: float = 0.0
    error: str = ""

    def note(self, error: str, longest_s: float) -> None:
        """Notes a failure. The pause is twice the one before, and at most `longest_s`."""
        self.failed, self.error = self.failed + 1, error
        self.next_s = clock.monotonic_s() + min(longest_s, 2.0 ** min(self.failed, _MOST_DOUBLINGS))


class WaitingRoom:
    """The batches of one router that wait, by table.

    Only the router that holds its folder may be in it. Several threads may use it, each for another table.

    Args:
        storage: the router's folder.
        root: of its tables, for the log.
    """

    def __init__(self, storage: Storage, root: str) -> None:
        self._storage, self._root = storage, root
        self._waiting: dict[str, list[Waiting]] | None = None

    def leave(self) -> None:
        """Forgets what waits: another router may write it."""
        self._waiting = None

    def enter(self) -> None:
        """Looks what waits, once, and sweeps the files of batches that ended with their process.

        Raises:
            CorruptFileError: a record cannot be read: its rows are nowhere else.
        """
        if self._waiting is not None:
            return
        self._waiting = list_waiting(self._storage)
        sweep_staged(self._storage, [each for waiting in self._waiting.values() for each in waiting])
        for name, waiting in self._waiting.items():
            log.warning("batches_wait", root=self._root, table=name, batches=len(waiting), error=waiting[-1].error)

    def __iter__(self) -> Iterator[str]:
        return (name for name, waiting in (self._waiting or {}).items() if waiting)

    def batches_of(self, name: str) -> list[Waiting]:
        """What waits for a table, in the order in which it is written."""
        return list((self._waiting or {}).get(name, ()))

    @property
    def errors(self) -> dict[str, str]:
        """Table -> why its last batch failed."""
        return {name: self.batches_of(name)[-1].error for name in self}

    def add(self, waiting: Waiting) -> None:
        """Stores a batch, after those that wait for its table.

        Raises:
            StorageError: it is not known whether it is stored; what waits is looked at again before the next batch.
        """
        assert self._waiting is not None
        of_table = self._waiting.setdefault(waiting.name, [])
        order = 0 if not of_table else of_table[-1].order + 1
        try:
            of_table.append(put_aside(self._storage, replace(waiting, order=order)))
        except BaseException:
            self.leave()  # its record may be there: whoever writes the batch without it writes it twice
            raise

    def end(self, waiting: Waiting) -> None:
        """Deletes a batch that was written.

        Raises:
            StorageError: its record is still there: the batch is tried again, and found committed.
        """
        assert self._waiting is not None
        forget(self._storage, waiting)
        self._waiting[waiting.name].remove(waiting)
