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
from streaming.plan.task_plan import GONE_COLUMN, TaskPlan
from streaming.task.locate_keys import files_by_bucket
from streaming.task.regroup import SLOT_COLUMN
from table import clock
from table.files.bloom.key_hashes import screen_hashes
from table.files.names import build_file_id
from table.index.bucket import bucket_file_id
from table.index.key_lookup import FileHits, LookupCounts
from table.records.merge import delete_flags
from table.schema.avro_schema import PARTITION_PATH, RECORD_KEY
from table.view.file_group import BaseFile
from table.write.context import Bucket, BucketType

LOTS = 32  # parts of a slot that is too large for memory
UPDATE_COLUMN = "_hudistream_update"

Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Found:
    """Where the rows of a slot are stored.

    Attributes:
        hits: files that hold keys; `FileHits.keys` are positions of rows.
        counts: what it cost.
        known: which rows' keys the table has.
        buckets: of each row, with a bucket index.
    """

    hits: Sequence[FileHits]
    counts: LookupCounts
    known: Flags
    buckets: Positions | None = None


@dataclass(frozen=True)
class Placed:
    """Rows that go into one file.

    Attributes:
        bucket: the file group.
        updates: rows whose keys it holds.
        gone: of these, which remove their key whatever the order.
        hit: where in the file the keys are; `FileHits.keys` are positions in `updates`. None: it holds none of them.
        inserts: rows that are new to the table.
    """

    bucket: Bucket
    updates: pa.Table
    gone: Flags
    hit: FileHits | None
    inserts: pa.Table


class Placer:
    """Places the rows of one slot.

    Args:
        path: the partition path.
        files: the slot's file groups.
        plan: from the driver.

    Attributes:
        buckets: file groups that rows were spilled for; their numbers are positions here.
    """

    def __init__(self, path: str, files: Sequence[BaseFile], plan: TaskPlan) -> None:
        assert plan.changes is not None
        self._path, self._plan, self._changes = path, plan, plan.changes
        small = find_small_files(as_live_files(files), plan.rules)
        self._assigner = BucketAssigner(path, small, plan.rules, _new_file_id)
        self._buckets = _bucket_of_each(files, plan.changes.buckets) if plan.changes.is_bucket else {}
        self.buckets: list[Bucket] = []

    def place(self, rows: pa.Table, gone: Flags, found: Found) -> Iterator[Placed]:
        """Rows by file.

        Args:
            rows: table columns and ``_hoodie_record_key``.
            gone: which of them remove their key whatever the order.
            found: where their keys are.
        """
        fresh = np.flatnonzero(~found.known & ~gone & ~delete_flags(rows, self._plan.context.merge))
        inserts = dict(self._assigned(fresh, found.buckets))
        for hit in () if self._changes.drops_known else found.hits:
            file = hit.file
            bucket = Bucket(BucketType.UPDATE, file.partition_path, file.file_id, file.name)
            yield Placed(bucket, rows, gone, hit, rows.take(pa.array(inserts.pop(bucket, fresh[:0]))))
        for bucket, positions in inserts.items():
            yield Placed(bucket, rows.slice(0, 0), gone[:0], None, rows.take(pa.array(positions)))

    def _assigned(self, fresh: Positions, numbers: Positions | None) -> Iterator[tuple[Bucket, Positions]]:
        if numbers is None:
            start = 0
            for bucket, count in self._assigner.assign(len(fresh)):
                yield bucket, fresh[start : start + count]
                start += count
            return
        for number in np.unique(numbers[fresh]).tolist():
            if number not in self._buckets:
                self._buckets[number] = Bucket(BucketType.INSERT, self._path, bucket_file_id(number, _new_file_id()))
            yield self._buckets[number], fresh[numbers[fresh] == number]

    def spill(self, placed: Placed) -> Iterator[pa.RecordBatch]:
        """Rows on their way to disk, with the number of their file."""
        if placed.bucket not in self.buckets:
            self.buckets.append(placed.bucket)
        number = self.buckets.index(placed.bucket)
        chosen = np.unique(placed.hit.keys) if placed.hit is not None else np.zeros(0, np.int64)
        updates = placed.updates.take(pa.array(chosen))
        parts = [(updates, placed.gone[chosen], True), (placed.inserts, np.zeros(len(placed.inserts), np.bool_), False)]
        for rows, gone, is_update in parts:
            table = rows.append_column(GONE_COLUMN, pa.array(gone))
            table = table.append_column(UPDATE_COLUMN, pa.array(np.full(len(rows), is_update)))
            yield from _in_slot(table, self._path, np.full(len(rows), number)).to_batches()

    def unspilled(self, rows: pa.Table) -> tuple[pa.Table, pa.Table, Flags]:
        """Updates, inserts, and which updates remove their key, of rows that were spilled for one file."""
        updates, inserts = rows.filter(rows.column(UPDATE_COLUMN)), rows.filter(pc.invert(rows.column(UPDATE_COLUMN)))
        gone = updates.column(GONE_COLUMN).to_numpy()
        names = [GONE_COLUMN, UPDATE_COLUMN]
        return updates.drop_columns(names), inserts.drop_columns(names), gone


def in_lots(rows: pa.Table, path: str) -> Iterator[pa.RecordBatch]:
    """Rows with the number of their lot: all rows of a key are in the same."""
    hashes = screen_hashes(rows.column(RECORD_KEY).combine_chunks().fill_null(""))[0]
    yield from _in_slot(rows, path, hashes % LOTS).to_batches()


def _in_slot(rows: pa.Table, path: str, numbers: npt.NDArray[np.generic]) -> pa.Table:
    table = rows.append_column(PARTITION_PATH, pa.array([path] * len(rows), pa.string()))
    return table.append_column(SLOT_COLUMN, pa.array(numbers.astype(np.int32)))


def _bucket_of_each(files: Sequence[BaseFile], buckets: int) -> dict[int, Bucket]:
    return {
        number: Bucket(BucketType.UPDATE, file.partition_path, file.file_id, file.name)
        for number, file in files_by_bucket(files, buckets).items()
    }


def _new_file_id() -> str:
    return build_file_id(clock.fresh_uuid())
