"""The columns that travel with the rows of a batch, from the exchange to the task that writes (pure).

Every such column is named here, with the schemas of rows on their way; `_hudistream_arrival` is the merge
rules' (`table.records.merge.ARRIVAL_COLUMN`).
"""

import pyarrow as pa

from table.records.merge import ARRIVAL_COLUMN, REMOVES_COLUMN
from table.schema.avro_schema import PARTITION_PATH, RECORD_KEY

SLOT_COLUMN = "_hudistream_slot"  # which of the writers that share the partition path gets the row
TASK_COLUMN = "_hudistream_task"  # the task of that slot; Spark exchanges by it
FILE_COLUMN = "_hudistream_file"  # tag: file group that holds the key
LOOKUP_COLUMN = "_hudistream_lookup"  # what the lookup cost, in one row of each task
PROBLEM_COLUMN = "_hudistream_problem"  # why the row cannot be stored; it is reported where the others are written

_ROUTE = (pa.field(RECORD_KEY, pa.string()), pa.field(PARTITION_PATH, pa.string()), pa.field(SLOT_COLUMN, pa.int32()))
_TAG = (
    pa.field(FILE_COLUMN, pa.string()),
    pa.field(REMOVES_COLUMN, pa.bool_()),
    pa.field(LOOKUP_COLUMN, pa.string()),
    pa.field(PROBLEM_COLUMN, pa.string()),
)


def arriving_schema(columns: pa.Schema, *, numbered: bool) -> pa.Schema:
    """Columns of the rows that reach a task first.

    Args:
        columns: the table's (Arrow).
        numbered: whether rows carry the number by which equals are ordered.
    """
    number = [pa.field(ARRIVAL_COLUMN, pa.int64())] if numbered else []
    return pa.schema([*columns, *_ROUTE, *number])


def tagged_schema(columns: pa.Schema) -> pa.Schema:
    """Columns of rows whose keys were looked for by other tasks than those that write.

    Args:
        columns: the table's (Arrow).
    """
    return pa.schema([*columns, *_ROUTE, *_TAG])
