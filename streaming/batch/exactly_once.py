"""Whose batch is it, and was it written before: asked before anything is written."""

from dataclasses import replace

from streaming.batch.ledger import BatchLedger
from streaming.batch.workers import Batch
from table.errors import BatchOrderError, InvalidConfigError
from table.options.write_groups import DEFAULT_SINK_ID
from table.options.write_options import WriteOptions
from table.snapshot import Snapshot
from table.transaction.checkpoint import Verdict, already_committed
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import Lease


def check_name(options: WriteOptions, batch: Batch) -> None:
    """Refuses a numbered batch that nothing but the default name tells from the batches of another writer.

    Two writers of that name that both count from 0 would take each other's batches for their own, and skip them. A
    streaming query is told by its id, and a single writer finds the numbers of nobody else.

    Args:
        options: of the sink.
        batch: at hand.

    Raises:
        InvalidConfigError: the sink has no name of its own; nothing was written.
    """
    is_told = batch.batch_id is None or batch.query_id is not None or batch.ask_query_id is not None
    if options.concurrency.is_shared and options.sink.id == DEFAULT_SINK_ID and not is_told:
        raise InvalidConfigError(
            f"batch {batch.batch_id} has a number, and the sink has the default name {DEFAULT_SINK_ID!r}: with several "
            "writers, a batch of the same number of another sink would be taken for it. Give each sink a name of its "
            "own (hoodie.datasource.write.streaming.checkpoint.identifier), or leave batch_id out"
        )


def find_writer(
    ledger: BatchLedger, snapshot: Snapshot, batch: Batch, who: tuple[WriterIdentity, Lease]
) -> WriterIdentity | None:
    """Who writes the batch; None where it was written before.

    Before a batch is skipped or refused because of its query, the query is asked for anew.

    Args:
        ledger: knows the committed batches.
        snapshot: the table as it is now.
        batch: at hand.
        who: the writer as it was known, and its hold on the table.

    Raises:
        CommitConflictError: the batch is not above the last one, and is not the same.
    """
    identity, lease = who
    try:
        committed = _is_committed(ledger, snapshot, batch.batch_id, identity)
    except BatchOrderError:
        committed = True
        if batch.ask_query_id is None:
            raise
    if committed and batch.ask_query_id is not None:
        identity = replace(identity, query_id=batch.ask_query_id())
        lease.hold(identity)
        committed = _is_committed(ledger, snapshot, batch.batch_id, identity)
    return None if committed else identity


def _is_committed(ledger: BatchLedger, snapshot: Snapshot, batch_id: int | None, identity: WriterIdentity) -> bool:
    if batch_id is None:
        return False
    last = ledger.find_last_batch(snapshot, identity.sink_id)
    if already_committed(last, batch_id, identity.query_id, identity.sink_id) is Verdict.SKIP:
        return True
    ledger.check_gap(snapshot, last, identity.sink_id, batch_id)
    return False
