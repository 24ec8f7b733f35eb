"""Who writes a pending instant: this writer, a live one, or a dead one (pure)."""

from enum import Enum

from table.transaction.heartbeat import WriterIdentity


class Standing(Enum):
    """The writer of an instant, as this writer sees it."""

    MINE = "mine"
    ALIVE = "alive"
    DEAD = "dead"


def judge_writer(live: WriterIdentity | None, me: WriterIdentity) -> Standing:
    """How the writer of a pending instant stands to the holder of the table's lease.

    Args:
        live: whom a fresh heartbeat names; None without one. An empty sink id is another engine.
        me: who holds the lease.

    Returns:
        DEAD also for a writer that knows leases: it does not hold the table any more, and obeys the end record.
    """
    if live is None:
        return Standing.DEAD
    if live.owner == me.owner or live.is_same_stream(me):
        return Standing.MINE
    return Standing.DEAD if live.owner else Standing.ALIVE
