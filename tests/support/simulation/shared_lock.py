"""The lock of a world's table: what writers of several engines share, whichever provider keeps it."""

from contextlib import contextmanager


class WorldLock:
    """Held by one actor at a time. The lock of a dead holder has expired: another actor takes it.

    Args:
        world: where it is.
    """

    def __init__(self, world):
        self._world, self._holder = world, None

    @contextmanager
    def hold(self):
        """See `table.transaction.locks.SharedLock`."""
        world = self._world
        world.take(self._is_free, "lock")
        me = self._holder = world.current
        try:
            yield self
        finally:
            if self._holder is me:
                self._holder = None

    def _is_free(self):
        return self._holder is None or self._holder.process.killed

    def check(self):
        """A holder that lives is not robbed."""

    def close(self):
        """There is no connection."""
