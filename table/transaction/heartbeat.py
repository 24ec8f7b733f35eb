"""Heartbeats: a file whose modification time says that an instant's writer is alive (HoodieHeartbeatClient).

Hudi's file is empty. Ours names the writer, so that a stream that was killed and started again is distinguished from a
second stream. It also holds the instant time from which on the writer may not have seen commits (`decode_sight`):
archival keeps these commits on the active timeline.
"""

import json
from collections.abc import Container
from dataclasses import asdict, dataclass

from table.options.groups import HeartbeatSettings
from table.storage.interface import METAFOLDER, Storage, join
from table.transaction.signs import still_counts
from table.version import VERSION

HEARTBEAT_FOLDER = join(METAFOLDER, ".heartbeat")


@dataclass(frozen=True, slots=True)
class WriterIdentity:
    """A writer: a sink by its checkpoint identifier, within a streaming query.

    Attributes:
        sink_id: ``hoodie.datasource.write.streaming.checkpoint.identifier``.
        query_id: id of the streaming query, the same after a restart; None outside a stream.
        owner: identifies one writer object in one process; "" where an older version wrote it.
    """

    sink_id: str
    query_id: str | None = None
    owner: str = ""

    def is_same_stream(self, other: "WriterIdentity") -> bool:
        """Whether both writers are runs of one streaming query; False for writes outside a stream."""
        return self.query_id is not None and (self.sink_id, self.query_id) == (other.sink_id, other.query_id)

    def encode(self) -> bytes:
        """JSON."""
        return json.dumps({**asdict(self), "version": VERSION}).encode()


def decode_identity(data: bytes) -> WriterIdentity | None:
    """The writer that a heartbeat file names; None if it names none, as Hudi's empty files."""
    try:
        document = json.loads(data)
        return WriterIdentity(document["sink_id"], document["query_id"], document.get("owner", ""))
    except (ValueError, KeyError, TypeError):
        return None


def decode_sight(data: bytes) -> str | None:
    """The least time of a write that the heartbeat's writer may not have seen; None if the file does not hold it."""
    try:
        sight = json.loads(data).get("sight")
    except (ValueError, AttributeError):
        return None
    return sight if isinstance(sight, str) and sight else None


def heartbeat_path(instant_time: str) -> str:
    """Path of an instant's heartbeat, relative to the table."""
    return join(HEARTBEAT_FOLDER, instant_time)


def write_heartbeat(storage: Storage, instant_time: str, identity: WriterIdentity, sight: str | None = None) -> None:
    """Writes the heartbeat file once.

    Args:
        instant_time: instant time of the write.
        identity: the writer.
        sight: the value that `decode_sight` returns.
    """
    storage.put(heartbeat_path(instant_time), _encode(identity, sight))


def begin_heartbeat(storage: Storage, instant_time: str, identity: WriterIdentity, sight: str | None = None) -> bool:
    """Creates the heartbeat file; the arguments are the same as in `write_heartbeat`.

    Returns:
        False if another writer has a heartbeat of that instant.
    """
    return storage.create_exclusive(heartbeat_path(instant_time), _encode(identity, sight))


def find_sight(storage: Storage, instant_time: str) -> str | None:
    """`Timeline.unseen_from` as stored in the heartbeat of a pending write; None if there is none."""
    try:
        return decode_sight(storage.read(heartbeat_path(instant_time)))
    except FileNotFoundError:
        return None


def _encode(identity: WriterIdentity, sight: str | None) -> bytes:
    document = json.loads(identity.encode())
    return json.dumps({**document, "sight": sight} if sight is not None else document).encode()


def delete_heartbeat(storage: Storage, instant_time: str) -> None:
    """Deletes an instant's heartbeat file."""
    storage.delete_metafile(heartbeat_path(instant_time))


def sweep_heartbeats(
    storage: Storage, pending: Container[str], settings: HeartbeatSettings, now_ms: int, *, shared: bool = False
) -> None:
    """Deletes heartbeats of instants that are not pending: their writers died before the request, or after the end.

    The caller holds the table. If it holds the table alone, it deletes every heartbeat of writers that know leases, and
    only expired heartbeats of other engines. If the table is shared, it deletes only expired heartbeats: the other
    writers may be about to request their instants.

    Args:
        pending: instant times that have a request.
        settings: when a heartbeat counts as expired.
        now_ms: the store's time.
        shared: whether other writers hold the table, too.
    """
    for entry in storage.list_dir(HEARTBEAT_FOLDER):
        if entry.name in pending:
            continue
        counts = still_counts(now_ms - entry.modified_ms, settings.expiry_ms, storage.time_granularity_ms)
        try:
            writer = decode_identity(storage.read(heartbeat_path(entry.name)))
        except FileNotFoundError:
            continue
        if not counts or (writer is not None and writer.owner and not shared):
            delete_heartbeat(storage, entry.name)


def find_live_writer(
    storage: Storage, instant_time: str, settings: HeartbeatSettings, now_ms: int
) -> WriterIdentity | None:
    """The writer of a pending instant; None if its heartbeat is missing or expired.

    Args:
        instant_time: the pending instant.
        settings: when a heartbeat counts as expired.
        now_ms: the store's time.

    Returns:
        The writer. For a live heartbeat without a name (another engine's), an identity with an empty sink id.
    """
    for entry in storage.list_dir(HEARTBEAT_FOLDER):
        if entry.name == instant_time:
            if not still_counts(now_ms - entry.modified_ms, settings.expiry_ms, storage.time_granularity_ms):
                return None
            try:
                return decode_identity(storage.read(heartbeat_path(instant_time))) or WriterIdentity("")
            except FileNotFoundError:
                return None
    return None
