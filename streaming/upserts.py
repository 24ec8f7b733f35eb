"""Changes of one table -> rows for a sink of another one."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from table.scan.feed.upserts import upserts_of


def as_upserts(rows: Any, *, moved_by: str | Sequence[str]) -> Any:
    """Makes rows for a sink of the rows of a change feed, so that its table follows the other one, deletes included.

    ``changes = spark.readStream.format("hudistream").options(before="true").load(path)``, then
    ``as_upserts(changes, moved_by="day").writeStream.foreachBatch(HudiSink(other, key="id", partition_by="day"))``

    Give the sink no `order_by`, or the one of the table that is followed: the changes come in the order of its commits.
    Change the rows afterwards, not before: a row that is not to be in the next table needs its delete. A filter on a
    value that changes belongs into the condition (``where``) of the feed, which makes a delete of a row that leaves it.

    Args:
        rows: a Spark DataFrame, also of a stream, or a `pyarrow.Table`, with ``_change_operation``. Each key may be
            there once: feeds of ``each_commit`` and ``moves=delete_insert`` are for logs.
        moved_by: column or columns that make the partition path of the next table; ``()`` where it has no partitions,
            or its index is global. An update that changes one is made a delete of the row before, too. They need
            ``_change_before``.

    Returns:
        The columns of the table, and ``_hoodie_is_deleted``. What says how the rows changed is left out.

    Raises:
        InvalidConfigError: the rows are none of a change feed, or `moved_by` needs columns that are not there.
    """
    names = [moved_by] if isinstance(moved_by, str) else list(moved_by)
    if isinstance(rows, pa.Table):
        return upserts_of(rows, names)
    from streaming.spark.change_rows import upserts_of_frame  # noqa: PLC0415 needs PySpark

    return upserts_of_frame(rows, names)
