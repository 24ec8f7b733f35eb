"""Judges the writer of a pending instant: this writer, another live writer, or a dead one (pure)."""

from enum import Enum

from table.transaction.heartbeat import WriterIdentity


class Standing(Enum):
    """The writer of an instant, as this writer sees it."""

    MINE = "mine"
    ALIVE = "alive"
    DEAD = "dead"


class Beside(Enum):
    """Which other writers may be writing a table, besides this holder of its lease."""

    NO_WRITER = "no writer"
    OTHER_ENGINES = "other engines"  # the holder is about to open the table for others; engines of Hudi know no leases
    MEMBERS = "members"


def judge_writer(live: WriterIdentity | None, me: WriterIdentity, *, shared: bool = False) -> Standing:
    """The standing of a pending instant's writer, as seen by a holder of the table's lease.

    Args:
        live: the writer that a fresh heartbeat names; None without a heartbeat. An empty sink id means another engine.
        me: the holder of the lease.
        shared: whether other writers hold the lease, too.

    Returns:
        MINE also for an earlier run of the same stream. Where the lease is not shared, DEAD also for a writer that
        knows leases: it does not hold the table any more, and obeys the end record.
    """
    if live is None:
        return Standing.DEAD
    if live.owner == me.owner or live.is_same_stream(me):
        return Standing.MINE
    return Standing.DEAD if live.owner and not shared else Standing.ALIVE


def may_write(writer: WriterIdentity | None, beside: Beside) -> bool:
    """Whether a live writer may write beside this one.

    Args:
        writer: the live writer of a pending instant; None: there is none.
        beside: which other writers may be writing.
    """
    if writer is None or beside is Beside.MEMBERS:
        return True
    return beside is Beside.OTHER_ENGINES and not writer.sink_id
