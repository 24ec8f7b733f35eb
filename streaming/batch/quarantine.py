"""Bad rows in quarantine: Parquet files beside the table, written exactly once, together with their batch.

A worker writes them to a staging folder named after the commit. The commit lists them. After the commit, each file is
copied to its final name. If the process dies in between, the next batch finishes the work: it publishes staged files
that a commit lists, and deletes staged files that belong to no commit. Publishing twice gives the same file.
"""

import json
from collections.abc import Mapping

from table import clock
from table.log import get_logger
from table.quarantine.place import STAGING, staging_folder
from table.snapshot import Snapshot
from table.storage.interface import Storage, join
from table.timeline.archived_timeline import read_archived_commits

EXTRA_KEY = "hudistream.quarantine"

log = get_logger("hudistream.quarantine")


def encode_extra(files: tuple[str, ...]) -> Mapping[str, str]:
    """The commit's extra metadata that lists its quarantine files."""
    return {EXTRA_KEY: json.dumps(sorted(files))} if files else {}


def publish(storage: Storage, key: str, instant_time: str, files: tuple[str, ...]) -> None:
    """Copies a commit's bad rows to their final names and empties its staging folder. Can be repeated."""
    staging = staging_folder(key, instant_time)
    present = {entry.name for entry in storage.list_dir(staging)}
    for name in files:
        if name in present:  # else an earlier process published it and died while it cleaned up
            storage.put(name, storage.read(join(staging, name)))
    for name in sorted(present):
        storage.delete(join(staging, name))
    for folder in (staging, join(STAGING, key)):
        storage.remove_empty_dir(folder)


def finish_quarantine(storage: Storage, key: str, snapshot: Snapshot) -> None:
    """Publishes the staged files of commits, and deletes the staged files of failed batches.

    Dead processes left these files. A commit that was archived meanwhile is looked up in the archive.
    """
    pending = {instant.time for instant in snapshot.timeline.pending}
    completed = {instant.time: instant for instant in snapshot.timeline.completed_writes}
    archived: dict[str, Mapping[str, str]] | None = None
    for entry in storage.list_dir(join(STAGING, key)):
        if entry.name in pending or not entry.is_dir:
            continue
        extra: Mapping[str, str] = {}
        if entry.name in completed:
            extra = snapshot.commits.read_outline(completed[entry.name]).extra
        elif entry.name < (snapshot.timeline.first_active_time or ""):
            if archived is None:
                found = read_archived_commits(snapshot.table.archived_timeline)
                archived = {commit.time: commit.metadata.extra for commit in found}
            extra = archived.get(entry.name, {})
        files = tuple(json.loads(extra.get(EXTRA_KEY, "[]")))
        log.info("quarantine_finished", table=snapshot.storage.base_uri, instant_time=entry.name, files=len(files))
        publish(storage, key, entry.name, files)
    storage.remove_empty_dir(join(STAGING, key))


def now_us() -> int:
    """Microseconds since the epoch."""
    return clock.now_ms() * 1000
