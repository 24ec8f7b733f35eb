"""One frame for each batch of a run: whether a second call with a batch's number brings the same rows.

Spark calls a sink once for a batch, and once more in another run of the query, if it does not know that the batch was
finished. So a second call within one run comes from the caller's own code: it repeats the first call, or it brings
another part of the batch. A batch number does not tell which. Each process remembers, for each sink of a table, the
frame that it brought to a commit, or found committed.
"""

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from table import threads
from table.errors import BatchOrderError
from table.storage.opening import one_spelling


@dataclass(frozen=True, eq=False)
class Frame:
    """The rows of a batch, as its caller has them.

    Attributes:
        rows: the caller's object, not kept alive.
        plan: a number that frames with an equal analysed plan share (Spark's ``semanticHash``); None: not known.
        ask_run: tells the run of the query that the sink saw last; None: not known.
    """

    rows: "weakref.ref[object]"
    plan: int | None
    ask_run: Callable[[], str | None]

    def is_same(self, other: "Frame") -> bool:
        """Whether the other frame is this object, or has the same plan."""
        mine = self.rows()
        return (mine is not None and mine is other.rows()) or (self.plan is not None and self.plan == other.plan)


@dataclass(frozen=True, eq=False)
class Taken:
    """A frame that one writer brought to a commit, or found committed.

    Attributes:
        query_id: the streaming query; None outside a stream.
        batch_id: number of the batch.
        run_id: the run of the query; None: not known.
        frame: the rows.
        owner: the writer.
    """

    query_id: str | None
    batch_id: int
    run_id: str | None
    frame: Frame
    owner: str


def find_other(taken: Iterable[Taken], now: Taken) -> Taken | None:
    """The frame of the same batch that differs from this one; None: this one is a repeat (pure).

    Another run of the query brings a batch as another frame. It is another run only where both are known: Spark's ids
    of runs are UUIDs, and code of the caller may have put something else in their place.

    Args:
        taken: what this process remembers of the sink.
        now: the frame at hand.
    """
    for known in taken:
        is_batch = (known.query_id, known.batch_id) == (now.query_id, now.batch_id)
        runs = {run for run in (known.run_id, now.run_id) if _is_run(run)}
        if is_batch and len(runs) < 2 and not known.frame.is_same(now.frame):
            return known
    return None


def _is_run(run_id: str | None) -> bool:
    try:
        return run_id is not None and bool(UUID(run_id))
    except ValueError:
        return False


class TakenFrames:
    """What a process remembers: of each sink of a table the last batch, and of each of its writers one frame."""

    def __init__(self) -> None:
        self._lock = threads.make_lock()
        self._known: dict[tuple[str, str], dict[str, Taken]] = {}

    def find(self, table: str, sink_id: str) -> list[Taken]:
        """The frames of the last batch of a sink.

        Args:
            table: address of the table, in any spelling.
            sink_id: name of the sink.
        """
        with self._lock:
            return list(self._known.get((one_spelling(table), sink_id), {}).values())

    def add(self, table: str, sink_id: str, taken: Taken) -> None:
        """Remembers a frame, in the place of the writer's last one. Frames of other batches are forgotten."""
        key = one_spelling(table), sink_id
        batch = taken.query_id, taken.batch_id
        with self._lock:
            before = self._known.get(key, {})
            kept = {owner: one for owner, one in before.items() if (one.query_id, one.batch_id) == batch}
            self._known[key] = {**kept, taken.owner: taken}

    def drop(self, table: str, sink_id: str, owner: str) -> None:
        """Forgets the frame of a writer: nothing of it is visible."""
        with self._lock:
            self._known.get((one_spelling(table), sink_id), {}).pop(owner, None)


FRAMES = TakenFrames()
"""Of this process: two sinks of one name on one table know of each other."""


def check_is_repeat(table: str, sink_id: str, now: Taken) -> None:
    """Lets a batch be skipped that is committed, unless it brings another frame than the one that was; remembers it.

    Args:
        table: address of the table.
        sink_id: name of the sink.
        now: the frame at hand.

    Raises:
        BatchOrderError: an earlier call in this run of the query brought another frame.
    """
    now = replace(now, run_id=now.frame.ask_run())
    other = find_other(FRAMES.find(table, sink_id), now)
    if other is not None:
        who = "this sink" if other.owner == now.owner else "another sink of this process with the same name"
        raise BatchOrderError(
            f"batch {now.batch_id} of sink {sink_id!r} is committed, and comes a second time with other rows: {who} "
            f"wrote it with another DataFrame in this run of the query. A sink takes one DataFrame of each batch of "
            f"{table!r}. Union the parts (first.unionByName(second)), and undo the commit of this batch before the "
            "stream starts again (hudistream rollback PATH INSTANT --force), which has one part alone. Or write each "
            "part by a HudiSink of its own with another hoodie.datasource.write.streaming.checkpoint.identifier: the "
            "part that is there keeps the name that it has, and is skipped"
        )
    FRAMES.add(table, sink_id, now)
