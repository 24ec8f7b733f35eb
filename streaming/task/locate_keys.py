"""Where the keys of a task's rows are stored already: files that hold some of them, whatever the index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streaming.plan.bucket_assigner import LiveFile
from streaming.plan.live_files import live_files_of
from streaming.plan.task_plan import ChangePlan, TaskPlan
from table import clock
from table.errors import InvalidConfigError
from table.index.bucket import bucket_numbers, bucket_of_file_id
from table.index.key_cache import KeyCache
from table.index.key_lookup import FileHits, LookupCounts, find_keys
from table.schema.avro_schema import RECORD_KEY
from table.storage.interface import Storage
from table.view.file_group import BaseFile
from table.view.file_system_view import list_latest_slices
from table.view.listing import StorageListing

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Located:
    """Where keys are.

    Attributes:
        hits: files that hold some of them; a key may be in several.
        counts: what it cost.
        buckets: for each key its bucket, with a bucket index.
    """

    hits: Sequence[FileHits]
    counts: LookupCounts
    buckets: Positions | None = None


def locate(
    storage: Storage, files: Sequence[BaseFile], keys: pa.Array, changes: ChangePlan, cache: KeyCache
) -> Located:
    """Looks for keys in the live files of one or all partition paths.

    Args:
        storage: the table's.
        files: the files.
        keys: string array without nulls, no key twice.
        changes: the index.
        cache: of this process.

    Raises:
        InvalidConfigError: when files are not laid out as the bucket index has it.
    """
    started_s = clock.monotonic_s()
    found = _locate(storage, files, keys, changes, cache)
    return replace(found, counts=found.counts + LookupCounts(spent_ms=clock.ms_since(started_s)))


def _locate(
    storage: Storage, files: Sequence[BaseFile], keys: pa.Array, changes: ChangePlan, cache: KeyCache
) -> Located:
    if changes.is_bucket:
        return _locate_in_buckets(storage, files, keys, changes, cache)
    if changes.adds_only:
        return Located((), LookupCounts())
    hits, counts = find_keys(storage, files, keys, prune=changes.prunes, ranges=changes.prune_by_ranges, cache=cache)
    return Located(hits, counts)


def _locate_in_buckets(
    storage: Storage, files: Sequence[BaseFile], keys: pa.Array, changes: ChangePlan, cache: KeyCache
) -> Located:
    numbers = bucket_numbers(keys, changes.buckets, changes.bucket_fields)
    by_bucket = files_by_bucket(files, changes.buckets)
    hits: list[FileHits] = []
    counts = LookupCounts()
    for bucket in [] if changes.adds_only else np.unique(numbers).tolist():
        file = by_bucket.get(bucket)
        mine = np.flatnonzero(numbers == bucket)
        if file is None:
            counts += LookupCounts(keys=len(mine))
            continue
        found, cost = find_keys(storage, [file], keys.take(pa.array(mine)), prune=False, ranges=False, cache=cache)
        counts += cost
        hits += [FileHits(hit.file, hit.rows, mine[hit.keys]) for hit in found]
    return Located(hits, counts, numbers)


def list_live_files(plan: TaskPlan, path: str) -> tuple[LiveFile, ...]:
    """The live files of a partition path that the driver does not know."""
    # on an empty timeline nothing counts, and nothing need be listed (S21)
    if not plan.committed.times:
        return ()
    return live_files_of(list_latest_slices(StorageListing(plan.context.storage), path, plan.committed))


def distinct_keys(rows: pa.Table) -> tuple[pa.Array, Positions]:
    """The record keys without repetition, and for each row the position of its key among them."""
    encoded = rows.column(RECORD_KEY).combine_chunks().dictionary_encode()
    return encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)


def owner_of(file_id: str, slots: int, changes: ChangePlan) -> int:
    """The slot of a partition path that writes a file group: the same whoever asks."""
    bucket = bucket_of_file_id(file_id) if changes.is_bucket else None
    return (crc32(file_id.encode()) if bucket is None else bucket) % slots


def files_by_bucket(files: Sequence[BaseFile], buckets: int) -> Mapping[int, BaseFile]:
    """The file of each bucket of a partition path.

    Raises:
        InvalidConfigError: for a file that is no bucket's, or one of a bucket that there is not.
    """
    found: dict[int, BaseFile] = {}
    for file in files:
        bucket = bucket_of_file_id(file.file_id)
        if bucket is None or bucket >= buckets or bucket in found:
            what = "is not one of a bucket index" if bucket is None else f"holds bucket {bucket}"
            raise InvalidConfigError(
                f"the file {file.path!r} {what}, hoodie.bucket.index.num.buckets={buckets}: the number of buckets is "
                "fixed when a table is made; set the table's own, or another hoodie.index.type"
            )
        found[bucket] = file
    return found
