"""Who distributes the rows of a batch: the engine, as the batch's steps see it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from streaming.plan.task_plan import TaskPlan
from streaming.plan.task_result import TaskResult
from table.keys.keygen import KeyExpressions
from table.options.operation import Operation
from table.services.service import Spread


class Workers(Protocol):
    """Holds the rows of one batch, moves them to tasks and has them written."""

    @property
    def schema(self) -> pa.Schema:
        """Columns of the batch (Arrow)."""

    @property
    def can_repeat(self) -> bool:
        """Whether the rows can be written again after a conflict: not those of a reader."""

    @property
    def parallelism(self) -> int:
        """Most tasks."""

    def write(self, keys: KeyExpressions, plan: TaskPlan) -> list[TaskResult]:
        """Moves the rows to their tasks and has them written.

        Args:
            keys: record key and partition path of a row.
            plan: what the tasks need.

        Returns:
            One result for each task that did something.

        Raises:
            HudiError: a task failed.
        """

    def list_partition_paths(self, keys: KeyExpressions) -> Sequence[str]:
        """The partition paths of the rows, each once."""


@dataclass(frozen=True)
class Batch:
    """One batch.

    Attributes:
        workers: hold its rows.
        batch_id: Spark's id, or the caller's; None: the write is never taken for one seen before.
        query_id: the streaming query, or None.
        ask_query_id: loads the query's id again, before a batch is skipped or refused because of it: the same
            sink may have been given to another query.
        spread: has the work of services done on other machines; None: there are none.
        keeps_table: whether the writer goes on holding the table after the batch, outside a stream, too.
        operation: of this batch; None: that of the writer's options.
        sink_id: whose batch it is, where it is none of the stream; None: the sink's.
    """

    workers: Workers
    batch_id: int | None = None
    query_id: str | None = None
    ask_query_id: Callable[[], str | None] | None = None
    spread: Spread | None = None
    keeps_table: bool = False
    operation: Operation | None = None
    sink_id: str | None = None
