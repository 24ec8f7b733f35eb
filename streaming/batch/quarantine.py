"""Bad rows put aside: Parquet files beside the table, there exactly once, with the batch they came in.

A worker writes them to a staging folder named after the commit; the commit lists them; after it, each
file is copied under its final name. A process that died in between is completed by the next batch: what
a commit lists is published, what belongs to no commit is deleted. Publishing twice gives the same file.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import structlog

from table import clock
from table.files.base.hudi_footer import CALENDAR
from table.hudi_table import HudiTable
from table.storage.interface import Storage, join
from table.timeline.archived_timeline import read_archived_commits
from table.timeline.commit_cache import CommitCache
from table.timeline.timeline import Timeline

EXTRA_KEY = "hudistream.quarantine"
STAGING = "_staging"  # Spark passes over names that begin so
REASON, BATCH_ID, SINK_ID, TIME = (
    "_hudistream_reason",
    "_hudistream_batch_id",
    "_hudistream_sink",
    "_hudistream_time",
)

log = structlog.get_logger("hudistream.quarantine")


@dataclass(frozen=True)
class Quarantine:
    """Where bad rows of a batch go: small, goes to the workers.

    Attributes:
        storage: the folder beside the table.
        table_key: what tells this table's staged files from those of others that share the folder.
        instant_time: the commit they come with.
        batch_id: Spark's id, or None.
        sink_id: the sink's name.
        time_us: when the batch began, microseconds since the epoch.
    """

    storage: Storage
    table_key: str
    instant_time: str
    batch_id: int | None
    sink_id: str
    time_us: int


class QuarantineWriter:
    """Writes the bad rows of one task.

    Args:
        quarantine: where.
        write_token: of this attempt; makes the file's name its own.
    """

    def __init__(self, quarantine: Quarantine, write_token: str) -> None:
        self._quarantine = quarantine
        self._name = f"{quarantine.instant_time}_{write_token}.parquet"
        self._writer: pq.ParquetWriter | None = None

    def write(self, rows: pa.Table, reason: str) -> None:
        """Takes rows (table columns, Arrow) that cannot be stored for one reason."""
        count, quarantine = len(rows), self._quarantine
        table = (
            rows.append_column(REASON, pa.array([reason] * count, pa.string()))
            .append_column(BATCH_ID, pa.array([quarantine.batch_id] * count, pa.int64()))
            .append_column(SINK_ID, pa.array([quarantine.sink_id] * count, pa.string()))
            .append_column(TIME, pa.array([quarantine.time_us] * count, pa.timestamp("us", "UTC")))
        )
        if self._writer is None:
            folder = staging_folder(quarantine.table_key, quarantine.instant_time)
            self._sink = quarantine.storage.open_output(join(folder, self._name))
            self._writer = pq.ParquetWriter(self._sink, table.schema, compression="zstd", store_schema=False)
            # as in base files: Spark refuses old dates in files that do not name their calendar
            self._writer.add_key_value_metadata(CALENDAR)
        self._writer.write_table(table)

    def close(self) -> str | None:
        """Finishes the file. Returns its name, or None when there were no bad rows."""
        if self._writer is None:
            return None
        self._writer.close()
        self._sink.close()
        return self._name


def encode_extra(files: tuple[str, ...]) -> Mapping[str, str]:
    """What the commit says of its bad rows."""
    return {EXTRA_KEY: json.dumps(sorted(files))} if files else {}


def table_key(base_uri: str, name: str) -> str:
    """Name of a table's own part of the staging folder: several tables may share one."""
    return f"{name}-{zlib.crc32(base_uri.encode()):08x}"


def staging_folder(key: str, instant_time: str) -> str:
    """Where bad rows wait for their commit."""
    return join(STAGING, key, instant_time)


def publish(storage: Storage, key: str, instant_time: str, files: tuple[str, ...]) -> None:
    """Copies a commit's bad rows to their final names and empties its staging folder. Can be repeated."""
    staging = staging_folder(key, instant_time)
    present = {entry.name for entry in storage.list_dir(staging)}
    for name in files:
        if name in present:  # else a process before us published it and died while it cleaned up
            storage.put(name, storage.read(join(staging, name)))
    for name in sorted(present):
        storage.delete(join(staging, name))
    for folder in (staging, join(STAGING, key)):
        storage.remove_empty_dir(folder)


def finish_quarantine(storage: Storage, key: str, table: HudiTable, timeline: Timeline, commits: CommitCache) -> None:
    """Publishes what dead processes left of commits, and deletes what they left of failed batches.

    A commit that was archived meanwhile is looked up in the archive: its bad rows are published, too.
    """
    pending = {instant.time for instant in timeline.pending}
    completed = {instant.time: instant for instant in timeline.completed_writes}
    archived: dict[str, Mapping[str, str]] | None = None
    for entry in storage.list_dir(join(STAGING, key)):
        if entry.name in pending or not entry.is_dir:
            continue
        extra: Mapping[str, str] = {}
        if entry.name in completed:
            extra = commits.read(completed[entry.name]).extra
        elif entry.name < (timeline.first_active_time or ""):
            if archived is None:
                found = read_archived_commits(table.storage, table.config.archive_folder)
                archived = {commit.time: commit.metadata.extra for commit in found}
            extra = archived.get(entry.name, {})
        files = tuple(json.loads(extra.get(EXTRA_KEY, "[]")))
        log.info("quarantine_finished", table=table.storage.base_uri, instant_time=entry.name, files=len(files))
        publish(storage, key, entry.name, files)
    storage.remove_empty_dir(join(STAGING, key))


def now_us() -> int:
    """Microseconds since the epoch."""
    return clock.now_ms() * 1000
