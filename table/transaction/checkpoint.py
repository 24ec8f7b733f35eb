"""Decides from the commits' extra metadata whether a batch has been committed (pure).

``extraMetadata`` has two keys. Hudi's own sink reads the first: a map from sink id to batch id (HoodieStreamingSink).
The second is written by this project. It adds the id of the streaming query, which stays the same after a restart but
not with a new checkpoint, and the positions of the query's sources after the batch.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from table.errors import BatchOrderError
from table.transaction.positions import Positions, canonical, find_break

HUDI_KEY = "_hudi_streaming_sink_checkpoint"
OUR_KEY = "hudistream.checkpoint"
REPLAY_SINK = "hudistream-replay"  # in whose name bad rows are replayed: no stream
SINK_KEY = "hudistream.sink"  # the sink whose batch the commit wrote; absent in writes outside a stream


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """The last batch that a sink committed.

    Attributes:
        batch_id: Spark's id of the micro-batch.
        query_id: id of the streaming query; None if it was not recorded (Hudi's own sink), or if the sink was called
            outside a stream.
        recorded: whether a query id was recorded at all.
        operation: Hudi's name of the operation, such as ``UPSERT``; None if the commit does not record it.
        positions: position of each source of the query after the batch; empty if not recorded.
        epoch: how often a new query, with its own batch ids, has continued this sink's stream.
    """

    batch_id: int
    query_id: str | None = None
    recorded: bool = True
    operation: str | None = None
    positions: Positions = ()
    epoch: int = 0

    @property
    def order(self) -> tuple[int, int]:
        """Sort key by which later batches of a sink are greater."""
        return self.epoch, self.batch_id


Checkpoints = Mapping[str, CommittedBatch]


def decode_checkpoints(extra: Mapping[str, str]) -> dict[str, CommittedBatch]:
    """Sink id -> last batch, from one commit's extra metadata. Entries that cannot be read are left out."""
    found: dict[str, CommittedBatch] = {}
    for sink_id, batch_id in _json_map(extra.get(HUDI_KEY)).items():
        if str(batch_id).lstrip("-").isdigit():
            found[sink_id] = CommittedBatch(int(str(batch_id)), None, recorded=False)
    for sink_id, entry in _json_map(extra.get(OUR_KEY)).items():
        if isinstance(entry, dict) and isinstance(entry.get("batch_id"), int):
            ours = _decode_batch(entry)
            # a commit of Hudi's own sink for the same id may be newer than the entry of this project in it
            if sink_id not in found or ours.batch_id >= found[sink_id].batch_id:
                found[sink_id] = ours
    return found


def checkpoints_of_commit(extra: Mapping[str, str], operation: str) -> dict[str, CommittedBatch]:
    """As `decode_checkpoints`; the commit's own batch gets the commit's operation.

    Args:
        extra: the commit's extra metadata.
        operation: operation of the commit, such as ``UPSERT``.
    """
    found, own = decode_checkpoints(extra), batch_of_commit(extra)
    if own is not None:
        found[own[0]] = replace(own[1], operation=operation)
    return found


def steps_to_replay(first: int) -> str:
    """How a stream is made to write batches again that were undone by hand (pure).

    Spark starts with the last batch of ``offsets``, whatever ``commits`` has. So the batches after the first one go
    from there, too, and Spark plans them anew. It keeps the offsets of so many batches as
    ``spark.sql.streaming.minBatchesToRetain`` says, 100 by default.

    Args:
        first: the first batch that is to come again.
    """
    return (
        f"if the stream's checkpoint still has offsets/{first}, delete commits/{first}, offsets/{first + 1} and all "
        "that is later in these two folders (on a disk their hidden .crc files, too), and start the stream: it replays "
        "them. All tables that the stream writes "
        f"have to be taken back to before batch {first}. Without offsets/{first}, write the rows again as a batch job"
    )


def batch_of_commit(extra: Mapping[str, str]) -> tuple[str, CommittedBatch] | None:
    """The batch that a commit wrote: sink id and batch. None for a write outside a stream.

    Every commit holds the entries of all sinks. `SINK_KEY` names the sink of its own batch.
    """
    sink_id = extra.get(SINK_KEY)
    found = decode_checkpoints(extra)
    if sink_id is not None:
        return (sink_id, found[sink_id]) if sink_id in found else None
    return next(iter(found.items())) if len(found) == 1 and OUR_KEY not in extra else None


def _json_map(text: str | None) -> dict[str, object]:
    try:
        document = json.loads(text or "{}")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def encode_checkpoints(checkpoints: Checkpoints) -> dict[str, str]:
    """The extra metadata with both keys."""
    ours = {sink_id: _encode_batch(batch) for sink_id, batch in checkpoints.items() if batch.recorded}
    hudis = {sink_id: str(batch.batch_id) for sink_id, batch in checkpoints.items()}
    return {HUDI_KEY: json.dumps(hudis), OUR_KEY: json.dumps(ours)}


def _encode_batch(batch: CommittedBatch) -> dict[str, object]:
    known: dict[str, object] = {} if batch.operation is None else {"operation": batch.operation}
    if batch.positions:
        known["positions"] = [None if position is None else json.loads(position) for position in batch.positions]
    if batch.epoch:
        known["epoch"] = batch.epoch
    return {"batch_id": batch.batch_id, "query_id": batch.query_id, **known}


def _decode_batch(entry: Mapping[str, Any]) -> CommittedBatch:
    operation, positions, epoch = entry.get("operation"), entry.get("positions"), entry.get("epoch")
    return CommittedBatch(
        entry["batch_id"],
        entry.get("query_id"),
        operation=operation if isinstance(operation, str) else None,
        positions=tuple(None if each is None else canonical(json.dumps(each)) for each in positions)
        if isinstance(positions, list)
        else (),
        epoch=epoch if isinstance(epoch, int) else 0,
    )


def merge_checkpoints(commits: Iterable[Checkpoints]) -> dict[str, CommittedBatch]:
    """The highest batch of each sink over several commits, oldest commit first."""
    merged: dict[str, CommittedBatch] = {}
    for checkpoints in commits:
        for sink_id, batch in checkpoints.items():
            known = merged.get(sink_id)
            if known is None or batch.order > known.order:
                merged[sink_id] = batch
            elif batch.order == known.order:  # copied by a later commit, which may not know the operation
                merged[sink_id] = replace(batch, operation=batch.operation or known.operation)
    return merged


class Verdict(Enum):
    """How to treat a batch."""

    WRITE = "write"
    SKIP = "skip"
    CONTINUE = "continue"  # the batch is written: another query continues exactly where the last one ended


def already_committed(
    last: CommittedBatch | None,
    batch_id: int,
    query_id: str | None,
    sink_id: str,
    load_start: Callable[[], Positions | None] | None = None,
    load_end: Callable[[int], Positions | None] | None = None,
) -> Verdict:
    """Whether a batch must be written or was committed before. No batch is skipped or written twice without notice.

    A batch of the same query is the batch that was committed only if it ends where that one ended. Spark plans a batch
    anew, with other rows, if the checkpoint has lost its newest offsets.

    Another query has another checkpoint. Its batch is accepted with any number if its sources start at the positions
    after the last batch. Once that has happened, batch ids of different queries cannot be compared any more.

    Args:
        last: the last batch of this sink; None: any first id is accepted.
        batch_id: id of the batch to judge.
        query_id: query of that batch; None outside a stream.
        sink_id: id of the sink, for the message.
        load_start: loads the positions of the query's sources before the batch. Called only if the query is another.
        load_end: loads where the query's checkpoint has its sources after a batch of this id. Called only if the query
            is the same, for the last batch.

    Raises:
        BatchOrderError: the checkpoint has another end of the last batch than its commit; the sources of another query
            start at other positions; or their positions are not known, and the id is not above the last one, or the
            ids cannot be compared.
    """
    if last is None:
        return Verdict.WRITE
    same_query = last.recorded and last.query_id == query_id
    if not same_query and last.positions and load_start is not None:
        start = load_start()
        if start is not None:
            broken = find_break(last.positions, start)
            if broken is None:
                return Verdict.CONTINUE
            raise BatchOrderError(
                f"batch {batch_id} of sink {sink_id!r} comes from another query ({query_id}) than the last batch, "
                f"{last.batch_id} ({last.query_id}), and does not go on where that one ended: {broken}. Start the "
                "stream with an empty checkpoint and startingOffsets from hudistream.starting_offsets(path); or, if "
                "these rows are to be written, give the sink another "
                "hoodie.datasource.write.streaming.checkpoint.identifier"
            )
    if same_query and batch_id >= last.batch_id and last.positions and load_end is not None:
        _check_same_end(last, sink_id, load_end(last.batch_id))
    if batch_id > last.batch_id and (same_query or not last.epoch):
        return Verdict.WRITE
    if same_query and batch_id == last.batch_id:
        return Verdict.SKIP
    reason = (
        "the stream went back behind its own last commit"
        if same_query
        else f"that batch came from another query ({last.query_id if last.recorded else 'not recorded'}), "
        f"this one is {query_id}: a new checkpoint, or another stream"
    )
    relation = "cannot be compared with" if batch_id > last.batch_id else "is not above"
    raise BatchOrderError(
        f"batch {batch_id} of sink {sink_id!r} {relation} batch {last.batch_id}, which is committed: {reason}. "
        "Start the stream from the checkpoint that wrote the table. If that is gone, or the stream had none, give the "
        "stream a checkpointLocation, and choose one: (1) delete the table, and load everything anew; (2) give the "
        "sink another hoodie.datasource.write.streaming.checkpoint.identifier, and the source is read again: with an "
        "ordering field, an upsert leaves the table as it is; without one, readers see older values until the stream "
        "has caught up; an insert doubles all rows; (3) with Kafka, where both sinks name the "
        "checkpointLocation of their query in hudistream.checkpoint.location, the new query goes on where the last one "
        "ended"
    )


def _check_same_end(last: CommittedBatch, sink_id: str, planned: Positions | None) -> None:
    """Refuses a query whose checkpoint and whose last commit say different things of one batch.

    Args:
        planned: positions after the last batch by the checkpoint; None: it does not say.

    Raises:
        BatchOrderError: names the offsets between the two.
    """
    broken = None if planned is None else find_break(last.positions, planned, "the checkpoint has its end at")
    if broken is None:
        return
    raise BatchOrderError(
        f"batch {last.batch_id} of sink {sink_id!r} is committed, and the checkpoint of its query ({last.query_id}) "
        f"has another batch of that number: {broken}. The checkpoint has lost its newest offsets, or is an older copy, "
        "and Spark has planned the batch anew. Undo the commit of that batch (hudistream rollback PATH INSTANT "
        "--force) and start the stream: it writes the batch as it is planned now. Or start a Kafka stream with an "
        "empty checkpoint and startingOffsets from hudistream.starting_offsets(path): it goes on where the table ends"
    )


def next_checkpoints(carried: Checkpoints, sink_id: str, batch: CommittedBatch) -> dict[str, CommittedBatch]:
    """The entries of the next commit: all known entries, and the entry of this batch."""
    return {**carried, sink_id: batch}
