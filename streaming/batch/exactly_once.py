"""Checks, before anything is written, which writer a batch belongs to and whether it was committed already."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from streaming.batch.frames import FRAMES, Frame, Taken, check_is_repeat
from streaming.batch.ledger import BatchLedger
from streaming.batch.workers import Batch
from table.errors import BatchOrderError, InvalidConfigError
from table.log import get_logger
from table.options.operation import Operation
from table.options.write_groups import DEFAULT_SINK_ID
from table.options.write_options import WriteOptions
from table.snapshot import Snapshot
from table.transaction.checkpoint import CommittedBatch, Verdict, already_committed
from table.transaction.heartbeat import WriterIdentity
from table.transaction.last_batch import check_nothing_undone
from table.transaction.lease import Lease
from table.transaction.positions import Positions

log = get_logger("hudistream.sink")


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


def check_is_of_checkpoint(expected: str | None, query_id: str | None, batch_id: int | None) -> None:
    """Refuses positions of another query.

    Args:
        expected: the query whose checkpoint ``hudistream.checkpoint.location`` is.
        query_id: the query whose rows the tasks saw; None where they cannot know.
        batch_id: of the batch.

    Raises:
        InvalidConfigError: they differ.
    """
    if query_id not in (None, expected):
        raise InvalidConfigError(
            f"hudistream.checkpoint.location is the checkpoint of the query {expected}, and batch {batch_id} is of the "
            f"query {query_id}: give the checkpointLocation of the query that this sink belongs to; nothing of the "
            "batch is visible"
        )


@dataclass(frozen=True)
class Turn:
    """A batch that is to be written.

    Attributes:
        identity: its writer.
        entry: what its commit will record about it; None outside a stream.
        frame: its rows as the caller's frame, or None.
        continues: whether it is the first batch of a query that goes on where another one ended. It is committed even
            if it has no rows: later batches of the query are judged by that commit.
        find_query: as of the `Batch`.
    """

    identity: WriterIdentity
    entry: CommittedBatch | None
    frame: Frame | None = None
    continues: bool = False
    find_query: Callable[[], str | None] | None = None

    def build_entry(self, query_id: str | None, operation: Operation, *, has_rows: bool) -> CommittedBatch | None:
        """What the commit records about the batch; None outside a stream.

        Args:
            query_id: the query whose rows the tasks wrote; None where they cannot know. It counts more than the id that
                was loaded before, which may be of another query.
            operation: of the batch.
            has_rows: whether tasks wrote rows: without one, no task saw the query.

        Raises:
            InvalidConfigError: the positions come from the checkpoint of another query; or the tasks do not know the
                query, and several are active.
        """
        entry = self.entry
        if entry is None:
            return None
        if query_id is None and has_rows and self.find_query is not None:
            query_id = self.find_query()
        if entry.positions:
            check_is_of_checkpoint(entry.query_id, query_id, entry.batch_id)
        return replace(entry, query_id=query_id or entry.query_id, operation=operation.hudi_name)

    def remember(self, table: str, entry: CommittedBatch | None, group: str | None) -> None:
        """Remembers the frame before the batch may become visible.

        Args:
            table: address of the table.
            entry: what the commit records.
            group: job group of the tasks that wrote the rows; None where they cannot know.
        """
        if self.frame is not None and entry is not None:
            run, owner = self.frame.find_run(group), self.identity.owner
            taken = Taken(entry.query_id, entry.batch_id, run, self.frame, owner, entry.operation)
            FRAMES.add(table, self.identity.sink_id, taken)

    def forget(self, table: str) -> None:
        """Forgets the frame: nothing of the batch is visible."""
        if self.frame is not None:
            FRAMES.drop(table, self.identity.sink_id, self.identity.owner)


def find_turn(
    ledger: BatchLedger, snapshot: Snapshot, batch: Batch, operation: Operation, who: tuple[WriterIdentity, Lease]
) -> Turn | None:
    """The batch as it is to be written; None where it was committed before.

    Before a batch is skipped or refused because of its query id, the query id is loaded again.

    Args:
        ledger: the committed batches.
        snapshot: the table as it is now.
        batch: at hand.
        operation: of the batch.
        who: the writer as it was known, and its hold on the table.

    Raises:
        BatchOrderError: the batch id is lower than the last committed one, or equal but of another query; or its query
            does not go on where the last one ended; or the batch is committed, and has another end, other rows or
            another operation.
    """
    ledger.look_at(snapshot)
    identity, lease = who
    if batch.batch_id is None:
        return Turn(identity, None)
    try:
        found = _find_entry(ledger, snapshot, batch, identity)
    except BatchOrderError:
        found = None
        if batch.ask_query_id is None:
            raise
    if found is None and batch.ask_query_id is not None:
        identity = replace(identity, query_id=batch.ask_query_id())
        lease.hold(identity)
        found = _find_entry(ledger, snapshot, batch, identity)
    if found is None:
        if batch.frame is not None:
            name = operation.hudi_name
            now = Taken(identity.query_id, batch.batch_id, None, batch.frame, identity.owner, name)
            check_is_repeat(snapshot.storage.base_uri, identity.sink_id, now)
        return None
    end = None if batch.positions is None else batch.positions.load_end()
    entry, continues = found
    return Turn(identity, replace(entry, positions=end or ()), batch.frame, continues, batch.find_query)


def _find_entry(
    ledger: BatchLedger, snapshot: Snapshot, batch: Batch, identity: WriterIdentity
) -> tuple[CommittedBatch, bool] | None:
    """What a commit of this batch records, and whether its query continues another one; None: it was committed."""
    if batch.batch_id is None:
        return None
    last = ledger.find_last_batch(snapshot, identity.sink_id)
    load_start = None if batch.positions is None else batch.positions.load_start

    def load_end(number: int) -> Positions | None:
        if batch.positions is None or batch.batch_id is None:
            return None
        if number == batch.batch_id:
            return batch.positions.load_end()
        return batch.positions.load_start() if number + 1 == batch.batch_id else None

    verdict = already_committed(last, batch.batch_id, identity.query_id, identity.sink_id, load_start, load_end)
    if verdict is Verdict.SKIP:
        return None
    entry = CommittedBatch(batch.batch_id, identity.query_id, epoch=0 if last is None else last.epoch)
    if verdict is Verdict.CONTINUE:
        log.info(
            "query_continued",
            table=snapshot.storage.base_uri,
            sink_id=identity.sink_id,
            query_id=identity.query_id,
            before=None if last is None else last.query_id,
        )
        return replace(entry, epoch=entry.epoch + 1), True
    check_nothing_undone(snapshot, last, identity.sink_id, batch.batch_id)
    return entry, False
