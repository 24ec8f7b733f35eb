"""Rows of a slot by the file that each goes into: updates where their key is, new keys where there is room.

What does not fit into memory passes through here lot by lot: the state of the small files goes on from lot to
lot, and rows are spilled with the number of their file.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streaming.plan.bucket_assigner import BucketAssigner, find_small_files
from streaming.plan.live_files import as_live_files
from streaming.plan.task_plan import TaskPlan
from streaming.task.grouping import Numbered
from streaming.task.locate_keys import Located, Locator, files_by_bucket
from streaming.task.measured_rules import measured_rules
from table import clock
from table.files.names import build_file_id
from table.index.bucket import bucket_file_id
from table.index.key_lookup import FileHits
from table.records.merge import delete_flags
from table.view.file_group import BaseFile
from table.write.context import Bucket, BucketType
from table.write.measure import SAMPLE_ROWS
from table.write.merge_bucket import Changes

Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]

_KIND_COLUMN = "_hudistream_kind"  # of spilled rows, which nobody else sees
_INSERT, _UPDATE, _REMOVAL = range(3)


@dataclass(frozen=True)
class Placed:
    """Rows that go into one file.

    Attributes:
        bucket: the file group.
        changes: records of keys that it holds; None: it holds none of them.
        inserts: rows that are new to the table.
    """

    bucket: Bucket
    changes: Changes | None
    inserts: pa.Table


class Placer:
    """Places the rows of one slot.

    Args:
        path: the partition path.
        files: the slot's file groups.
        plan: from the driver.
    """

    def __init__(self, path: str, files: Sequence[BaseFile], plan: TaskPlan) -> None:
        assert plan.changes is not None
        self._path, self._files, self._plan, self._changes = path, files, plan, plan.changes
        self._assigner: BucketAssigner | None = None
        self._buckets = _bucket_of_each(files, plan.changes.buckets) if plan.changes.is_bucket else {}
        self._spilled: list[Bucket] = []  # file groups that rows were spilled for, by their numbers

    def place(self, rows: pa.Table, removes: Flags, located: Located) -> Iterator[Placed]:
        """Rows by file.

        Args:
            rows: table columns and ``_hoodie_record_key``.
            removes: which of them remove their key whatever the order.
            located: where their keys are.
        """
        fresh = np.flatnonzero(~located.known & ~removes & ~delete_flags(rows, self._plan.context.merge))
        inserts = dict(self._assigned(rows, fresh, located.buckets))
        for hit in () if self._changes.drops_known else located.hits:
            bucket = _next_version(hit.file)
            new = rows.take(pa.array(inserts.pop(bucket, fresh[:0])))
            yield Placed(bucket, changes_of(rows, removes, hit), new)
        for bucket, positions in inserts.items():
            yield Placed(bucket, None, rows.take(pa.array(positions)))

    def _assigned(
        self, rows: pa.Table, fresh: Positions, numbers: Positions | None
    ) -> Iterator[tuple[Bucket, Positions]]:
        if numbers is None:
            if not len(fresh):
                return
            if self._assigner is None:
                self._assigner = self._open_assigner(rows.take(pa.array(fresh[:SAMPLE_ROWS])))
            start = 0
            for bucket, count in self._assigner.assign(len(fresh)):
                yield bucket, fresh[start : start + count]
                start += count
            return
        for number in np.unique(numbers[fresh]).tolist():
            if number not in self._buckets:
                self._buckets[number] = Bucket(BucketType.INSERT, self._path, bucket_file_id(number, _new_file_id()))
            yield self._buckets[number], fresh[numbers[fresh] == number]

    def _open_assigner(self, sample: pa.Table) -> BucketAssigner:
        rules = measured_rules(self._plan, self._path, sample)
        small = find_small_files(as_live_files(self._files), rules)
        return BucketAssigner(self._path, small, rules, _new_file_id)

    def spill(self, placed: Placed) -> Iterator[Numbered]:
        """Rows on their way to disk, with the number of their file."""
        if placed.bucket not in self._spilled:
            self._spilled.append(placed.bucket)
        number = self._spilled.index(placed.bucket)
        parts = [(placed.inserts, np.full(len(placed.inserts), _INSERT, np.int8))]
        if placed.changes is not None:
            kinds = np.where(placed.changes.removes, _REMOVAL, _UPDATE).astype(np.int8)
            parts.append((placed.changes.incoming, kinds))
        for rows, kinds in parts:
            yield rows.append_column(_KIND_COLUMN, pa.array(kinds)), np.full(len(rows), number)

    def restore(self, number: int, rows: pa.Table, locator: Locator) -> Placed:
        """What was spilled for one file, as `place` would have given it.

        Args:
            number: of the file.
            rows: all that was spilled for it.
            locator: finds the keys in the file once more; their positions were not spilled.
        """
        kinds, rows = rows.column(_KIND_COLUMN).to_numpy(), rows.drop_columns([_KIND_COLUMN])
        bucket, inserts = self._spilled[number], rows.filter(pa.array(kinds == _INSERT))
        updates, removes = rows.filter(pa.array(kinds != _INSERT)), kinds[kinds != _INSERT] == _REMOVAL
        if not len(updates):
            return Placed(bucket, None, inserts)
        [file] = [file for file in self._files if file.file_id == bucket.file_id]
        [hit] = locator.find_in(file, updates)
        return Placed(bucket, changes_of(updates, removes, hit), inserts)


def changes_of(rows: pa.Table, removes: Flags, hit: FileHits) -> Changes:
    """The records among rows whose keys a file holds.

    Args:
        rows: table columns and ``_hoodie_record_key``.
        removes: which of them remove their key whatever the order.
        hit: the file; it speaks of positions in `rows`.
    """
    chosen, matches = np.unique(hit.sought, return_inverse=True)
    return Changes(rows.take(pa.array(chosen)), hit.stored, matches, removes[chosen])


def removes_of(rows: pa.Table, column: str) -> Flags:
    """A column of flags; null counts as false."""
    flags: Flags = pc.fill_null(rows.column(column), False).to_numpy()
    return flags


def _next_version(file: BaseFile) -> Bucket:
    return Bucket(BucketType.UPDATE, file.partition_path, file.file_id, file.name)


def _bucket_of_each(files: Sequence[BaseFile], buckets: int) -> dict[int, Bucket]:
    return {number: _next_version(file) for number, file in files_by_bucket(files, buckets).items()}


def _new_file_id() -> str:
    return build_file_id(clock.fresh_uuid())
