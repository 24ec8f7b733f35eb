"""What one task does with rows that may be in the table already: find them, merge, write (runs on a worker).

All rows of a key, and all file groups of a slot, are at one task, so a file group is written once a batch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.plan.live_files import as_base_files
from streaming.plan.task_plan import FILE_COLUMN, GONE_COLUMN, TaskPlan, TaskResult, decode_lookups
from streaming.task.locate_keys import distinct_keys, list_live_files, locate, owner_of
from streaming.task.place_rows import Found, Placed, Placer, in_lots
from streaming.task.regroup import NO_PATH, Group, regroup
from streaming.task.report import TaskReport
from table import clock
from table.columns.memory_size import rows_bytes
from table.failures import failing_at
from table.files.base.summary import BaseFileSummary
from table.index.bucket import bucket_numbers
from table.index.key_cache import cache_of_process
from table.index.key_lookup import FileHits, LookupCounts, find_keys
from table.keys.keygen import partition_path_problem
from table.records.merge import combine_rows
from table.schema.avro_schema import RECORD_KEY
from table.storage.interface import join
from table.timeline.metadata.commit import WriteStat
from table.view.file_group import BaseFile
from table.write.context import Attempt, Bucket
from table.write.merge_bucket import Changes, merge_bucket
from table.write.write_bucket import BucketWriter


def write_changes(plan: TaskPlan, write_token: str, batches: Iterable[pa.RecordBatch]) -> TaskResult:
    """Merges the rows of one task into their file groups.

    Args:
        plan: from the driver.
        write_token: this attempt's.
        batches: table columns, ``_hoodie_record_key``, ``_hoodie_partition_path``, the slot (int32), and
            ``_hudistream_arrival`` (int64) where rows of a key are combined.

    Returns:
        Files written, all whole; markers tell about the rest.

    Raises:
        HudiError: with instant, partition path and file group as far as they are known.
    """
    with failing_at(instant_time=plan.context.instant_time):
        task = _ChangeTask(plan, write_token)
        assert plan.changes is not None
        if not plan.changes.apart:  # else those that looked for the keys have looked at the text, too
            batches = task.report.without_bad_text(batches)
        for (path, slot), pieces in groupby(regroup(batches, plan.memory_bytes), itemgetter(0, 1)):
            with failing_at(partition_path=None if path == NO_PATH else path):
                task.write(path, slot, (rows for _, _, rows in pieces))
        return task.report.finish()


def required_for_changes(plan: TaskPlan) -> Mapping[str, str]:
    """Columns that must not be null -> why: a delete needs nothing but its key."""
    rules = plan.context.merge
    if rules.deletes_all:
        return {}
    names = plan.context.required
    reasons = dict.fromkeys(names, f"{', '.join(names)} null where the schema allows none")
    changes = plan.changes
    if rules.ordering_field is not None and changes is not None and not (changes.drops_known or changes.adds_only):
        reasons[rules.ordering_field] = f"the ordering field {rules.ordering_field} is null"
    return reasons


def whole_slots(pieces: Iterable[tuple[str, int, pa.Table]]) -> Iterator[tuple[Group, pa.Table]]:
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
        self._plan, self._changes, self._attempt = plan, plan.changes, Attempt(write_token)
        self._cache = cache_of_process(plan.changes.cache_bytes)
        self.report = TaskReport(plan, write_token)

    def write(self, path: str, slot: int, pieces: Iterator[pa.Table]) -> None:
        problem = partition_path_problem(None if path == NO_PATH else path)
        if problem is not None:
            for rows in pieces:
                self.report.count_bad(rows, problem)
            return
        files = self._find_files(path, slot)
        placer = Placer(path, files, self._plan)
        held, held_bytes = [], 0
        for rows in pieces:
            held.append(rows)
            held_bytes += rows_bytes(rows)
            if held_bytes > self._plan.memory_bytes:
                self._write_in_lots(path, files, placer, chain(held, pieces))
                return
        for placed in self._place(pa.concat_tables(held), files, placer):
            self._write_file(placed)

    def _write_in_lots(self, path: str, files: Sequence[BaseFile], placer: Placer, pieces: Iterator[pa.Table]) -> None:
        """A slot that is too large for memory: keys are looked for lot by lot, then files written one by one."""
        plan = self._plan
        lots = whole_slots(regroup((batch for rows in pieces for batch in in_lots(rows, path)), plan.memory_bytes))
        placed = (placed for _, rows in lots for placed in self._place(rows, files, placer))
        spilled = regroup((batch for one in placed for batch in placer.spill(one)), plan.memory_bytes)
        for (_, number), rows in whole_slots(spilled):
            updates, inserts, gone = placer.unspilled(rows)
            bucket, hit = placer.buckets[number], None
            if len(updates):
                [file] = [file for file in files if file.file_id == bucket.file_id]
                keys = updates.column(RECORD_KEY).combine_chunks()
                [hit], _ = find_keys(plan.context.storage, [file], keys, prune=False, ranges=False, cache=self._cache)
            self._write_file(Placed(bucket, updates, gone, hit, inserts))

    def _place(self, rows: pa.Table, files: Sequence[BaseFile], placer: Placer) -> Iterator[Placed]:
        """Rows by the file that they go into; those of a key are all here."""
        plan, changes = self._plan, self._changes
        if changes.apart:
            rows = self.report.without_problems(rows)
            gone = pc.fill_null(rows.column(GONE_COLUMN), False).to_numpy()
            rows = self.report.without_bad_rows(rows, required_for_changes(plan), exempt=gone)
            gone = pc.fill_null(rows.column(GONE_COLUMN), False).to_numpy()
        else:
            rows = self.report.without_bad_rows(rows, required_for_changes(plan))
            rows = combine_rows(rows, plan.context.merge) if changes.combines else rows
            gone = np.zeros(len(rows), np.bool_)
        if not len(rows):
            return
        found = self._find_tagged(rows, files) if changes.apart else self._find(rows, files)
        self.report.lookup += found.counts
        yield from placer.place(rows.select([*plan.context.schema.names, RECORD_KEY]), gone, found)

    def _find(self, rows: pa.Table, files: Sequence[BaseFile]) -> Found:
        keys, codes = distinct_keys(rows)
        located = locate(self._plan.context.storage, files, keys, self._changes, self._cache)
        known = np.zeros(len(keys), np.bool_)
        for hit in located.hits:
            known[hit.keys] = True
        last = np.zeros(len(keys), np.int64)  # where rows of a key were not combined, the last one counts
        last[codes] = np.arange(len(rows))
        hits = [FileHits(hit.file, hit.rows, last[hit.keys]) for hit in located.hits]
        buckets = None if located.buckets is None else located.buckets[codes]
        return Found(hits, located.counts, known[codes], buckets)

    def _find_tagged(self, rows: pa.Table, files: Sequence[BaseFile]) -> Found:
        """Other tasks found the file groups: what is left is where in them the keys are."""
        tags = rows.column(FILE_COLUMN).combine_chunks().dictionary_encode()
        codes = pc.fill_null(tags.indices, -1).to_numpy()
        by_id = {file.file_id: file for file in files}
        hits = []
        counts, started_s = decode_lookups(rows), clock.monotonic_s()
        for code, file_id in enumerate(tags.dictionary.to_pylist()):
            mine = np.flatnonzero(codes == code)
            keys = rows.column(RECORD_KEY).combine_chunks().take(pa.array(mine))
            found, _ = find_keys(
                self._plan.context.storage, [by_id[file_id]], keys, prune=False, ranges=False, cache=self._cache
            )
            hits += [FileHits(hit.file, hit.rows, mine[hit.keys]) for hit in found]
        counts += LookupCounts(spent_ms=clock.ms_since(started_s))
        buckets = None
        if self._changes.is_bucket:
            buckets = bucket_numbers(
                rows.column(RECORD_KEY).combine_chunks(), self._changes.buckets, self._changes.bucket_fields
            )
        return Found(hits, counts, codes >= 0, buckets)

    def _find_files(self, path: str, slot: int) -> Sequence[BaseFile]:
        """The file groups of a path that this slot owns."""
        known = self._changes.files.of(path)
        if known is None:
            known = self.report.listed.get(path)
        if known is None:
            known = self.report.listed[path] = list_live_files(self._plan, path)
        files, slots = as_base_files(path, known), self._plan.routes.slots_of(path)
        if slots == 1:
            return files
        return [file for file in files if owner_of(file.file_id, slots, self._changes) == slot]

    def _write_file(self, placed: Placed) -> None:
        with failing_at(partition_path=placed.bucket.partition_path, file_group=placed.bucket.file_id):
            self._write_bucket(placed)

    def _write_bucket(self, placed: Placed) -> None:
        if placed.hit is None:
            self._append(placed.bucket, placed.inserts)
            return
        chosen, matches = np.unique(placed.hit.keys, return_inverse=True)
        changes = Changes(placed.updates.take(pa.array(chosen)), placed.hit.rows, matches, placed.gone[chosen])
        done = merge_bucket(self._plan.context, placed.bucket, self._attempt, changes, placed.inserts)
        self._add_file(placed.bucket, *done)

    def _append(self, bucket: Bucket, rows: pa.Table) -> None:
        writer = BucketWriter(self._plan.context, bucket, self._attempt)
        try:
            writer.write(rows)
            self._add_file(bucket, *writer.close())
        except BaseException:
            writer.abandon()
            raise

    def _add_file(self, bucket: Bucket, stat: WriteStat, summary: BaseFileSummary) -> None:
        self.report.add_file(stat, summary)
        older = join(bucket.partition_path, bucket.base_file) if bucket.base_file is not None else None
        if summary.contents is not None:
            started_s = clock.monotonic_s()
            self._cache.replace(self._plan.context.storage.base_uri, older, stat.path, summary.contents)
            self.report.lookup += LookupCounts(update_ms=clock.ms_since(started_s))
