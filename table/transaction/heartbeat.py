"""Heartbeats: a file whose modification time says that an instant's writer is alive (HoodieHeartbeatClient).

Hudi's file is empty. Ours holds who the writer is, so that a stream that was killed and started
again is told from a second stream.
"""

import json
from dataclasses import asdict, dataclass

import structlog

from table import clock, threads
from table.errors import HudiError
from table.files.markers import list_markers
from table.settings import HeartbeatSettings
from table.storage import METAFOLDER, Storage, join

HEARTBEAT_FOLDER = join(METAFOLDER, ".heartbeat")
PROGRESS_S = 10.0  # how often a long batch says how far it is

log = structlog.get_logger("hudistream.heartbeat")


@dataclass(frozen=True, slots=True)
class WriterIdentity:
    """Who writes: a sink by its checkpoint identifier, within a streaming query.

    Attributes:
        sink_id: ``hoodie.datasource.write.streaming.checkpoint.identifier``.
        query_id: id of the streaming query, the same after a restart; None outside a stream.
    """

    sink_id: str
    query_id: str | None = None

    def encode(self) -> bytes:
        """JSON."""
        return json.dumps(asdict(self)).encode()


def decode_identity(data: bytes) -> WriterIdentity | None:
    """The writer a heartbeat file names, or None when it names none (Hudi's are empty)."""
    try:
        document = json.loads(data)
        return WriterIdentity(document["sink_id"], document["query_id"])
    except (ValueError, KeyError, TypeError):
        return None


def heartbeat_path(instant_time: str) -> str:
    """Path of an instant's heartbeat, relative to the table."""
    return join(HEARTBEAT_FOLDER, instant_time)


def write_heartbeat(storage: Storage, instant_time: str, identity: WriterIdentity) -> None:
    """Beats once."""
    storage.put(heartbeat_path(instant_time), identity.encode())


def delete_heartbeat(storage: Storage, instant_time: str) -> None:
    """Ends an instant's heartbeat."""
    storage.delete(heartbeat_path(instant_time))


def find_live_writer(storage: Storage, instant_time: str, settings: HeartbeatSettings) -> WriterIdentity | None:
    """Who is writing that instant, or None when its heartbeat is missing or expired.

    A live heartbeat without a name (another engine's) comes as the identity with an empty sink id.
    """
    for entry in storage.list_dir(HEARTBEAT_FOLDER):
        if entry.name == instant_time:
            if clock.now_ms() - entry.modified_ms > settings.expiry_ms:
                return None
            try:
                return decode_identity(storage.read(heartbeat_path(instant_time))) or WriterIdentity("")
            except FileNotFoundError:
                return None
    return None


class HeartbeatThread:
    """Beats for one instant in the background while a batch runs, and says how far it is; a context manager."""

    def __init__(
        self, storage: Storage, instant_time: str, identity: WriterIdentity, settings: HeartbeatSettings
    ) -> None:
        self._storage, self._instant_time, self._identity = storage, instant_time, identity
        self._interval_s = settings.interval_ms / 1000
        self._stopped = threads.make_signal()

    def __enter__(self) -> None:
        self._thread = threads.start_thread(self._beat, f"hudistream-heartbeat-{self._instant_time}", daemon=True)

    def __exit__(self, *exc_info: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _beat(self) -> None:
        started_s = beaten_s = clock.monotonic_s()
        while not self._stopped.wait(min(self._interval_s, PROGRESS_S)):
            now_s = clock.monotonic_s()
            try:
                if now_s - beaten_s >= self._interval_s:
                    write_heartbeat(self._storage, self._instant_time, self._identity)
                    beaten_s = now_s
                files = len(list_markers(self._storage, self._instant_time))
                seconds = round(now_s - started_s, 1)
                log.info("batch_running", instant_time=self._instant_time, seconds=seconds, files_begun=files)
            except HudiError as error:
                # a missed beat is not a failed batch: what counts is checked before the commit
                log.warning("heartbeat_missed", instant_time=self._instant_time, error=str(error))
