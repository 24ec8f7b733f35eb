"""A pipeline that names no operation must not change what it does: once that meant insert, now it means upsert.

Whoever names none, and inserted until now, is refused until the operation is named.
"""

from table.errors import InvalidConfigError
from table.options.operation import Operation
from table.snapshot import Snapshot
from table.timeline.instant import State
from table.transaction.checkpoint import CommittedBatch
from table.transaction.commit import WRITER_KEY
from table.transaction.heartbeat import decode_identity


def check_goes_on(last: CommittedBatch | None, sink_id: str) -> None:
    """Refuses the batch of a stream that names no operation and whose last batch was inserted.

    Args:
        last: the last batch that the sink committed, or None.
        sink_id: name of the sink.

    Raises:
        InvalidConfigError: names both ways out.
    """
    if last is None:
        return
    # commits of ours that do not tell were made when a name was needed for anything but an insert
    if last.operation == Operation.INSERT.hudi_name or (last.operation is None and last.recorded):
        _refuse(sink_id, f"batch {last.batch_id}")


def check_writes_go_on(snapshot: Snapshot, sink_id: str) -> None:
    """The same for a write outside of a stream: the sink's last such write on the active timeline counts.

    Args:
        snapshot: the table; its timeline its active timeline.
        sink_id: name of the sink.

    Raises:
        InvalidConfigError: names both ways out.
    """
    for instant in reversed(snapshot.timeline.completed_writes):
        profile = snapshot.commits.find_filled(instant.at(State.INFLIGHT))
        if profile is None:
            continue
        writer = decode_identity(profile.extra.get(WRITER_KEY, "").encode())
        if writer is None or writer.sink_id != sink_id or writer.query_id is not None:
            continue
        if profile.operation == Operation.INSERT.hudi_name:
            _refuse(sink_id, f"commit {instant.time}")
        return


def _refuse(sink_id: str, what: str) -> None:
    raise InvalidConfigError(
        f"hoodie.datasource.write.operation is not given, which means upsert, but the last write of sink {sink_id!r} "
        f"({what}) was an insert. To add every row as before, set hoodie.datasource.write.operation=insert; to keep "
        "one row per key, set hoodie.datasource.write.operation=upsert. Nothing of this batch was written"
    )
