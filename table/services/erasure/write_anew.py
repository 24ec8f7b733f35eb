"""Writes base files anew whose footers contain keys that none of their rows has (HoodieMergeHandle without records)."""

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from dataclasses import replace

from table.config.writable import check_can_write, check_has_meta_fields
from table.files.names import build_write_token
from table.hudi_table import HudiTable
from table.log import get_logger
from table.options.choices import TableType
from table.options.write_options import WriteOptions
from table.services.held_to_write import held_to_write
from table.services.rewriting import Rewriting
from table.services.rollback.under_way import under_way
from table.snapshot import Snapshot
from table.timeline.instant import Action
from table.timeline.metadata.commit import CommitMetadata, WriteStat
from table.transaction.commit import begin_commit, clean_up_commit, complete_commit
from table.transaction.commit_facts import PendingCommit
from table.transaction.lease import COMMANDS, Lease
from table.transaction.outcome import LostCommit
from table.transaction.planned_clusterings import load_clustered
from table.view.file_group import BaseFile
from table.view.pending_compactions import load_compacting
from table.write.context import Attempt, Bucket, BucketType, WriteContext
from table.write.write_bucket import BucketWriter

_NAME = f"{COMMANDS}erase"
_OPERATION = "UPSERT"

log = get_logger("hudistream.erasure")


def write_anew(table: HudiTable, paths: Collection[str], options: WriteOptions) -> str | None:
    """Writes the next version of base files: the same rows, with a footer of their keys alone, and no change files.

    It is one commit.

    A file stays as it is where it is not the current version of its file group any more, where log files belong to it
    (a compaction writes it), and where a compaction or a clustering is planned that reads it.

    Args:
        table: the table.
        paths: of the base files, or of change files beside them, relative to the table.
        options: how files are written, and how the table is held.

    Returns:
        The instant time of the commit; None where no file was written.

    Raises:
        CommitConflictError: a writer holds the table, or changed one of the files meanwhile.
        HudiError: the files could not be written; nothing of it is visible.
    """
    check_can_write(table.config)
    check_has_meta_fields(table.config, "written anew")
    shared = options.concurrency.is_shared
    with held_to_write(table, _NAME, options.heartbeat, options.lock, shared=shared) as (held, lease, identity):
        snapshot, wanted = Snapshot.load(held), frozenset(paths)
        if not _find_files(snapshot, wanted):
            return None
        action = Action.DELTA_COMMIT if held.config.table_type == TableType.MERGE_ON_READ else Action.COMMIT
        pending = begin_commit(snapshot, _OPERATION, identity, lease, action)
        with under_way(pending, lease, identity):
            stats = _write_and_commit(pending, wanted, options, lease)
        clean_up_commit(held.storage, pending.time, stats)
    log.info("footers_written_anew", table=table.storage.base_uri, instant_time=pending.time, files=len(stats))
    return pending.time


def _find_files(snapshot: Snapshot, paths: AbstractSet[str]) -> list[BaseFile]:
    """Those of the base files that may be written anew."""
    compactions = snapshot.timeline.pending_of(Action.COMPACTION, Action.LOG_COMPACTION)
    taken = {*load_compacting(snapshot.storage, compactions), *load_clustered(snapshot)}
    return [
        group.slices[0].base_file
        for _, groups in snapshot.walk_file_groups()
        for group in groups
        if group.is_plain and group.slices[0].base_file is not None
        if not paths.isdisjoint(file.path for file in group.slices[0].all_files)
        if (group.partition_path, group.file_id) not in taken
    ]


def _write_and_commit(
    pending: PendingCommit, paths: AbstractSet[str], options: WriteOptions, lease: Lease
) -> tuple[WriteStat, ...]:
    settings = replace(options.file_settings, keys_anew=True)
    rewriting = Rewriting.of(pending.seen, pending.time, settings, "written anew")
    files = _find_files(pending.seen, paths)
    stats = tuple(_write_file(rewriting.context, file, number) for number, file in enumerate(files))
    lease.confirm()
    written = CommitMetadata(stats, _OPERATION)
    done = complete_commit(pending, written, rewriting.schema, lambda _now: {}, lease)
    if isinstance(done, LostCommit):
        raise done.error()
    return stats


def _write_file(context: WriteContext, file: BaseFile, number: int) -> WriteStat:
    bucket = Bucket(BucketType.UPDATE, file.partition_path, file.file_id, file.name, file.size_bytes)
    attempt = Attempt(build_write_token(number, 0, 0))
    writer = BucketWriter(context, bucket, attempt)
    try:
        stat, _ = writer.close()
    except BaseException:
        writer.abandon()
        raise
    attempt.flushes.wait()
    return stat
