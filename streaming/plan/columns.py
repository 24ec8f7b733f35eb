"""The columns that are added to the rows of a batch, from the exchange to the task that writes (pure).

This module names every such column and the schemas of rows on their way, except `_hudistream_arrival`
(`table.records.merge.ARRIVAL_COLUMN`), which belongs to the merge rules.
"""

import pyarrow as pa

from table.records.merge import ARRIVAL_COLUMN, REMOVES_COLUMN
from table.schema.avro_schema import PARTITION_PATH, RECORD_KEY

SLOT_COLUMN = "_hudistream_slot"  # which slot of the partition path gets the row
TASK_COLUMN = "_hudistream_task"  # the task of that slot; Spark exchanges by it
FILE_COLUMN = "_hudistream_file"  # tag: file group that holds the key
LOOKUP_COLUMN = "_hudistream_lookup"  # cost of the key lookup, in one row of each task
PROBLEM_COLUMN = "_hudistream_problem"  # why the row cannot be stored; the task that writes reports it

_ROUTE = (pa.field(RECORD_KEY, pa.string()), pa.field(PARTITION_PATH, pa.string()), pa.field(SLOT_COLUMN, pa.int32()))
_TAG = (
    pa.field(FILE_COLUMN, pa.string()),
    pa.field(REMOVES_COLUMN, pa.bool_()),
    pa.field(LOOKUP_COLUMN, pa.string()),
    pa.field(PROBLEM_COLUMN, pa.string()),
)


def arriving_schema(columns: pa.Schema, *, numbered: bool) -> pa.Schema:
    """Columns of the rows after the first exchange.

    Args:
        columns: the table's columns (Arrow).
        numbered: whether rows carry their arrival number, which orders rows that are otherwise equal.
    """
    number = [pa.field(ARRIVAL_COLUMN, pa.int64())] if numbered else []
    return pa.schema([*columns, *_ROUTE, *number])


def tagged_schema(columns: pa.Schema) -> pa.Schema:
    """Columns of the rows after the second exchange: other tasks have looked up their keys.

    Args:
        columns: the table's columns (Arrow).
    """
    return pa.schema([*columns, *_ROUTE, *_TAG])
