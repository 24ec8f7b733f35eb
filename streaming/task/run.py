"""Runs one task, for every pipeline (runs on a worker)."""

from collections.abc import Iterable

import pyarrow as pa

from streaming.plan.task_plan import TaskPlan
from streaming.plan.task_result import TaskResult
from streaming.task.append import write_rows
from streaming.task.upsert import write_changes


def run_task(plan: TaskPlan, write_token: str, batches: Iterable[pa.RecordBatch]) -> TaskResult:
    """Writes the rows of one task.

    Args:
        plan: from the driver.
        write_token: this attempt's.
        batches: as `TaskPlan.arriving_schema`, or as `TaskPlan.tagged_schema` where other tasks looked up the keys.

    Raises:
        HudiError: with instant, partition path and file group as far as they are known.
    """
    return (write_rows if plan.changes is None else write_changes)(plan, write_token, batches)
