"""Time for tests of locks: sleeping takes none, and renewals run when the test says so."""

import threading
import time as real_time
from contextlib import ExitStack, contextmanager
from unittest import mock

from table import clock, threads


class LockTime:
    """A clock that moves when the test's thread sleeps. A thread that an earlier test left behind does not move it.

    Attributes:
        now_ms: what it shows.
        wakes: (moment, what is done then), for what happens while somebody sleeps.
        keepers: what threads that were started run; none of them runs by itself.
    """

    def __init__(self):
        self.now_ms = 1_800_000_000_000
        self.wakes = []
        self.keepers = []
        self._thread = threading.get_ident()

    def sleep_s(self, seconds):
        if threading.get_ident() == self._thread:
            self.pass_ms(seconds * 1000)
        else:
            real_time.sleep(seconds)

    def pass_ms(self, milliseconds):
        until_ms = self.now_ms + milliseconds
        while self.wakes and min(self.wakes, key=lambda wake: wake[0])[0] <= until_ms:
            wake = min(self.wakes, key=lambda wake: wake[0])
            self.wakes.remove(wake)
            self.now_ms = max(self.now_ms, wake[0])
            wake[1]()
        self.now_ms = max(self.now_ms, until_ms)


@contextmanager
def lock_time():
    """Puts a `LockTime` in the place of the clock; threads are kept back."""
    time = LockTime()
    with ExitStack() as stack:
        for name, value in {
            "now_ms": lambda: int(time.now_ms),
            "monotonic_s": lambda: time.now_ms / 1000,
            "sleep_s": time.sleep_s,
        }.items():
            stack.enter_context(mock.patch.object(clock, name, value))
        stack.enter_context(
            mock.patch.object(threads, "start_thread", lambda target, _name, **_: time.keepers.append(target))
        )
        yield time
