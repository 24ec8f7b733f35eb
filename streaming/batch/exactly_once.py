"""Checks, before anything is written, which writer a batch belongs to and whether it was committed already."""

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
    """Refuses a numbered batch if another writer's batches could be mistaken for it.

    Two writers that both have the default name and both count from 0 would take each other's batches for their own, and
    skip them. A streaming query is identified by its query id, and a single writer finds only its own batch numbers.

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
    """The identity of the batch's writer; None where the batch was committed before.

    Before a batch is skipped or refused because of its query id, the query id is loaded again.

    Args:
        ledger: the committed batches.
        snapshot: the table as it is now.
        batch: at hand.
        who: the writer as it was known, and its hold on the table.

    Raises:
        CommitConflictError: the batch id is lower than the last committed one, or equal but of another query.
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
