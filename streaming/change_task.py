"""What one task does with rows that may be in the table already: find them, merge, write (runs on a worker).

All rows of a key, and all file groups of a slot, are at one task, so a file group is written once a batch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streaming.bucket_assigner import BucketAssigner, SmallFile, find_small_files
from streaming.locate import Located, files_by_bucket, locate
from streaming.regroup import NO_PATH, Group, regroup
from streaming.task_plan import TaskPlan, TaskResult
from streaming.task_report import TaskReport
from table import clock
from table.files.file_names import build_file_id
from table.index.bucket import bucket_file_id
from table.index.key_cache import cache_of_process
from table.index.key_lookup import FileHits
from table.keygen import partition_path_problem
from table.schema import RECORD_KEY
from table.view.file_group import BaseFile
from table.view.file_system_view import list_latest_base_files
from table.write.context import Bucket, BucketType
from table.write.merge import combine_rows, delete_flags
from table.write.merge_bucket import merge_bucket
from table.write.write_bucket import BucketWriter

Positions = npt.NDArray[np.int64]
Assigned = dict[str, tuple[Bucket, Positions]]


def write_changes(plan: TaskPlan, write_token: str, batches: Iterable[pa.RecordBatch]) -> TaskResult:
    """Merges the rows of one task into their file groups.

    Args:
        plan: from the driver.
        write_token: this attempt's.
        batches: table columns, ``_hoodie_record_key``, ``_hoodie_partition_path``, the slot (int32), and
            ``_hudistream_arrival`` (int64) where rows of a key are combined.

    Returns:
        Files written, all whole. Raises what the store raises; markers tell about the rest.
    """
    task = _ChangeTask(plan, write_token)
    for (path, slot), rows in _slots(regroup(batches, plan.memory_bytes)):
        task.write(path, slot, rows)
    return task.report.finish()


def required_for_changes(plan: TaskPlan) -> Mapping[str, str]:
    """Columns that must not be null -> why: a delete needs nothing but its key."""
    rules = plan.context.merge
    if rules.deletes_all:
        return {}
    names = plan.context.required
    reasons = dict.fromkeys(names, f"{', '.join(names)} null where the schema allows none")
    if rules.ordering_field is not None and plan.changes is not None and not plan.changes.drops_known:
        reasons[rules.ordering_field] = f"the ordering field {rules.ordering_field} is null"
    return reasons


def owner_of(file_id: str, slots: int) -> int:
    """The slot of a partition path that writes a file group: the same whoever asks."""
    return crc32(file_id.encode()) % slots


def _slots(pieces: Iterable[tuple[str, int, pa.Table]]) -> Iterator[tuple[Group, pa.Table]]:
    """The pieces of each slot put together."""
    current: Group | None = None
    held: list[pa.Table] = []
    for path, slot, rows in pieces:
        if current != (path, slot):
            if current is not None:
                yield current, pa.concat_tables(held)
            current, held = (path, slot), []
        held.append(rows)
    if current is not None:
        yield current, pa.concat_tables(held)


class _ChangeTask:
    """Merges slot after slot."""

    def __init__(self, plan: TaskPlan, write_token: str) -> None:
        assert plan.changes is not None
        self._plan, self._changes, self._token = plan, plan.changes, write_token
        self._cache = cache_of_process(plan.changes.cache_bytes)
        self.report = TaskReport(plan, write_token)

    def write(self, path: str, slot: int, rows: pa.Table) -> None:
        problem = partition_path_problem(None if path == NO_PATH else path)
        if problem is not None:
            self.report.count_bad(rows, problem)
            return
        rows = self.report.without_bad_rows(rows, required_for_changes(self._plan))
        if not len(rows):
            return
        context = self._plan.context
        if self._changes.combines:
            rows = combine_rows(rows, context.merge)
        rows = rows.select([*context.schema.names, RECORD_KEY])
        files = self._list_files(path, slot)
        keys, codes = _distinct(rows.column(RECORD_KEY).combine_chunks())
        located = locate(context.storage, files, keys, self._changes, self._cache)
        self.report.lookup += located.counts
        self._merge(path, rows, files, located, codes)

    def _list_files(self, path: str, slot: int) -> Sequence[BaseFile]:
        """The file groups of a path that this slot owns."""
        plan = self._plan
        if not plan.committed.times:
            return ()
        files = list_latest_base_files(plan.context.storage, path, plan.committed)
        small = find_small_files((SmallFile(f.file_id, f.name, f.size_bytes) for f in files), plan.rules)
        self.report.listed[path] = small
        slots = plan.routes.slots_of(path)
        return [file for file in files if owner_of(file.file_id, slots) == slot] if slots > 1 else files

    def _merge(self, path: str, rows: pa.Table, files: Sequence[BaseFile], located: Located, codes: Positions) -> None:
        is_known = np.zeros(len(rows), np.bool_)
        for hit in located.hits:
            is_known[hit.keys] = True
        fresh = np.flatnonzero(~is_known[codes] & ~delete_flags(rows, self._plan.context.merge))
        if located.buckets is not None:
            inserts = self._assign_to_buckets(path, files, fresh, located.buckets[codes])
        else:
            inserts = self._assign(path, files, fresh)
        last = np.zeros(len(rows), np.int64)  # where rows of a key were not combined, the last one counts
        last[codes] = np.arange(len(rows))
        for hit in () if self._changes.drops_known else located.hits:
            _, positions = inserts.pop(hit.file.file_id, (None, fresh[:0]))
            self._merge_file(FileHits(hit.file, hit.rows, last[hit.keys]), rows, positions)
        for bucket, positions in inserts.values():
            self._append(bucket, rows.take(pa.array(positions)))

    def _assign(self, path: str, files: Sequence[BaseFile], fresh: Positions) -> Assigned:
        """New records -> file groups: file id -> bucket and positions."""
        small = find_small_files((SmallFile(f.file_id, f.name, f.size_bytes) for f in files), self._plan.rules)
        assigner = BucketAssigner(path, small, self._plan.rules, _new_file_id)
        assigned: Assigned = {}
        start = 0
        for bucket, count in assigner.assign(len(fresh)):
            assigned[bucket.file_id] = bucket, fresh[start : start + count]
            start += count
        return assigned

    def _assign_to_buckets(
        self, path: str, files: Sequence[BaseFile], fresh: Positions, numbers: Positions
    ) -> Assigned:
        by_bucket = files_by_bucket(files, self._changes.buckets)
        assigned: Assigned = {}
        for number in np.unique(numbers[fresh]).tolist():
            file = by_bucket.get(number)
            if file is None:
                bucket = Bucket(BucketType.INSERT, path, bucket_file_id(number, _new_file_id()))
            else:
                bucket = Bucket(BucketType.UPDATE, path, file.file_id, file.name)
            assigned[bucket.file_id] = bucket, fresh[numbers[fresh] == number]
        return assigned

    def _merge_file(self, hit: FileHits, rows: pa.Table, fresh: Positions) -> None:
        file = hit.file
        bucket = Bucket(BucketType.UPDATE, file.partition_path, file.file_id, file.name)
        chosen, matches = np.unique(hit.keys, return_inverse=True)
        self.report.add_file(
            *merge_bucket(
                self._plan.context,
                bucket,
                self._token,
                rows.take(pa.array(chosen)),
                hit.rows,
                matches,
                rows.take(pa.array(fresh)),
            )
        )

    def _append(self, bucket: Bucket, rows: pa.Table) -> None:
        writer = BucketWriter(self._plan.context, bucket, self._token)
        try:
            writer.write(rows)
            self.report.add_file(*writer.close())
        except BaseException:
            writer.abandon()
            raise


def _distinct(keys: pa.Array) -> tuple[pa.Array, Positions]:
    """The keys without repetition, and for each row the position of its key among them."""
    encoded = keys.dictionary_encode()
    return encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)


def _new_file_id() -> str:
    return build_file_id(clock.fresh_uuid())
