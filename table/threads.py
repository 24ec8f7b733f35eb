"""The only source of threads, of pools of them, and of waiting between them.

Nothing else in the project may start a thread (the linter enforces it), so that a simulation can run
all of them one at a time, in an order of its own.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, TypeVar

Piece = TypeVar("Piece")


class RunningThread(Protocol):
    """A thread that was started."""

    def join(self) -> None:
        """Waits until it has ended."""

    def is_alive(self) -> bool:
        """Whether it runs."""


class Signal(Protocol):
    """Something that happens once, and that threads wait for."""

    def set(self) -> None:
        """It has happened."""

    def is_set(self) -> bool:
        """Whether it has happened."""

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for it, at most so many seconds. Returns whether it has happened."""


class Pieces(Generic[Piece]):
    """A queue between two threads that holds so many pieces at most.

    Args:
        most: pieces.
    """

    def __init__(self, most: int) -> None:
        self._queue: queue.Queue[Piece] = queue.Queue(most)

    def put(self, piece: Piece, timeout: float) -> bool:
        """Waits so many seconds for room. Returns whether there was."""
        try:
            self._queue.put(piece, timeout=timeout)
        except queue.Full:
            return False
        return True

    def get(self) -> Piece:
        """The next piece; waits for it."""
        return self._queue.get()


def start_thread(target: Callable[[], None], name: str, *, daemon: bool = False) -> RunningThread:
    """Starts a thread.

    Args:
        target: what it runs.
        name: of the thread.
        daemon: whether the interpreter's exit does not wait for it.
    """
    thread = threading.Thread(target=target, name=name, daemon=daemon)
    thread.start()
    return thread


def make_pool(size: int, name: str) -> Executor:
    """A pool of threads; to be used as a context manager, which waits for them."""
    return ThreadPoolExecutor(max(1, size), thread_name_prefix=name)


def make_queue(most: int) -> Pieces[Any]:
    """An empty queue that holds so many pieces."""
    return Pieces(most)


def make_signal() -> Signal:
    """A signal that is not set."""
    return threading.Event()


def make_lock() -> AbstractContextManager[bool]:
    """A lock, to be used as a context manager."""
    return threading.Lock()


def current_thread() -> object:
    """Identity of the thread that asks."""
    return threading.current_thread()
