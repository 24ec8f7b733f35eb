"""How a task reads slices of its table: as readers of the snapshot do, whatever the operation of its batch."""

from dataclasses import replace

from streaming.plan.task_plan import TaskPlan
from table.scan.merge_slice import SliceReading
from table.schema.avro_schema import relaxed, with_meta_columns


def reading_of(plan: TaskPlan, columns: tuple[str, ...] | None = None) -> SliceReading:
    """How slices are read.

    Args:
        plan: from the driver.
        columns: names of the columns wanted, in order; None: all, meta columns first.
    """
    schema = relaxed(with_meta_columns(plan.context.schema))
    rules = replace(plan.context.merge, deletes_all=False, orders_deletes=True)
    return SliceReading(schema, tuple(schema.names) if columns is None else columns, rules, plan.committed)
