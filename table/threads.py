"""The only source of threads, of thread pools, and of the objects by which threads wait for each other.

No other module of the project may start a thread (the linter enforces it). So a simulation can run all threads one at a
time, in an order that it chooses.
"""

import concurrent.futures
import contextvars
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

Piece = TypeVar("Piece")


_PATIENCE_S = 2


class RunningThread(Protocol):
    """A thread that was started."""

    def join(self) -> None:
        """Waits until the thread has ended."""

    def is_alive(self) -> bool:
        """Whether the thread still runs."""


class Signal(Protocol):
    """An event that happens once; threads can wait for it."""

    def set(self) -> None:
        """Records that the event has happened."""

    def is_set(self) -> bool:
        """Whether the event has happened."""

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for the event, at most `timeout` seconds. Returns whether it has happened."""


class Pieces(Generic[Piece]):
    """A queue of bounded size between two threads.

    Args:
        most: largest number of pieces that it holds.
    """

    def __init__(self, most: int) -> None:
        self._queue: queue.Queue[Piece] = queue.Queue(most)

    def put(self, piece: Piece, timeout: float) -> bool:
        """Appends a piece; waits at most `timeout` seconds for room. Returns whether there was room."""
        try:
            self._queue.put(piece, timeout=timeout)
        except queue.Full:
            return False
        return True

    def get(self) -> Piece:
        """Waits for the next piece, and returns it."""
        return self._queue.get()


def start_thread(target: Callable[[], None], name: str, *, daemon: bool = False) -> RunningThread:
    """Starts a thread.

    Args:
        target: the function that the thread runs.
        name: name of the thread.
        daemon: whether the interpreter exits without waiting for the thread.
    """
    thread = threading.Thread(target=target, name=name, daemon=daemon)
    thread.start()
    return thread


def run_apart(target: Callable[[], None], name: str) -> None:
    """Runs a finalizer in a thread of its own; at the interpreter's end, in the calling thread.

    The garbage collector may run in any thread, also in a thread that a store's client waits for: a call of the store
    from there would wait for itself. So the finalizer gets a thread, and the caller waits for it, but not for long.

    Args:
        target: the finalizer. Its errors are dropped, because no caller is left to receive them.
        name: name of the thread.
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
    """A pool of threads, to be used as a context manager that waits for their work."""
    return _Pool(max(1, size), thread_name_prefix=name)


class _Pool(ThreadPoolExecutor):
    """A pool that runs work in the calling thread once the interpreter has begun to wait for its last threads.

    From that moment on Python starts no work in pools, but a table service that runs beside a stream must be finished.
    """

    _is_closed = False

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 as in Python
        self._is_closed = True
        super().shutdown(wait, cancel_futures=cancel_futures)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError as error:
            # the interpreter ends; a worker that has noticed it first has closed its pool
            if self._is_closed or "new futures after" not in str(error):
                raise
        done: concurrent.futures.Future[Any] = concurrent.futures.Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 the caller that asks for the result gets it
            done.set_exception(error)
        return done


def run_together(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Runs calls at the same time, the last one in the calling thread, and waits for all of them.

    Args:
        calls: no call needs what another one does. Each sees the caller's context variables.

    Returns:
        What they return, in their order.

    Raises:
        Exception: the error of the first call, in their order, that failed. The others have ended by then.
    """
    *others, last = calls
    with make_pool(len(others), "hudistream-together") as pool:
        futures = [pool.submit(contextvars.copy_context().run, call) for call in others]
        own: concurrent.futures.Future[Any] = concurrent.futures.Future()
        try:
            own.set_result(last())
        except Exception as error:  # noqa: BLE001 raised below, after the error of an earlier call
            own.set_exception(error)
    return [future.result() for future in (*futures, own)]


def make_queue(most: int) -> Pieces[Any]:
    """An empty queue that holds at most `most` pieces."""
    return Pieces(most)


def make_signal() -> Signal:
    """A signal that is not set."""
    return threading.Event()


def make_lock() -> AbstractContextManager[bool]:
    """A lock, to be used as a context manager."""
    return threading.Lock()


Gate: TypeAlias = AbstractContextManager[bool]


def make_gate(most: int) -> Gate:
    """A context manager that at most `most` threads enter at a time; the others wait."""
    return threading.BoundedSemaphore(most)


def current_thread() -> object:
    """Identity of the calling thread."""
    return threading.current_thread()
