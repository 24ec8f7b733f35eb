"""A task whose rows may already be in the table: it looks up keys, merges and writes (runs on a worker).

One task has all rows of a key and all file groups of a slot, so a file group is written once per batch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from operator import itemgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streaming.plan.live_files import in_order
from streaming.plan.task_plan import Pipeline, TaskPlan
from streaming.plan.task_result import TaskResult
from streaming.task.bad_rows import explain_nulls
from streaming.task.doubled_keys import without_deleted_rows
from streaming.task.fold_logs import fold_logs, may_forget, meets_delete, read_met_deletes
from streaming.task.grouping import group_by_slot, group_rows, lots_of_keys, whole_groups
from streaming.task.locate_keys import Locator, list_live_files, owner_of
from streaming.task.log_keys import find_key_changes
from streaming.task.log_slots import SlotGroups, list_groups, plain_groups
from streaming.task.place_rows import Placed, Placer, removes_of
from streaming.task.report import TaskReport
from streaming.task.side_by_side import SideBySide
from table.errors import WriteConflictError
from table.failures import failing_at
from table.files.base.summary import BaseFileSummary
from table.files.key_changes import KeyChanges
from table.index.key_cache import cache_of_table
from table.keys.keygen import NO_PARTITION_PATH, partition_path_problem
from table.records.merge import REMOVES_COLUMN, combine_rows
from table.schema.avro_schema import RECORD_KEY
from table.storage.interface import join
from table.timeline.metadata.commit import WriteStat
from table.view.file_group import BaseFile, FileSlice, base_file_of
from table.write.base_file import write_all
from table.write.context import Attempt, Bucket, LogSlot
from table.write.merge_bucket import Changes, merge_bucket
from table.write.write_bucket import BucketWriter
from table.write.write_log import LogChanges, can_be_logged, with_positions, write_log

Flags = npt.NDArray[np.bool_]
_Files = tuple[WriteStat, BaseFileSummary]


def write_changes(plan: TaskPlan, write_token: str, batches: Iterable[pa.RecordBatch]) -> TaskResult:
    """Merges the rows of one task into their file groups.

    Args:
        plan: from the driver.
        write_token: this attempt's.
        batches: as `TaskPlan.arriving_schema`, or as `TaskPlan.tagged_schema` where other tasks looked up the keys.

    Returns:
        The result; all files in it are complete. Files of failed attempts are found by their markers.

    Raises:
        HudiError: with instant, partition path and file group as far as they are known.
    """
    with failing_at(instant_time=plan.context.instant_time):
        task = _UpsertTask(plan, write_token)
        if plan.pipeline is Pipeline.UPSERT:  # else the tasks that looked up the keys have checked the text, too
            batches = task.report.without_bad_text(batches)
        try:
            for (path, slot), pieces in groupby(group_by_slot(batches, plan.memory_bytes), itemgetter(0, 1)):
                with failing_at(partition_path=path):
                    task.write(path, slot, (rows for _, _, rows in pieces))
            return task.finish()
        except BaseException:
            task.abandon()
            raise


def required_for_changes(plan: TaskPlan) -> Mapping[str, str]:
    """Columns that must not be null -> the reason. A delete needs only its key."""
    rules = plan.context.merge
    if rules.deletes_all:
        return {}
    changes = plan.changes
    orders = changes is not None and not (changes.drops_known or changes.adds_only)
    return explain_nulls(plan.context.required, rules.ordering_fields if orders else ())


def _check_not_clustered(plan: TaskPlan, bucket: Bucket) -> None:
    """Refuses to write to a file group that a pending clustering of another engine replaces.

    Raises:
        WriteConflictError: names the clustering and the way out.
    """
    time = plan.clustered.get((bucket.partition_path, bucket.file_id))
    if time is not None:
        raise WriteConflictError(
            f"the batch changes rows of file group {bucket.file_id} in {bucket.partition_path!r}, which the pending "
            f"clustering {time} replaces: let its engine finish it; or stop the writers, and carry it out "
            f"(`hudistream cluster --execute`) or remove it (`hudistream rollback PATH {time}`); then run the batch "
            "again"
        )


def _plain_slice(bucket: Bucket) -> FileSlice:
    """The slice of a file group without log files."""
    base = base_file_of(bucket.partition_path, bucket.base_file or "", bucket.base_bytes)
    return FileSlice(base.partition_path, base.file_id, base.instant_time, base)


class _UpsertTask:
    """Merges slot after slot."""

    def __init__(self, plan: TaskPlan, write_token: str) -> None:
        assert plan.changes is not None
        self._plan, self._changes, self._attempt = plan, plan.changes, Attempt(write_token)
        self._is_tagged = plan.pipeline is Pipeline.TAGGED_UPSERT
        storage, time = plan.context.storage, plan.context.instant_time
        cache = cache_of_table(storage.base_uri, plan.changes.cache_bytes, time)
        self._locator = Locator(storage, plan.changes, cache)
        self.report = TaskReport(plan, write_token)
        self._listed: dict[str, SlotGroups] = {}
        calls_at_once = plan.context.storage.calls_at_once
        self._files = SideBySide[tuple[Bucket, list[_Files]]](calls_at_once, plan.memory_bytes, self._note)

    def write(self, path: str | None, slot: int, pieces: Iterator[pa.Table]) -> None:
        problem = partition_path_problem(path)
        if path is None or problem is not None:
            for rows in pieces:
                self.report.count_bad(rows, problem or NO_PARTITION_PATH)
            return
        groups = self._find_groups(path, slot)
        files, placer = groups.files, Placer(path, groups, self._plan)
        lots = lots_of_keys(pieces, self._plan.memory_bytes)
        first, second = next(lots), next(lots, None)
        if second is None:
            for placed in self._place(first, files, placer):
                self._write_file(placed, groups)
            self.report.deletes_unmatched += placer.deletes_unmatched
            return
        # the rows do not fit into memory: look up keys lot by lot, then write files one by one
        placed_ones = (one for lot in chain((first, second), lots) for one in self._place(lot, files, placer))
        spilled = group_rows((part for one in placed_ones for part in placer.spill(one)), self._plan.memory_bytes)
        for number, rows in whole_groups(spilled):
            self._write_file(placer.restore(number, rows, self._locator), groups)
        self.report.deletes_unmatched += placer.deletes_unmatched

    def finish(self) -> TaskResult:
        self._files.wait()
        self._attempt.flushes.wait()
        return self.report.finish()

    def abandon(self) -> None:
        self._files.abandon()
        self.report.abandon()

    def _place(self, rows: pa.Table, files: Sequence[BaseFile], placer: Placer) -> Iterator[Placed]:
        """Decides the file of each row. All rows of a key must be in `rows`."""
        rows, removes = self._storable(rows)
        if not len(rows):
            return
        if self._is_tagged:
            located = self._locator.resolve(rows, files)
        else:
            located = without_deleted_rows(self._plan, rows, self._locator.locate(rows, files))
        self.report.lookup += located.counts
        yield from placer.place(rows.select([*self._plan.context.schema.names, RECORD_KEY]), removes, located)

    def _storable(self, rows: pa.Table) -> tuple[pa.Table, Flags]:
        """The rows that can be stored, and which of them remove their key. If the plan combines, one row per key."""
        required = required_for_changes(self._plan)
        if self._is_tagged:
            rows = self.report.without_problems(rows)
            rows = self.report.without_bad_rows(rows, required, exempt=removes_of(rows, REMOVES_COLUMN))
            return rows, removes_of(rows, REMOVES_COLUMN)
        rows = self.report.without_bad_rows(rows, required)
        rows = combine_rows(rows, self._plan.context.merge) if self._changes.combines else rows
        return rows, np.zeros(len(rows), np.bool_)

    def _find_groups(self, path: str, slot: int) -> SlotGroups:
        """The file groups of a path that this slot owns."""
        if self._plan.logs is None:
            return SlotGroups(self._find_files(path, slot))
        known = self._changes.files.of(path)
        if known is not None and not any((path, file.file_id) in self._plan.logs.compacting for file in known):
            groups = plain_groups(self._plan, known)
        else:
            groups = self._listed[path] = self._listed.get(path) or list_groups(self._plan, path)
            if groups.known is not None:
                self.report.listed[path] = groups.known
        slots = self._plan.routes.slots_of(path)
        if slots == 1:
            return groups
        return replace(groups, files=[f for f in groups.files if owner_of(f.file_id, slots, self._changes) == slot])

    def _find_files(self, path: str, slot: int) -> Sequence[BaseFile]:
        """The base files of a path that this slot owns."""
        known = self._changes.files.of(path)
        if known is None:
            known = self.report.listed.get(path)
        if known is None:
            known = self.report.listed[path] = list_live_files(self._plan, path)
        files, slots = in_order(known), self._plan.routes.slots_of(path)
        if slots == 1:
            return files
        return [file for file in files if owner_of(file.file_id, slots, self._changes) == slot]

    def _write_file(self, placed: Placed, groups: SlotGroups) -> None:
        size_bytes = 0 if self._files.is_one_by_one else placed.size_bytes
        self._files.write(size_bytes, partial(self._write_placed, placed, groups))

    def _write_placed(self, placed: Placed, groups: SlotGroups) -> tuple[Bucket, list[_Files]]:
        """Writes the files of one bucket, beside those of others."""
        bucket = placed.bucket
        with failing_at(partition_path=bucket.partition_path, file_group=bucket.file_id):
            _check_not_clustered(self._plan, bucket)
            if placed.changes is not None and placed.log is not None:
                merged = groups.merged.get(bucket.file_id) or _plain_slice(bucket)
                return bucket, self._write_log(bucket, placed.changes, placed.log, merged, placed.joined)
            if placed.changes is None:
                writer = BucketWriter(self._plan.context, bucket, self._attempt)
                return bucket, [write_all(writer, [placed.inserts])]
            return bucket, [merge_bucket(self._plan.context, bucket, self._attempt, placed.changes, placed.inserts)]

    def _note(self, written: tuple[Bucket, list[_Files]]) -> None:
        bucket, files = written
        for stat, summary in files:
            self.report.add_file(stat, summary)
            if summary.contents is not None:
                older = join(bucket.partition_path, bucket.base_file) if bucket.base_file is not None else None
                self.report.lookup += self._locator.remember(older, stat.path, summary.contents)

    def _write_log(
        self, bucket: Bucket, changes: Changes, slot: LogSlot, merged: FileSlice, joined: int
    ) -> list[_Files]:
        plan, context = self._plan, self._plan.context
        leaves_out = slot.is_behind_plan and not self._changes.is_bucket
        tells_keys = context.tells_keys and not self._changes.is_bucket  # a bucket's keys are not looked up
        keys: KeyChanges | None = None
        if not can_be_logged(changes, context.merge):
            return [fold_logs(plan, merged, self._attempt, changes)]
        if leaves_out or tells_keys or may_forget(changes.incoming, context.merge):
            met = read_met_deletes(plan, merged, changes.incoming)
            if meets_delete(met, changes, context.merge, leaves_out=leaves_out):
                return [fold_logs(plan, merged, self._attempt, changes)]
            if tells_keys:
                found = find_key_changes(plan, merged, met, changes, joined)
                keys = context.keys_for_stat(self._attempt, found)
        positions = None
        if context.log_settings.record_positions:
            changes, positions = with_positions(changes, bucket.base_file)
        written = LogChanges(
            bucket.partition_path,
            bucket.file_id,
            slot,
            changes.incoming,
            changes.removes,
            len(changes.incoming) if self._changes.adds_only else joined,
            positions,
            keys,
        )
        return list(write_log(context, self._attempt, written))
