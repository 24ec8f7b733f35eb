"""Decides the file of each row of a slot: updates go to the file with their key, new keys to a file with room.

Rows that do not fit into memory are placed lot by lot. The state of the small files is kept between lots, and rows are
spilled with the number of their file.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streaming.plan.bucket_assigner import BucketAssigner, find_small_files
from streaming.plan.task_plan import TaskPlan
from streaming.task.grouping import Numbered
from streaming.task.locate_keys import Located, Locator, files_by_bucket
from streaming.task.log_slots import SlotGroups
from streaming.task.measured_rules import measured_rules
from table import clock
from table.columns.take import take_rows
from table.errors import BrokenInvariantError
from table.failures import failing_at
from table.files.base.file_keys import check_keys_fit
from table.files.names import build_file_id
from table.index.bucket import bucket_file_id
from table.index.key_lookup import FileHits
from table.records.merge import delete_flags
from table.schema.avro_schema import RECORD_KEY
from table.view.file_group import BaseFile
from table.write.context import Bucket, BucketType, LogSlot
from table.write.measure import SAMPLE_ROWS
from table.write.merge_bucket import Changes

Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]

_KIND_COLUMN = "_hudistream_kind"  # only in spilled rows
_INSERT, _UPDATE, _REMOVAL = range(3)


@dataclass(frozen=True)
class Placed:
    """Rows that go into one file.

    Attributes:
        bucket: the file group.
        changes: records whose keys the file holds; None: there are none.
        inserts: rows that are new to the table.
        log: the log file for the changes in a merge-on-read table; None: the changes go into the next base file.
        joined: how many of the changes, the last ones, are rows that are new to the table.
    """

    bucket: Bucket
    changes: Changes | None
    inserts: pa.Table
    log: LogSlot | None = None
    joined: int = 0

    @property
    def size_bytes(self) -> int:
        """What is held in memory to write the file: the rows, and the file that it continues (all of it, at most)."""
        rows = self.inserts.nbytes + (0 if self.changes is None else self.changes.incoming.nbytes)
        return int(rows) + (self.bucket.base_bytes if self.log is None else 0)


class Placer:
    """Places the rows of one slot.

    Args:
        path: the partition path.
        groups: the slot's file groups.
        plan: from the driver.

    Attributes:
        deletes_unmatched: deletes of keys that the table does not have. In a merge-on-read table, deletes that go to
            the log of a bucket are none: their keys are not looked up.
    """

    def __init__(self, path: str, groups: SlotGroups, plan: TaskPlan) -> None:
        assert plan.changes is not None
        self.deletes_unmatched = 0
        self._path, self._groups, self._plan, self._changes = path, groups, plan, plan.changes
        self._files = groups.files
        self._by_id = {file.file_id: file for file in groups.files}
        self._assigner: BucketAssigner | None = None
        self._buckets = _bucket_of_each(self._files, plan.changes.buckets) if plan.changes.is_bucket else {}
        self._spilled: list[Bucket] = []  # file groups that rows were spilled for, by their numbers

    def place(self, rows: pa.Table, removes: Flags, located: Located) -> Iterator[Placed]:
        """Rows by file.

        Args:
            rows: table columns and ``_hoodie_record_key``.
            removes: which rows remove their key whatever their ordering value.
            located: where their keys are.
        """
        if self._changes.to_logs and located.buckets is not None:
            yield from self._place_in_buckets(rows, removes, located.buckets)
            return
        unknown = ~located.known & ~removes
        deletes = delete_flags(rows, self._plan.context.merge)
        self.deletes_unmatched += int(np.count_nonzero(unknown & deletes))
        fresh = np.flatnonzero(unknown & ~deletes)
        inserts = dict(self._assigned(rows, fresh, located.buckets))
        for hit in () if self._changes.drops_known else located.hits:
            bucket = _next_version(hit.file)
            new = take_rows(rows, inserts.pop(bucket, fresh[:0]))
            placed = self._placed(bucket, changes_of(rows, removes, hit), new)
            if placed.log is None and len(hit.logged):
                raise BrokenInvariantError(
                    f"{hit.file.path} does not have {len(hit.logged)} keys that were found in it"
                )
            yield placed
        for bucket, positions in inserts.items():
            yield self._placed(bucket, None, take_rows(rows, positions))

    def _placed(self, bucket: Bucket, changes: Changes | None, inserts: pa.Table) -> Placed:
        """Rows of a file group: all into its log, or all into its next base file (small file corrections)."""
        log, joins = self._groups.logs.get(bucket.file_id), self._groups.joins_logs
        if log is None or (len(inserts) and not joins):
            return Placed(bucket, changes, inserts)
        known = changes or _unlocated(inserts.slice(0, 0), np.zeros(0, np.bool_))
        if not len(inserts):
            return Placed(bucket, known, inserts, log)
        both = pa.concat_tables([known.incoming, inserts])
        removes = np.concatenate([known.removes, np.zeros(len(inserts), np.bool_)])
        return Placed(bucket, replace(known, incoming=both, removes=removes), inserts.slice(0, 0), log, len(inserts))

    def _place_in_buckets(self, rows: pa.Table, removes: Flags, numbers: Positions) -> Iterator[Placed]:
        """Rows by bucket: all rows of an existing file group go to its log, whether it has the key or not."""
        for number in np.unique(numbers).tolist():
            mine = np.flatnonzero(numbers == number)
            bucket = self._buckets.get(number)
            log = self._groups.logs.get(bucket.file_id) if bucket is not None else None
            if bucket is not None and log is not None:
                yield Placed(bucket, _unlocated(take_rows(rows, mine), removes[mine]), rows.slice(0, 0), log)
                continue
            deletes = delete_flags(rows, self._plan.context.merge)[mine]
            self.deletes_unmatched += int(np.count_nonzero(deletes & ~removes[mine]))
            fresh = mine[~removes[mine] & ~deletes]
            for new, positions in self._assigned(rows, fresh, numbers):
                yield Placed(new, None, take_rows(rows, positions))

    def _assigned(
        self, rows: pa.Table, fresh: Positions, numbers: Positions | None
    ) -> Iterator[tuple[Bucket, Positions]]:
        if numbers is None:
            if not len(fresh):
                return
            if self._assigner is None:
                self._assigner = self._open_assigner(take_rows(rows, fresh[:SAMPLE_ROWS]))
            start = 0
            for assigned, count in self._assigner.assign(len(fresh)):
                known = self._by_id.get(assigned.file_id)
                yield assigned if known is None else _next_version(known), fresh[start : start + count]
                start += count
            return
        for number in np.unique(numbers[fresh]).tolist():
            if number not in self._buckets:
                self._buckets[number] = Bucket(BucketType.INSERT, self._path, bucket_file_id(number, _new_file_id()))
            yield self._buckets[number], fresh[numbers[fresh] == number]

    def _open_assigner(self, sample: pa.Table) -> BucketAssigner:
        rules = measured_rules(self._plan, self._path, sample)
        free = [file for file in self._files if (self._path, file.file_id) not in self._plan.clustered]
        if self._groups.joins_logs:
            counted = (replace(one, size_bytes=self._groups.sizes[one.file_id]) for one in free)
            small = find_small_files(counted, replace(rules, small_file_limit_bytes=rules.max_file_size_bytes))
            return BucketAssigner(self._path, small, rules, _new_file_id)
        small = find_small_files(free, rules)
        if self._plan.logs is not None:
            fillable = (file for file in small if file.file_id in self._groups.fillable)
            small = tuple(islice(fillable, self._plan.logs.groups_filled))
        return BucketAssigner(self._path, small, rules, _new_file_id)

    def spill(self, placed: Placed) -> Iterator[Numbered]:
        """Rows on their way to disk, with the number of their file."""
        if placed.bucket not in self._spilled:
            self._spilled.append(placed.bucket)
        number = self._spilled.index(placed.bucket)
        parts = [(placed.inserts, np.full(len(placed.inserts), _INSERT, np.int8))]
        if placed.changes is not None:
            kinds = np.where(placed.changes.removes, _REMOVAL, _UPDATE).astype(np.int8)
            kinds[len(kinds) - placed.joined :] = _INSERT
            parts.append((placed.changes.incoming, kinds))
        for rows, kinds in parts:
            yield rows.append_column(_KIND_COLUMN, pa.array(kinds)), np.full(len(rows), number)

    def restore(self, number: int, rows: pa.Table, locator: Locator) -> Placed:
        """Restores the spilled rows of one file, in the form of `place`.

        Args:
            number: of the file.
            rows: all rows that were spilled for the file.
            locator: finds the keys in the file again, because their positions were not spilled.

        Raises:
            InvalidRecordError: their keys are too many to be looked up; names the file group.
        """
        with failing_at(partition_path=self._path, file_group=self._spilled[number].file_id):
            check_keys_fit(int(rows.column(RECORD_KEY).nbytes))
        kinds, rows = rows.column(_KIND_COLUMN).to_numpy(), rows.drop_columns([_KIND_COLUMN])
        bucket, is_new = self._spilled[number], kinds == _INSERT
        if is_new.all():
            return self._placed(bucket, None, rows)
        inserts = rows.filter(pa.array(is_new))
        updates = rows.filter(pa.array(~is_new)) if is_new.any() else rows  # which may be too many to copy
        removes = kinds[~is_new] == _REMOVAL
        placed = self._placed(bucket, _unlocated(updates, removes), inserts)
        if placed.log is not None:
            return placed
        [hit] = locator.find_in(self._by_id[bucket.file_id], updates)
        return Placed(bucket, changes_of(updates, removes, hit), inserts)


def changes_of(rows: pa.Table, removes: Flags, hit: FileHits) -> Changes:
    """The rows whose keys a file holds, as changes of that file.

    Args:
        rows: table columns and ``_hoodie_record_key``.
        removes: which rows remove their key whatever their ordering value.
        hit: the file; `FileHits.sought` are positions in `rows`.
    """
    chosen = hit.every
    matches = np.searchsorted(chosen, hit.sought)
    incoming = rows if len(chosen) == len(rows) else take_rows(rows, chosen)
    return Changes(incoming, hit.stored, matches, removes[chosen])


def _unlocated(rows: pa.Table, removes: Flags) -> Changes:
    """Changes for the log of a file group, which needs no positions in the base file."""
    nowhere = np.zeros(0, np.int64)
    return Changes(rows, nowhere, nowhere, removes)


def removes_of(rows: pa.Table, column: str) -> Flags:
    """A column of flags; null counts as false."""
    flags: Flags = pc.fill_null(rows.column(column), False).to_numpy()
    return flags


def _next_version(file: BaseFile) -> Bucket:
    return Bucket(BucketType.UPDATE, file.partition_path, file.file_id, file.name, file.size_bytes)


def _bucket_of_each(files: Sequence[BaseFile], buckets: int) -> dict[int, Bucket]:
    return {number: _next_version(file) for number, file in files_by_bucket(files, buckets).items()}


def _new_file_id() -> str:
    return build_file_id(clock.fresh_uuid())
