"""What a person sees of a command that takes long: how many seconds it has been at work."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from table.threads import make_lock, make_signal, start_thread

_FIRST_S = 2.0  # a command that is faster says nothing
_STEP_S = 1.0
_CLEAR = "\r\x1b[K"


class ElapsedLine:
    """A line at the end of a terminal that counts seconds.

    The cursor stays at its begin, so that a line of the log overwrites it. `table.cli.output` clears it before a
    result.

    Args:
        stream: the terminal.
        title: what is at work.
        first_s: seconds before the line appears.
    """

    def __init__(self, stream: TextIO, title: str, first_s: float) -> None:
        self._stream, self._title, self._first_s = stream, title, first_s
        self._over = make_signal()
        self._turn = make_lock()
        self._is_shown = False
        self._began = time.monotonic()

    def run(self) -> None:
        """Counts until `stop`."""
        wait = self._first_s
        while not self._over.wait(wait):
            with self._turn:
                if self._over.is_set():  # `stop` came first
                    return
                self._stream.write(f"{_CLEAR}{self._title} … {time.monotonic() - self._began:.0f} s\r")
                self._stream.flush()
                self._is_shown = True
            wait = _STEP_S

    def stop(self) -> None:
        """Clears the line for good."""
        self._over.set()
        with self._turn:
            if self._is_shown:
                self._stream.write(_CLEAR)
                self._stream.flush()
            self._is_shown = False


_line: ElapsedLine | None = None


@contextmanager
def elapsed_shown(title: str, first_s: float = _FIRST_S) -> Iterator[None]:
    """Shows seconds on standard error while the block runs, until its first output. Only a terminal shows them."""
    global _line  # noqa: PLW0603 one command per process, and its output is told by functions
    if not sys.stderr.isatty():
        yield
        return
    _line = ElapsedLine(sys.stderr, title, first_s)
    thread = start_thread(_line.run, "hudistream-elapsed", daemon=True)
    try:
        yield
    finally:
        clear_elapsed()
        thread.join()


def clear_elapsed() -> None:
    """Clears the line and ends it: there is output now."""
    if _line is not None:
        _line.stop()
