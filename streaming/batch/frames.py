"""One frame for each batch of a run: whether a second call with a batch's number brings the same rows.

Spark calls a sink once for a batch, and once more in another run of the query, if it does not know that the batch was
finished. So a second call within one run comes from the caller's own code: it repeats the first call, or it brings
another part of the batch. A batch number does not say which. Each process remembers, for each sink of a table, the
frame that it brought to a commit, or found committed.
"""

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from table import threads
from table.errors import BatchOrderError
from table.storage.opening import one_spelling

Run = tuple[str, str]
"""What tells a run of a query from another one, and its value: two runs are compared only by the same means."""


@dataclass(frozen=True, eq=False)
class Frame:
    """The rows of a batch, as its caller has them.

    Attributes:
        rows: the caller's object, not kept alive.
        plan: what frames with equal rows share: Spark's ``semanticHash`` of the analysed plan, which passes over the
            names of columns, and these; None: not known.
        ask_group: gives the job group of the tasks that were asked last; None: not known.
        ask_mark: gives a mark of the session that frames of one run share; None: there is none.
    """

    rows: "weakref.ref[Any] | Callable[[], None]"
    plan: object | None
    ask_group: Callable[[], str | None]
    ask_mark: Callable[[], str | None]

    def find_run(self, group: str | None) -> "Run | None":
        """The run of the query that brings the frame; None: not known.

        Args:
            group: job group of the tasks that read the frame. Spark puts the id of the run there, a UUID. Threads of
                the caller have no job group, and the caller may have set another one.
        """
        if group is not None and _is_uuid(group):
            return "query", group
        mark = self.ask_mark()
        return None if mark is None else ("session", mark)

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
        run: the run of the query; None: not known.
        frame: the rows.
        owner: the writer.
        operation: of the batch.
    """

    query_id: str | None
    batch_id: int
    run: Run | None
    frame: Frame
    owner: str
    operation: str | None = None

    def is_same(self, other: "Taken") -> bool:
        """Whether the other one brings the same frame, for the same operation."""
        return self.operation == other.operation and self.frame.is_same(other.frame)


def find_other(taken: Iterable[Taken], now: Taken) -> Taken | None:
    """The frame of the same batch that differs from this one, or its operation; None: this one is a repeat (pure).

    Another run of the query brings a batch as another frame. It is another run only where both are known: a batch is
    refused rather than skipped.

    Args:
        taken: what this process remembers of the sink.
        now: the frame at hand.
    """
    for known in taken:
        is_batch = (known.query_id, known.batch_id) == (now.query_id, now.batch_id)
        if is_batch and not _are_two(known.run, now.run) and not known.is_same(now):
            return known
    return None


def _are_two(one: Run | None, other: Run | None) -> bool:
    return one is not None and other is not None and one[0] == other[0] and one[1] != other[1]


def _is_uuid(text: str) -> bool:
    try:
        return bool(UUID(text))
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


ANY_ROWS = Frame(lambda: None, "any", lambda: None, lambda: None)
"""The frame of a caller whose rows are not compared: a number that is committed is skipped, whatever it brings."""

FRAMES = TakenFrames()
"""Of this process: two sinks of one name on one table know of each other."""


def check_is_repeat(table: str, sink_id: str, now: Taken) -> None:
    """Lets a batch be skipped that is committed, unless it brings another frame than the one that was; remembers it.

    Args:
        table: address of the table.
        sink_id: name of the sink.
        now: the frame at hand.

    Raises:
        BatchOrderError: an earlier call in this run of the query brought another frame, or had another operation.
    """
    now = replace(now, run=now.frame.find_run(now.frame.ask_group()))
    other = find_other(FRAMES.find(table, sink_id), now)
    if other is not None and other.frame.is_same(now.frame):
        raise BatchOrderError(
            f"batch {now.batch_id} of sink {sink_id!r} is committed as {other.operation}, and comes a second time as "
            f"{now.operation}: a number is one commit of {table!r}. To replace rows, use upsert; to delete rows in the "
            "same batch, mark them by a column _hoodie_is_deleted. Or give each operation a sink of its own, all with "
            "hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL and each with its own "
            "hoodie.datasource.write.streaming.checkpoint.identifier"
        )
    if other is not None:
        who = "this sink" if other.owner == now.owner else "another sink of this process with the same name"
        raise BatchOrderError(
            f"batch {now.batch_id} of sink {sink_id!r} is committed, and comes a second time with other rows: {who} "
            f"wrote it with another DataFrame in this run of the query. A sink takes one DataFrame of each batch of "
            f"{table!r}. Union the parts (first.unionByName(second)), and undo the commit of this batch before the "
            "stream starts again (hudistream rollback PATH INSTANT --force), which has one part alone. Or write each "
            "part by a HudiSink of its own, all with hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL and "
            "each with its own hoodie.datasource.write.streaming.checkpoint.identifier: the sink of the part that is "
            "there keeps the name that it has, and skips it"
        )
    FRAMES.add(table, sink_id, now)
