"""A task that only adds rows: it assigns buckets, writes files and reports (runs on a worker, no pyspark).

Rows are grouped by partition path and slot, so one file is open at a time. Another attempt at the task may decide
differently without harm, because file names contain the attempt.
"""

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from streaming.plan.bucket_assigner import BucketAssigner, find_small_files, share_of_slot
from streaming.plan.task_plan import TaskPlan
from streaming.plan.task_result import TaskResult
from streaming.task.bad_rows import explain_nulls
from streaming.task.grouping import group_by_slot, split_in_order
from streaming.task.locate_keys import list_live_files
from streaming.task.log_slots import list_fillable
from streaming.task.measured_rules import measured_rules
from streaming.task.report import TaskReport
from streaming.task.side_by_side import SideBySide
from streaming.task.sort_rows import sort_slots
from table import clock
from table.failures import failing_at
from table.files.base.summary import BaseFileSummary
from table.files.names import build_file_id
from table.keys.keygen import NO_PARTITION_PATH, partition_path_problem
from table.records.merge import delete_flags, last_of_each_run
from table.schema.avro_schema import RECORD_KEY
from table.timeline.metadata.commit import WriteStat
from table.write.base_file import write_all
from table.write.context import Attempt, Bucket
from table.write.write_bucket import BucketWriter, InsertMerger, open_bucket


def write_rows(plan: TaskPlan, write_token: str, batches: Iterable[pa.RecordBatch]) -> TaskResult:
    """Writes the rows of one task.

    Args:
        plan: from the driver.
        write_token: this attempt's.
        batches: table columns, ``_hoodie_record_key``, ``_hoodie_partition_path`` and the slot (int32).

    Returns:
        The result; all files in it are complete. Files of failed attempts are found by their markers.

    Raises:
        HudiError: with instant, partition path and file group as far as they are known.
    """
    with failing_at(instant_time=plan.context.instant_time):
        task = _Task(plan, write_token)
        try:
            batches = task.report.without_bad_text(batches)
            grouped = split_in_order(batches) if plan.is_sorted else group_by_slot(batches, plan.memory_bytes)
            if plan.order is not None:
                grouped = sort_slots(grouped, plan.order, plan.memory_bytes)
            for path, slot, rows in grouped:
                with failing_at(partition_path=path):
                    task.write(path, slot, rows)
            return task.finish()
        except BaseException:
            task.abandon()
            raise


