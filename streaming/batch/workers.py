"""The interface of the engine that distributes the rows of a batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from streaming.batch.frames import Frame
from streaming.plan.task_plan import TaskPlan
from streaming.plan.task_result import TaskResult
from streaming.validators import Validator
from table.keys.keygen import KeyExpressions
from table.options.choices import IndexType
from table.options.operation import Operation
from table.services.service import Spread
from table.transaction.positions import Positions


class Workers(Protocol):
    """Holds the rows of one batch, moves them to tasks and lets the tasks write them."""

    @property
    def schema(self) -> pa.Schema:
        """Columns of the batch (Arrow)."""

    @property
    def can_repeat(self) -> bool:
        """Whether the rows can be written again after a conflict. Rows from an Arrow reader cannot."""

    @property
    def parallelism(self) -> int:
        """The largest number of tasks."""

    def write(self, keys: KeyExpressions, plan: TaskPlan) -> list[TaskResult]:
        """Moves the rows to their tasks, which write them.

        Args:
            keys: record key and partition path of a row.
            plan: the plan that each task gets.

        Returns:
            One result for each task that did something.

        Raises:
            HudiError: a task failed.
        """

    def list_partition_paths(self, keys: KeyExpressions) -> Sequence[str]:
        """The partition paths of the rows, each once."""


class BatchPositions(Protocol):
    """Where the sources of a streaming query stand around one batch. None: it cannot be found out."""

    def load_start(self) -> Positions | None:
        """Before the batch."""

    def load_end(self) -> Positions | None:
        """After the batch."""


@dataclass(frozen=True)
class Batch:
    """One batch.

    Attributes:
        workers: the workers that hold its rows.
        batch_id: Spark's id, or the caller's; None: the write is never skipped as already committed.
        query_id: the streaming query, or None.
        ask_query_id: loads the query's id again. It is called before a batch is skipped or refused because of the
            query id: another query may use the same sink by now.
        find_query: finds the query where the tasks do not know whose rows they wrote; without a job. None: the id that
            was loaded counts.
        spread: distributes the work of services to other machines; None: there are none.
        keeps_table: whether the writer holds the table after the batch, also outside a stream.
        operation: the operation of this batch; None: the operation in the writer's options.
        index: how this batch finds keys; None: as the writer's options say.
        sink_id: the sink whose batch it is, if it is not a batch of the stream; None: the sink of the writer's options.
        positions: where the query's sources stand; None: that is not recorded.
        frame: the rows as the caller's frame; None: a batch that was committed before is skipped, whatever it brings.
        driver_bytes: bytes of the rows, if they came to Spark's driver, which writes them; else 0.
        checks: validators of this batch alone, beside those of the writer.
    """

    workers: Workers
    batch_id: int | None = None
    query_id: str | None = None
    ask_query_id: Callable[[], str | None] | None = None
    find_query: Callable[[], str | None] | None = None
    spread: Spread | None = None
    keeps_table: bool = False
    operation: Operation | None = None
    index: IndexType | None = None
    sink_id: str | None = None
    positions: BatchPositions | None = None
    frame: Frame | None = None
    driver_bytes: int = 0
    checks: tuple[Validator, ...] = ()
