"""Bad rows in quarantine: Parquet files beside the table, written exactly once, together with their batch.

A worker writes them to a staging folder named after the commit. The commit lists them. After the commit, each file is
copied to its final name. If the process dies in between, the next batch finishes the work: it publishes staged files
that a commit lists, and deletes staged files that belong to no commit. Publishing twice gives the same file, so two
writers may publish the files of one commit at the same time.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

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
    """Copies a commit's bad rows to their final names and deletes its staging folder. Can be repeated."""
    staging = staging_folder(key, instant_time)
    present = {entry.name for entry in storage.list_dir(staging)}
    for name in files:
        if name in present:
            with suppress(FileNotFoundError):  # another writer has published it meanwhile
                storage.put(name, storage.read(join(staging, name)))
        elif not storage.exists(name):  # else an earlier process published it and died while it cleaned up
            log.warning("bad_rows_missing", folder=storage.base_uri, instant_time=instant_time, file=name)
    for name in sorted(present):
        storage.delete(join(staging, name))
    # the folder above stays: another writer may be about to create its own in it
    storage.remove_empty_dir(staging)


def finish_quarantine(storage: Storage, keys: Sequence[str], snapshot: Snapshot) -> None:
    """Publishes the staged files of commits, and deletes the staged files of failed batches.

    Dead processes left these files. The folders are listed before the timeline: an instant is requested before its
    tasks stage a file, so the later timeline has the instant of each folder, unless it failed or was archived. A commit
    that was archived meanwhile is looked up in the archive.

    Args:
        storage: the folder of bad rows.
        keys: the table's own parts of it (`table.quarantine.place.table_keys`).
        snapshot: of the table; its timeline is listed again.

    Raises:
        HudiError: a commit cannot be read, or the store fails.
    """
    found = {entry.name for entry in storage.list_dir(STAGING)} if len(keys) > 1 else {*keys}
    folders = ((key, storage.list_dir(join(STAGING, key))) for key in keys if key in found)
    staged = [(key, entry.name) for key, entries in folders for entry in entries if entry.is_dir]
    if not staged:
        return
    now = snapshot.again()
    pending = {instant.time for instant in now.timeline.pending}
    completed = {instant.time: instant for instant in now.timeline.completed_writes}
    archived: dict[str, Mapping[str, str]] | None = None
    for key, time in staged:
        if time in pending:
            continue
        extra: Mapping[str, str] = {}
        if time in completed:
            extra = now.commits.read_outline(completed[time]).extra
        elif time < (now.timeline.first_active_time or ""):
            if archived is None:
                commits = read_archived_commits(now.table.archived_timeline)
                archived = {commit.time: commit.metadata.extra for commit in commits}
            extra = archived.get(time, {})
        files = tuple(json.loads(extra.get(EXTRA_KEY, "[]")))
        log.info("quarantine_finished", table=now.storage.base_uri, instant_time=time, files=len(files))
        publish(storage, key, time, files)


def now_us() -> int:
    """Microseconds since the epoch."""
    return clock.now_ms() * 1000
