"""File sizes for a table whose row size is not known: a task measures its own rows, without another job."""

from dataclasses import replace

import pyarrow as pa

from streaming.plan.bucket_assigner import AssignRules
from streaming.plan.task_plan import TaskPlan
from table.write.measure import measure_row_bytes


def measured_rules(plan: TaskPlan, path: str, rows: pa.Table) -> AssignRules:
    """The rules by which rows are assigned to files.

    Args:
        plan: from the driver. If its row size is a guess, the measured size replaces it.
        path: the partition path.
        rows: new rows of it: table columns and ``_hoodie_record_key``.
    """
    rules = plan.rules
    measured = measure_row_bytes(plan.context, path, rows) if rules.is_guess else None
    return rules if measured is None else replace(rules, record_size_bytes=measured, is_guess=False)
