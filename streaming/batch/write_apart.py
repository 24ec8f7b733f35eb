"""Moves added rows into new file groups when another writer changed their file group meanwhile.

The tasks have already written the added rows, into new versions of those file groups. The added rows carry the instant
time of our commit, so they can be read back from those files, and no task runs again. The older rows stay as the other
writer's commit has them.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streaming.plan.task_plan import Pipeline, TaskPlan
from streaming.plan.task_result import TaskResult
from table import clock
from table.files.base.stored_file import StoredBaseFile
from table.files.names import build_file_id, build_write_token
from table.schema.avro_schema import COMMIT_TIME, RECORD_KEY
from table.timeline.metadata.commit import WriteStat
from table.write.context import Attempt, Bucket, BucketType
from table.write.write_bucket import BucketWriter

Positions = npt.NDArray[np.int64]


def write_apart(plan: TaskPlan, result: TaskResult, lost_groups: Collection[tuple[str, str]]) -> TaskResult | None:
    """Writes the rows that the batch added to the lost file groups into new file groups.

    Args:
        plan: the plan of the tasks.
        result: what the tasks wrote.
        lost_groups: partition path and file id of the file groups that another commit changed, too.

    Returns:
        The result with the new file groups in place of the lost ones. None where this is not possible: the batch wrote
        none of the lost file groups, or changed rows of the table there.
    """
    lost = [stat for stat in result.stats if (stat.partition_path, stat.file_id) in lost_groups]
    if not lost or not _only_adds(plan) or any(stat.num_update_writes or stat.num_deletes for stat in lost):
        return None
    attempt = Attempt(build_write_token(plan.routes.tasks, 0, clock.fresh_number(1_000_000)))
    apart = [_write_file(plan, stat, attempt) for stat in lost]
    attempt.flushes.wait()
    kept = tuple(stat for stat in result.stats if stat not in lost)
    return replace(result, stats=(*kept, *apart))


def _only_adds(plan: TaskPlan) -> bool:
    context = plan.context  # rows that do not say which commit wrote them cannot be told from older ones
    return plan.pipeline is Pipeline.APPEND and context.allow_duplicates and context.settings.has_meta_fields


def _write_file(plan: TaskPlan, lost: WriteStat, attempt: Attempt) -> WriteStat:
    bucket = Bucket(BucketType.INSERT, lost.partition_path, build_file_id(clock.fresh_uuid()))
    writer = BucketWriter(plan.context, bucket, attempt)
    try:
        for rows in _added_rows(plan, lost.path):
            writer.write(rows)
        return writer.close()[0]
    except BaseException:
        with suppress(Exception):
            writer.abandon()
        raise


def _added_rows(plan: TaskPlan, path: str) -> Iterator[pa.Table]:
    """The rows of a file that carry the time of our commit. Row groups without such rows are not decoded."""
    schema = pa.schema([*plan.context.schema, pa.field(RECORD_KEY, pa.string())])
    times = pa.schema([pa.field(COMMIT_TIME, pa.string())])
    with StoredBaseFile(plan.context.storage, path) as stored:
        for group in range(len(stored.group_rows)):
            found = pa.chunked_array(
                [chunk for rows in stored.read_batches(times, [group]) for chunk in rows.column(0).chunks], pa.string()
            )
            mine: Positions = np.flatnonzero(pc.equal(found, plan.context.instant_time).to_numpy())
            if len(mine):
                yield from stored.read_rows_at(schema, group, mine)
