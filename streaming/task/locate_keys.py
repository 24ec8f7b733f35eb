"""Finds the files that already hold keys of a task's rows, with any index."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streaming.plan.columns import FILE_COLUMN, LOOKUP_COLUMN
from streaming.plan.live_files import base_files_of
from streaming.plan.task_plan import ChangePlan, TaskPlan
from streaming.task.list_path import list_path
from streaming.task.log_only_keys import refuse_log_only_keys
from table import clock
from table.columns.take import take_rows
from table.errors import InvalidConfigError
from table.files.base.summary import FileContents
from table.index.bucket import bucket_numbers, bucket_of_file_id
from table.index.key_cache import KeyCache
from table.index.key_lookup import FileHits, LookupCounts, find_keys
from table.metadata_table.file_lists import Failures
from table.metadata_table.read_record_index import RecordIndex
from table.schema.avro_schema import RECORD_KEY
from table.storage.interface import Storage
from table.view.file_group import BaseFile

Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]
FilesOf = Callable[[Sequence[str]], Sequence[BaseFile]]
LogHas = Callable[[BaseFile, pa.Array], bool]


@dataclass(frozen=True)
class Located:
    """Where the keys of rows are stored. Row positions refer to the table that was passed in.

    Attributes:
        hits: files that hold some of the keys; a key may be in several. If several rows have the same key (the batch
            was not combined), the last one counts.
        counts: the cost of the lookup.
        known: for each row whether the table has its key.
        buckets: for each row its bucket, with a bucket index.
    """

    hits: Sequence[FileHits]
    counts: LookupCounts
    known: Flags
    buckets: Positions | None = None


class Locator:
    """Looks for keys in the live files of partition paths.

    Args:
        changes: the index and its settings.
        cache: the key cache of the table in this process.
    """

    def __init__(self, storage: Storage, changes: ChangePlan, cache: KeyCache) -> None:
        self._changes, self._cache = changes, cache
        self._find = partial(find_keys, storage, cache=cache, virtual=changes.virtual)

    def locate(self, rows: pa.Table, files: Sequence[BaseFile]) -> Located:
        """Looks for the keys of rows.

        Args:
            rows: with ``_hoodie_record_key``.
            files: of the partition path, or of the table.

        Raises:
            InvalidConfigError: the files do not fit the bucket index.
        """
        started_s = clock.monotonic_s()
        keys, codes = _encoded_keys(rows)
        hits, counts, buckets = self._look_for(keys, files)
        return _located(hits, counts + LookupCounts(spent_ms=clock.ms_since(started_s)), codes, len(keys), buckets)

    def locate_by_index(self, rows: pa.Table, index: RecordIndex, files_of: FilesOf, log_has: LogHas) -> Located | None:
        """As `locate`, where a record index says which file groups hold the keys, and that no other one does.

        Args:
            rows: with ``_hoodie_record_key``.
            index: as of the snapshot from which the batch was planned.
            files_of: returns the live files of some partition paths.
            log_has: whether all of some keys are rows of a file's slice that its log files have.

        Returns:
            Where the keys are; None where the index cannot be read, or a file does not hold what the index says.
        """
        started_s = clock.monotonic_s()
        keys, codes = _encoded_keys(rows)
        try:
            places = index.find(keys, self._cache)
        except Failures:
            return None  # it was dropped meanwhile, or compacted twice
        by_group = places.by_group()
        files = {(file.partition_path, file.file_id): file for file in files_of(sorted({path for path, _ in by_group}))}
        if by_group.keys() - files.keys():
            return None
        hits = []
        for group, mine in sorted(by_group.items()):
            hit = self._find_in_group(files[group], keys.take(pa.array(mine)), mine)
            if len(hit.logged) and not log_has(hit.file, keys.take(pa.array(hit.logged))):
                return None
            hits.append(hit)
        counts = LookupCounts(keys=len(keys), files=len(hits), read=len(hits), spent_ms=clock.ms_since(started_s))
        return _located(hits, replace(counts, indexed=len(keys)), codes, len(keys))

    def resolve(self, rows: pa.Table, files: Sequence[BaseFile]) -> Located:
        """Finds the positions of tagged rows' keys in their files. Other tasks have found the file groups.

        Args:
            rows: with ``_hoodie_record_key`` and the tags (`streaming.plan.columns`), one row per file group and key.
            files: with the file groups that the tags name.
        """
        started_s = clock.monotonic_s()
        tags = rows.column(FILE_COLUMN).combine_chunks().dictionary_encode()
        codes = pc.fill_null(tags.indices, -1).to_numpy()
        by_id = {file.file_id: file for file in files}
        hits: list[FileHits] = []
        for code, file_id in enumerate(tags.dictionary.to_pylist()):
            mine = np.flatnonzero(codes == code)
            keys = take_rows(rows.select([RECORD_KEY]), mine).column(RECORD_KEY).combine_chunks()
            hits.append(self._find_in_group(by_id[file_id], keys, mine))
        counts = decode_lookups(rows) + LookupCounts(spent_ms=clock.ms_since(started_s))
        buckets = None
        if self._changes.is_bucket:
            buckets = self._buckets_of(rows.column(RECORD_KEY).combine_chunks())
        return Located(hits, counts, codes >= 0, buckets)

    def find_in(self, file: BaseFile, rows: pa.Table, positions: Positions | None = None) -> list[FileHits]:
        """Finds the positions of the rows' keys in the one file that holds them.

        Args:
            file: the file.
            rows: with ``_hoodie_record_key``, no key twice.
            positions: positions of the rows in a larger table; the hits then refer to that table.
        """
        return self._find_keys_in(file, rows.column(RECORD_KEY).combine_chunks(), positions)

    def _find_in_group(self, file: BaseFile, keys: pa.Array, positions: Positions) -> FileHits:
        """As `_find_keys_in`, where the file group has all of the keys: its log has those that the file has not."""
        found = self._find_keys_in(file, keys, positions)
        hit = found[0] if found else FileHits(file, np.zeros(0, np.int64), np.zeros(0, np.int64))
        return replace(hit, logged=np.setdiff1d(positions, hit.sought))

    def _find_keys_in(self, file: BaseFile, keys: pa.Array, positions: Positions | None = None) -> list[FileHits]:
        hits, _ = self._find([file], keys, prune=False, ranges=False)
        return hits if positions is None else [hit.at(positions) for hit in hits]

    def remember(self, older: str | None, path: str, contents: FileContents) -> LookupCounts:
        """Puts the contents of a newly written file into the cache. Returns the cost."""
        started_s = clock.monotonic_s()
        self._cache.replace(older, path, contents)
        return LookupCounts(update_ms=clock.ms_since(started_s))

    def _look_for(
        self, keys: pa.Array, files: Sequence[BaseFile]
    ) -> tuple[Sequence[FileHits], LookupCounts, Positions | None]:
        changes = self._changes
        if changes.is_bucket:
            return self._look_in_buckets(keys, files)
        if changes.adds_only:
            return (), LookupCounts(), None
        hits, counts = self._find(files, keys, prune=changes.prunes, ranges=changes.prune_by_ranges)
        return hits, counts, None

    def _look_in_buckets(
        self, keys: pa.Array, files: Sequence[BaseFile]
    ) -> tuple[Sequence[FileHits], LookupCounts, Positions]:
        changes, numbers = self._changes, self._buckets_of(keys)
        by_bucket = files_by_bucket(files, changes.buckets)
        hits: list[FileHits] = []
        counts = LookupCounts()
        for bucket in [] if changes.adds_only or changes.to_logs else np.unique(numbers).tolist():
            mine = np.flatnonzero(numbers == bucket)
            if bucket not in by_bucket:
                counts += LookupCounts(keys=len(mine))
                continue
            sought = keys.take(pa.array(mine))
            found, cost = self._find([by_bucket[bucket]], sought, prune=False, ranges=False)
            counts += cost
            hits += [hit.at(mine) for hit in found]
        return hits, counts, numbers

    def _buckets_of(self, keys: pa.Array) -> Positions:
        return bucket_numbers(keys, self._changes.buckets, self._changes.bucket_fields)


def _encoded_keys(rows: pa.Table) -> tuple[pa.Array, Positions]:
    """The keys of rows, each once, and for each row the position of its key."""
    encoded = rows.column(RECORD_KEY).combine_chunks().dictionary_encode()
    return encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)


def _located(
    hits: Sequence[FileHits], counts: LookupCounts, codes: Positions, count: int, buckets: Positions | None = None
) -> Located:
    """Turns positions of keys into positions of rows.

    Args:
        hits: with positions of keys.
        counts: the cost of the lookup.
        codes: for each row the position of its key.
        count: number of keys.
        buckets: for each key its bucket.
    """
    known = np.zeros(count, np.bool_)
    for hit in hits:
        known[hit.sought] = known[hit.logged] = True
    last = np.zeros(count, np.int64)
    last[codes] = np.arange(len(codes))
    at_rows = [hit.at(last) for hit in hits]
    return Located(at_rows, counts, known[codes], None if buckets is None else buckets[codes])


def decode_lookups(rows: pa.Table) -> LookupCounts:
    """Sums the lookup costs of the tasks that looked up the keys: each task put its cost into one of its rows."""
    texts = rows.column(LOOKUP_COLUMN).drop_null().to_pylist()
    return sum((LookupCounts(**json.loads(text)) for text in texts), LookupCounts())


def list_live_files(plan: TaskPlan, path: str) -> tuple[BaseFile, ...]:
    """The live files of a partition path that the driver does not know.

    Raises:
        UnsupportedTableError: the batch looks for keys in base files, and some keys are only in log files.
    """
    # on an empty timeline no file is visible, so no listing is needed
    if not plan.committed.times:
        return ()
    groups = list_path(plan, path)
    if plan.logs is not None and plan.changes is not None and not plan.changes.is_bucket:
        refuse_log_only_keys(plan, groups)
    return base_files_of(group.latest_slice for group in groups)


def owner_of(file_id: str, slots: int, changes: ChangePlan) -> int:
    """The slot of a partition path that writes a file group. All tasks get the same answer."""
    bucket = bucket_of_file_id(file_id) if changes.is_bucket else None
    return (crc32(file_id.encode()) if bucket is None else bucket) % slots


def files_by_bucket(files: Sequence[BaseFile], buckets: int) -> Mapping[int, BaseFile]:
    """The file of each bucket of a partition path.

    Raises:
        InvalidConfigError: a file belongs to no bucket, to a bucket number that is too high, or to a bucket that
            another file has.
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
