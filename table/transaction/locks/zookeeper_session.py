"""The requests of a lock in a ZooKeeper session, through kazoo."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from table import clock
from table.errors import InvalidConfigError, StorageError
from table.extras import needs_extra
from table.options.lock_settings import LockSettings

_ASKS_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True)
class FoundNode:
    """A node as it was at one moment.

    Attributes:
        data: content of the node.
        created_ms: time of creation, in milliseconds by ZooKeeper's clock.
        session: number of the session with which the node ends.
        version: version of the content.
    """

    data: bytes
    created_ms: int
    session: int
    version: int


def check_kazoo() -> None:
    """Checks that kazoo is installed.

    Raises:
        InvalidConfigError: kazoo is not installed.
    """
    try:
        import kazoo.client  # noqa: F401, PLC0415 an extra
    except ImportError as error:
        raise InvalidConfigError(needs_extra("hoodie.write.lock.provider=zookeeper", "zookeeper")) from error


class ZookeeperSession:
    """A session that ends with `close`, or when ZooKeeper received no message for the session's time-out.

    Args:
        settings: servers, time-outs, and how often to try to connect.

    Raises:
        StorageError: no connection was made within the time that the settings allow.
    """

    def __init__(self, settings: LockSettings) -> None:
        from kazoo.client import KazooClient  # noqa: PLC0415 an extra

        self._timeout_s = settings.zookeeper_connection_ms / 1000
        retry = {
            "max_tries": settings.connection_retries + 1,
            "delay": settings.connection_pause_ms / 1000,
            "max_delay": settings.connection_pause_most_ms / 1000,
        }
        self._client: Any = KazooClient(
            hosts=settings.zookeeper_url, timeout=settings.zookeeper_session_ms / 1000, connection_retry=retry
        )
        with _told(f"connect to {settings.zookeeper_url}"):
            self._client.start(self._timeout_s)

    @property
    def number(self) -> int:
        """ZooKeeper's number of this session; 0 if the session has ended."""
        known = self._client.client_id
        return int(known[0]) if known is not None else 0

    def _ask(self, what: str, path: str, **given: Any) -> Any:
        """Sends one request, with a time-out: a client without a connection would wait for ever."""
        return getattr(self._client, f"{what}_async")(path, **given).get(timeout=self._timeout_s)

    def _ask_again(self, what: str, path: str, **given: Any) -> Any:
        """Sends a request that may be repeated; the client restores a lost connection by itself."""
        from kazoo.exceptions import ConnectionClosedError, ConnectionLoss  # noqa: PLC0415 an extra

        until_s = clock.monotonic_s() + self._timeout_s
        while True:
            try:
                return self._ask(what, path, **given)
            except (ConnectionLoss, ConnectionClosedError):
                if clock.monotonic_s() > until_s:
                    raise
            clock.sleep_s(_ASKS_AGAIN_S)

    def ensure(self, path: str) -> None:
        """Creates a node and its parents, unless they exist.

        Raises:
            StorageError: ZooKeeper gave no answer, or refused.
        """
        with _told(f"make the node {path}"):
            self._ask_again("ensure_path", path)

    def join_line(self, path: str, name: str, data: bytes) -> str:
        """Creates a node below `path` that ends with this session. Returns its name with its number.

        Raises:
            StorageError: ZooKeeper gave no answer, or refused; the node may exist until the session ends.
        """
        with _told(f"make a node in {path}"):
            made = self._ask("create", f"{path}/{name}", value=data, ephemeral=True, sequence=True)
        return str(made).rpartition("/")[2]

    def line(self, path: str) -> list[str]:
        """Names of the nodes below `path`, in no order; none if `path` does not exist.

        Raises:
            StorageError: ZooKeeper gave no answer, or refused.
        """
        from kazoo.exceptions import NoNodeError  # noqa: PLC0415 an extra

        with _told(f"list {path}"):
            try:
                return list(self._ask_again("get_children", path))
            except NoNodeError:
                return []

    def watch(self, path: str, changed: Callable[[], None]) -> bool:
        """Calls `changed` once when a node changes or ends. Returns whether the node exists.

        Raises:
            StorageError: ZooKeeper gave no answer, or refused.
        """
        with _told(f"watch {path}"):
            return self._ask_again("exists", path, watch=lambda _event: changed()) is not None

    def look(self, path: str) -> FoundNode | None:
        """A node as the leader has it; None if the node does not exist, or this session has expired.

        Raises:
            StorageError: ZooKeeper gave no answer, or refused.
        """
        from kazoo.exceptions import NoNodeError, SessionExpiredError  # noqa: PLC0415 an extra

        with _told(f"read {path}"):
            try:
                self._ask_again("sync", path)
                data, stat = self._ask_again("get", path)
            except NoNodeError:
                return None
            except SessionExpiredError as error:
                if type(error) is not SessionExpiredError:  # a closed connection does not tell whether the node exists
                    raise
                return None
        return FoundNode(bytes(data or b""), int(stat.ctime), int(stat.ephemeralOwner), int(stat.version))

    def delete(self, path: str) -> bool:
        """Deletes a node. Returns False if it did not exist.

        Raises:
            StorageError: ZooKeeper gave no answer, or refused.
        """
        from kazoo.exceptions import NoNodeError  # noqa: PLC0415 an extra

        with _told(f"delete {path}"):
            try:
                self._ask_again("delete", path)
            except NoNodeError:
                return False
        return True

    def close(self) -> None:
        """Ends the session and its nodes. Without a connection ZooKeeper ends them after the time-out."""
        with suppress(Exception):  # whatever a client that lost its connection raises
            self._client.stop()
            self._client.close()


@contextmanager
def _told(verb: str) -> Iterator[None]:
    """Turns every error of kazoo into one of hudistream."""
    try:
        yield
    except Exception as error:
        raise StorageError(f"ZooKeeper could not {verb}: {str(error) or type(error).__name__}") from error
