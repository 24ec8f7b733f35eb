"""The only source of threads, of pools of them, and of waiting between them.

Nothing else in the project may start a thread (the linter enforces it), so that a simulation can run
all of them one at a time, in an order of its own.
"""

import concurrent.futures
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

Piece = TypeVar("Piece")


_PATIENCE_S = 2


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


def run_apart(target: Callable[[], None], name: str) -> None:
    """Runs what the collector of garbage asks for in a thread of its own; at the interpreter's end, in this one.

    The collector may run in any thread, also in one that a store's client waits for: a call of the store would wait
    for itself there. So what is run is waited for, but not for long.

    Args:
        target: what is run. Nobody is left to be told of its failure.
        name: of the thread.
    """

    def run() -> None:
        with suppress(BaseException):
            target()

    if threading.main_thread().is_alive():
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        thread.join(_PATIENCE_S)
    else:
        run()  # no thread can be started any more


def make_pool(size: int, name: str) -> Executor:
    """A pool of threads; to be used as a context manager, which waits for them."""
    return _Pool(max(1, size), thread_name_prefix=name)


class _Pool(ThreadPoolExecutor):
    """A pool that does what comes in the calling thread, once the interpreter waits for the last threads.

    From then on Python starts no work in pools, but a service that runs beside a stream is to be finished.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError as error:  # the interpreter says so while it waits for the threads of other pools, too
            if "new futures after interpreter shutdown" not in str(error):
                raise
        done: concurrent.futures.Future[Any] = concurrent.futures.Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 whoever asks for the result gets it
            done.set_exception(error)
        return done


def make_queue(most: int) -> Pieces[Any]:
    """An empty queue that holds so many pieces."""
    return Pieces(most)


def make_signal() -> Signal:
    """A signal that is not set."""
    return threading.Event()


def make_lock() -> AbstractContextManager[bool]:
    """A lock, to be used as a context manager."""
    return threading.Lock()


Gate: TypeAlias = AbstractContextManager[bool]


def make_gate(most: int) -> Gate:
    """Lets so many threads in at a time, to be used as a context manager; the others wait."""
    return threading.BoundedSemaphore(most)


def current_thread() -> object:
    """Identity of the thread that asks."""
    return threading.current_thread()
