"""Why a file stays or is deleted, and why it takes rows or not, as values; `table.cli.upkeep` prints them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from table.config.writable import check_version_written
from table.errors import BatchOrderError
from table.hudi_table import HudiTable
from table.inspect.explain_compaction import explain_compactions
from table.options.groups import HeartbeatSettings
from table.options.write_options import WriteOptions
from table.services.clean.judgement import judge_files
from table.services.rollback.fate import Fate, Outlook
from table.services.rollback.outlook import load_outlook
from table.snapshot import Snapshot
from table.transaction.checkpoint import (
    CommittedBatch,
    Verdict,
    already_committed,
    checkpoints_of_commit,
    merge_checkpoints,
)
from table.transaction.holder import find_standing_holder
from table.transaction.last_batch import check_nothing_undone, find_last_batch
from table.view.file_group import BaseFile, DataFile


@dataclass(frozen=True)
class FileExplanation:
    """One data file and its fate.

    Attributes:
        file: the file.
        is_deleted: whether the next clean deletes it.
        rule: the cleaning rule by which it is deleted or stays.
        takes_rows: whether the next batch adds rows to it, if the batch has rows for its partition path.
        packing: why the batch adds rows to it or not; "" for older versions, which get no rows.
        compaction: in a merge-on-read table, when a compaction takes the file, and why; "" for older versions.
    """

    file: DataFile
    is_deleted: bool
    rule: str
    takes_rows: bool
    packing: str
    compaction: str = ""


def explain_packing(file: DataFile, options: WriteOptions) -> tuple[bool, str]:
    """Whether the next batch adds rows to the file, and why (pure).

    Args:
        file: the newest version of a file group.
        options: options of the sink, for the sizes.
    """
    limit, most = options.sizes.small_file_limit_bytes, options.sizes.max_file_bytes
    if not options.effective_operation.fills_small_files:
        return False, f"{options.effective_operation} adds no rows to files (hoodie.datasource.write.operation)"
    if options.index.type.has_buckets:
        return False, "the hash of a key decides which file takes it, whatever its size (hoodie.index.type=BUCKET)"
    if limit <= 0:
        return False, "packing is off (hoodie.parquet.small.file.limit)"
    if file.size_bytes >= limit:
        return False, f"full enough: {file.size_bytes} bytes, the limit of small files is {limit}"
    if file.size_bytes >= most:
        return False, f"full: {file.size_bytes} bytes of {most}"
    free = most - file.size_bytes
    return True, f"small: takes rows first when a batch has some for this partition path ({free} bytes left)"


def explain_files(table: HudiTable, options: WriteOptions) -> Iterator[FileExplanation]:
    """Every committed data file of the table, partition by partition.

    Raises:
        UnsupportedTableError: the table has a version that this project does not write.
    """
    check_version_written(table.config, "explain the files of")
    snapshot = Snapshot.load(table)
    groups = [group for _, found in snapshot.walk_file_groups() for group in found]
    live = {file.path: group for group in groups for file in group.latest_slice.files}
    compactions = explain_compactions(snapshot, groups, options.compaction)
    for partition in judge_files(table, options.clean):
        for fate in partition.fates:
            takes_rows, packing = False, ""
            if isinstance(fate.file, BaseFile) and fate.file.path in live:
                takes_rows, packing = explain_packing(fate.file, options)
                if not live[fate.file.path].is_plain:
                    takes_rows, packing = False, "its slice has log files, which go on where its rows change"
            compaction = compactions.get(fate.file.path, "")
            yield FileExplanation(fate.file, fate.deleted, fate.rule, takes_rows, packing, compaction)


@dataclass(frozen=True)
class BatchExplanation:
    """The decision of a sink about a batch, and the reason.

    Attributes:
        verdict: ``write``, ``skip`` or ``refuse``.
        reason: the reason in words.
        last: the last batch that the sink committed, or None. It may be decided only: the next batch carries it out.
        before: what the sink ends before the batch.
    """

    verdict: str
    reason: str
    last: CommittedBatch | None
    before: tuple[str, ...] = ()


def explain_batch(table: HudiTable, sink_id: str, batch_id: int, query_id: str | None = None) -> BatchExplanation:
    """Why a batch is written, skipped or refused.

    Args:
        sink_id: ``hoodie.datasource.write.streaming.checkpoint.identifier``.
        batch_id: Spark's id of the batch.
        query_id: id of the streaming query; None means the query that committed last.
    """
    snapshot = Snapshot.load(table)
    settings = HeartbeatSettings()
    pending = load_outlook(snapshot, find_standing_holder(snapshot.storage, settings), settings, may_live=False)
    last = _last_batch(snapshot, pending, sink_id)
    verdict, reason = _judge_batch(snapshot, pending, last, sink_id, batch_id, query_id)
    ended = tuple(str(one) for one in pending if one.fate in (Fate.FINISHED, Fate.CARRIED_OUT, Fate.ROLLED_BACK))
    return BatchExplanation(verdict, reason, last, ended)


def _last_batch(snapshot: Snapshot, pending: Iterable[Outlook], sink_id: str) -> CommittedBatch | None:
    """The last batch of a sink, with those that are decided and not completed: the sink carries them out first."""
    last = find_last_batch(snapshot, sink_id)
    decided = [
        checkpoints_of_commit(one.end.metadata.extra, one.end.metadata.operation)
        for one in pending
        if one.fate is Fate.CARRIED_OUT and one.end is not None
    ]
    return merge_checkpoints([{sink_id: last} if last is not None else {}, *decided]).get(sink_id)


def _judge_batch(
    snapshot: Snapshot,
    pending: Iterable[Outlook],
    last: CommittedBatch | None,
    sink_id: str,
    batch_id: int,
    query_id: str | None,
) -> tuple[str, str]:
    """Verdict and reason."""
    for one in pending:
        if one.fate is Fate.REFUSED:
            return "refuse", str(one)
    query_id = last.query_id if last is not None and query_id is None else query_id
    try:
        verdict = already_committed(last, batch_id, query_id, sink_id)
        if verdict is not Verdict.SKIP:
            check_nothing_undone(snapshot, last, sink_id, batch_id)
    except BatchOrderError as error:
        return "refuse", str(error)
    if verdict is Verdict.SKIP:
        return "skip", f"batch {batch_id} of query {query_id} is committed"
    if last is None:
        return "write", f"no commit names the sink {sink_id!r}: any first batch is fine"
    return "write", f"the last batch committed is {last.batch_id}"
