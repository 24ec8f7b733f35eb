"""Finds out whether an earlier attempt at a batch may be visible, after an attempt that failed before it looked."""

from streaming.batch.failed_batch import BatchProgress
from streaming.batch.ledger import BatchLedger
from streaming.batch.workers import Batch
from table.config.table_config import load_table_config
from table.errors import BatchOrderError, CommitOutcomeUnknownError, HudiError, StorageError, TableHeldError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.timeline.end_record import find_end
from table.timeline.instant import WRITE_ACTIONS, Instant
from table.transaction.checkpoint import checkpoints_of_commit
from table.transaction.heartbeat import WriterIdentity, decode_identity, heartbeat_path

log = get_logger("hudistream.sink")


def look_for_earlier_attempt(
    progress: BatchProgress,
    storage: Storage,
    ledger: BatchLedger,
    batch: Batch,
    me: WriterIdentity,
    error: Exception,
) -> bool:
    """Notes whether a batch that failed before it was looked for is known to be invisible (`BatchProgress.is_new`).

    Args:
        progress: how far the batch is.
        storage: of the table.
        ledger: the committed batches.
        batch: the batch; without a number it is not written again.
        me: the writer.
        error: what the attempt raised.

    Returns:
        Whether the batch is to be skipped: its caller numbers the batches, the table has this one, and the attempt only
        met another writer that holds the table. To skip it needs no hold.
    """
    if batch.batch_id is None or progress.is_new:
        return False
    is_numbered = batch.query_id is None and batch.sink_id is None
    if isinstance(error, TableHeldError) and is_numbered and _is_committed(storage, ledger, batch.batch_id, me):
        log.info("batch_skipped", table=storage.base_uri, batch_id=batch.batch_id, sink_id=me.sink_id)
        return True
    progress.is_new = not may_be_visible(storage, ledger, batch.batch_id, me, error)
    return False


def _is_committed(storage: Storage, ledger: BatchLedger, batch_id: int, me: WriterIdentity) -> bool:
    """Whether the last batch of the sink has this number and was numbered by a caller, too."""
    try:
        config = load_table_config(storage)
        last = None
        if config is not None:
            last = ledger.find_last_batch(Snapshot.load(HudiTable(storage, config)), me.sink_id)
    except HudiError:
        return False
    return last is not None and last.batch_id == batch_id and last.query_id is None


def may_be_visible(storage: Storage, ledger: BatchLedger, batch_id: int, me: WriterIdentity, error: Exception) -> bool:
    """Whether rows of a batch may be in the table although this attempt wrote none.

    The table is looked at, which costs some requests. Where the store fails the answer is yes: nobody knows.

    Args:
        storage: of the table.
        ledger: the committed batches.
        batch_id: number of the batch.
        me: the writer.
        error: what the attempt raised.
    """
    if isinstance(error, BatchOrderError):
        return False  # the records were read, and they refuse the number
    if isinstance(error, CommitOutcomeUnknownError) or (isinstance(error, StorageError) and not _is_refusal(error)):
        return True
    try:
        config = load_table_config(storage)
        if config is None:
            return False  # where there is no table there is no batch
        snapshot = Snapshot.load(HudiTable(storage, config))
        last = ledger.find_last_batch(snapshot, me.sink_id)
        # a lower number than the last one is refused, whatever was committed under it
        if last is not None and last.batch_id == batch_id:
            return True
        pending = snapshot.timeline.pending_of(*WRITE_ACTIONS)
        return any(_may_become_visible(storage, instant, batch_id, me) for instant in pending)
    except (HudiError, FileNotFoundError):
        return True


def _is_refusal(error: StorageError) -> bool:
    """Whether the store answered that it does not do it: then it can be asked for more."""
    cause = error.__cause__
    return isinstance(cause, PermissionError | FileNotFoundError | NotADirectoryError)


def _may_become_visible(storage: Storage, instant: Instant, batch_id: int, me: WriterIdentity) -> bool:
    """Whether a pending instant is decided to be this batch, or was begun by this writer or this query."""
    end = find_end(storage, instant.time, instant.action)
    if end is not None:
        if not end.is_commit:
            return False
        found = checkpoints_of_commit(end.metadata.extra, end.metadata.operation).get(me.sink_id)
        return found is not None and found.batch_id == batch_id
    try:
        writer = decode_identity(storage.read(heartbeat_path(instant.time)))
    except FileNotFoundError:
        return False
    return writer is not None and (writer.owner == me.owner or writer.is_same_stream(me))
