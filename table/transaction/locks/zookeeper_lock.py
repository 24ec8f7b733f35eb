"""A lock in ZooKeeper (ZookeeperBasedLockProvider, Curator's InterProcessMutex).

ZooKeeper takes the lock from a writer from which it received no message for the session's time-out. The writer learns
of it when it reaches ZooKeeper again.
"""

import os
from collections.abc import Callable

from table import clock, threads
from table.errors import StorageError, TableHeldError
from table.log import get_logger
from table.options.lock_settings import LockProvider, LockSettings
from table.transaction.locks.line import in_order, name_in_line, who_is_before
from table.transaction.locks.patience import Deadline, Grip, PatientLock
from table.transaction.locks.provider import LockState
from table.transaction.locks.zookeeper_session import FoundNode, ZookeeperSession, check_kazoo
from table.version import VERSION

_LOOKS_AGAIN_S = 5.0  # if ZooKeeper's notice was lost with a connection

log = get_logger("hudistream.lock")


class ZookeeperLock(PatientLock):
    """The lock of one table in ZooKeeper. The session begins with the first hold, and stays open.

    Args:
        path: path of the lock's node.
        settings: servers, time-outs, and how long to wait.
        open_session: begins a session.

    Raises:
        InvalidConfigError: kazoo is not installed.
    """

    def __init__(
        self,
        path: str,
        settings: LockSettings,
        open_session: Callable[[LockSettings], ZookeeperSession] = ZookeeperSession,
    ) -> None:
        check_kazoo()
        super().__init__(f"{path} in ZooKeeper at {settings.zookeeper_url}", settings)
        self.path = path
        self._open_session = open_session
        self._session: ZookeeperSession | None = None
        self._mutex = threads.make_lock()

    @property
    def is_shared_between_processes(self) -> bool:
        """True: the lock excludes writers of other processes."""
        return True

    def _connected(self) -> ZookeeperSession:
        with self._mutex:
            if self._session is None:
                self._session = self._open_session(self.settings)
            return self._session

    def close(self) -> None:
        """Ends the session."""
        with self._mutex:
            session, self._session = self._session, None
        if session is not None:
            session.close()

    def forget(self, session: ZookeeperSession) -> None:
        """Ends a failed session. This also deletes a node that was created although ZooKeeper's answer was lost."""
        with self._mutex:
            if self._session is session:
                self._session = None
        session.close()

    def _take(self, deadline: Deadline) -> Grip | None:
        session = self._connected()
        try:
            session.ensure(self.path)
            mine = session.join_line(self.path, name_in_line(clock.fresh_uuid()), _about_us())
            if self._wait_in_line(session, mine, deadline):
                return ZookeeperGrip(self, session, mine)
            session.delete(f"{self.path}/{mine}")
        except BaseException:
            self.forget(session)
            raise
        return None

    def _wait_in_line(self, session: ZookeeperSession, mine: str, deadline: Deadline) -> bool:
        while True:
            try:
                before = who_is_before(session.line(self.path), mine)
            except KeyError as error:
                raise StorageError(f"ZooKeeper ended the session while it waited for {self.place}") from error
            if before is None:
                return True
            changed = threads.make_signal()
            if not session.watch(f"{self.path}/{before}", changed.set):
                continue
            if deadline.left_s <= 0:
                return False
            changed.wait(min(deadline.left_s, _LOOKS_AGAIN_S))
            deadline.still_waits()

    def describe(self) -> LockState | None:
        """The writer of the first node in the queue, and since when the node exists."""
        found = self._first()
        return None if found is None else self._state(found[1])

    def _first(self) -> tuple[str, FoundNode] | None:
        session = self._connected()
        try:
            for name in in_order(session.line(self.path)):
                node = session.look(f"{self.path}/{name}")
                if node is not None:
                    return name, node
        except StorageError:
            self.forget(session)
            raise
        return None

    def _state(self, node: FoundNode) -> LockState:
        text = node.data.decode(errors="replace").strip()
        return LockState(
            LockProvider.ZOOKEEPER,
            self.place,
            is_held=True,
            holder=f"{text or 'a writer that says nothing of itself'} (session 0x{node.session:x})",
            since_ms=node.created_ms,
            note="as long as ZooKeeper hears of its session",
        )

    def break_lock(self) -> LockState | None:
        """Deletes the first node in the queue."""
        found = self._first()
        if found is None:
            return None
        name, node = found
        if not self._connected().delete(f"{self.path}/{name}"):
            raise TableHeldError(f"the lock {self.place} changed hands meanwhile: it was not broken")
        return self._state(node)


def _about_us() -> bytes:
    """Data of the node, for operators who look at it; Curator writes an address there."""
    return f"hudistream {VERSION}, process {os.getpid()}".encode()


class ZookeeperGrip:
    """A lock in ZooKeeper while it is held.

    Args:
        lock: the lock that is held.
        session: the session with which the lock ends.
        node: name of this writer's node in the queue.
    """

    def __init__(self, lock: ZookeeperLock, session: ZookeeperSession, node: str) -> None:
        self._lock, self._session = lock, session
        self._path = f"{lock.path}/{node}"
        self._number = session.number
        self._is_lost = False

    def check(self) -> None:
        """Checks that our node exists: then no other node is before it in the queue.

        Raises:
            CommitConflictError: the session has ended, or the node was deleted.
            StorageError: ZooKeeper gave no answer.
        """
        found = None if self._is_lost else self._session.look(self._path)
        if found is None or found.session != self._number:
            if not self._is_lost:
                self._is_lost = True
                self._lock.forget(self._session)
            raise TableHeldError(
                f"the lock {self._lock.place} is not held any more: ZooKeeper has ended the session, or another client "
                f"deleted {self._path}; run it again"
            )

    def release(self) -> None:
        """Deletes our node, which releases the lock.

        Raises:
            StorageError: ZooKeeper gave no answer; the session is ended.
        """
        if self._is_lost:
            return
        try:
            if not self._session.delete(self._path):
                log.warning("lock_was_taken_over", lock=self._lock.place)
        except StorageError:
            self._lock.forget(self._session)
            raise