class _Task:
    """The state of a task between two runs of rows: one slot at a time.

    The rows of a small file are held until they are complete, so that it can be written beside others.
    """

    def __init__(self, plan: TaskPlan, write_token: str) -> None:
        self._plan, self._attempt = plan, Attempt(write_token)
        self._slot: tuple[str, int] | None = None
        self._assigner: BucketAssigner | None = None
        self._bucket: Bucket | None = None
        self._writer: BucketWriter | InsertMerger | None = None
        self._complete: list[pa.Table] = []
        self._complete_bytes = 0
        self._held: pa.Table | None = None
        self.report = TaskReport(plan, write_token)
        self._files = SideBySide[tuple[WriteStat, BaseFileSummary]](
            plan.context.storage.calls_at_once, plan.memory_bytes, lambda written: self.report.add_file(*written)
        )

    def write(self, path: str | None, slot: int, rows: pa.Table) -> None:
        problem = partition_path_problem(path)
        if path is None or problem is not None:
            self.report.count_bad(rows, problem or NO_PARTITION_PATH)
            return
        if self._slot != (path, slot):
            self._end_slot()
            self._slot = (path, slot)
            self._assigner = None
        rows = self.report.without_bad_rows(rows, explain_nulls(self._plan.context.required))
        if self._plan.context.combine_before_insert:
            rows = self._combined(rows)
        self._assign(rows)

    def _open_slot(self, path: str, slot: int, rows: pa.Table) -> BucketAssigner:
        rules = measured_rules(self._plan, path, rows)
        known = self._plan.small_files.of(path)
        if known is None:
            known = self.report.listed.get(path)
        if known is None and rules.small_file_limit_bytes <= 0:
            known = ()
        if known is None:
            lists = list_live_files if self._plan.logs is None else list_fillable
            listed = (file for file in lists(self._plan, path) if (path, file.file_id) not in self._plan.clustered)
            known = find_small_files(listed, rules)
            self.report.listed[path] = known
        share = share_of_slot(known, slot, self._plan.routes.slots_of(path))
        if self._plan.logs is not None:
            share = share[: self._plan.logs.groups_filled]
        return BucketAssigner(path, share, rules, lambda: build_file_id(clock.fresh_uuid()))

    def _combined(self, rows: pa.Table) -> pa.Table:
        """One row per key. The last row is held back: the next piece of rows may begin with the same key."""
        if self._held is not None:
            rows = pa.concat_tables([self._held, rows])
            self._held = None
        if len(rows) < 2:
            self._held = rows if len(rows) else None
            return rows.slice(0, 0)
        self._held = rows.slice(len(rows) - 1)
        return last_of_each_run(rows.slice(0, len(rows) - 1), self._held.column(RECORD_KEY)[0].as_py())

    def _assign(self, rows: pa.Table) -> None:
        deletes = delete_flags(rows, self._plan.context.merge)
        if deletes.any():  # a record that deletes its key is no row (HoodieCreateHandle.doWrite)
            self.report.deletes_unmatched += int(np.count_nonzero(deletes))
            rows = rows.filter(pa.array(~deletes))
        if not len(rows):
            return
        if self._assigner is None:
            assert self._slot is not None
            self._assigner = self._open_slot(*self._slot, rows)
        start = 0
        for bucket, count in self._assigner.assign(len(rows)):
            if bucket != self._bucket:
                self._close_file()
                self._bucket = bucket
            self._add(bucket, rows.slice(start, count))
            start += count

    def _add(self, bucket: Bucket, rows: pa.Table) -> None:
        if self._writer is None:
            if not self._files.is_one_by_one:
                self._complete_bytes += rows.nbytes
                if bucket.base_bytes + self._complete_bytes <= self._files.most_bytes:
                    self._complete.append(rows)
                    return
                self._files.wait()
            with failing_at(partition_path=bucket.partition_path, file_group=bucket.file_id):
                self._writer = open_bucket(self._plan.context, bucket, self._attempt)
        complete, self._complete, self._complete_bytes = [*self._complete, rows], [], 0
        with failing_at(partition_path=bucket.partition_path, file_group=bucket.file_id):
            for part in complete:
                self._writer.write(part)

    def _end_slot(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            if not self.report.is_lost:
                self._assign(held)
        self._close_file()

    def _close_file(self) -> None:
        bucket = self._bucket
        if bucket is not None and self._writer is not None:
            with failing_at(partition_path=bucket.partition_path, file_group=bucket.file_id):
                self.report.add_file(*self._writer.close())
        elif bucket is not None and self._complete:
            size_bytes = bucket.base_bytes + self._complete_bytes
            self._files.write(size_bytes, partial(self._write_file, bucket, self._complete))
        self._writer = self._bucket = None
        self._complete, self._complete_bytes = [], 0

    def _write_file(self, bucket: Bucket, rows: Sequence[pa.Table]) -> tuple[WriteStat, BaseFileSummary]:
        with failing_at(partition_path=bucket.partition_path, file_group=bucket.file_id):
            return write_all(open_bucket(self._plan.context, bucket, self._attempt), rows)

    def finish(self) -> TaskResult:
        self._end_slot()
        self._files.wait()
        self._attempt.flushes.wait()
        return self.report.finish()

    def abandon(self) -> None:
        self._files.abandon()
        self.report.abandon()
        if self._writer is not None:
            self._writer.abandon()
