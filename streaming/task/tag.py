"""What a task does that looks for keys on behalf of others: every row is tagged with the file group that holds its key.

Needed where the task that gets a key is not the one that writes its file group: with a global index, because the
key may be in any partition path; and where one path has more work than a task should have.

Which rows leave here, and where they go, is decided by the rows and the table alone: Spark may run this
again and must see the same.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, groupby
from operator import itemgetter
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streaming.plan.live_files import as_base_files
from streaming.plan.task_plan import FILE_COLUMN, GONE_COLUMN, LOOKUP_COLUMN, PROBLEM_COLUMN, TaskPlan
from streaming.task.locate_keys import distinct_keys, list_live_files, locate, owner_of
from streaming.task.place_rows import in_lots
from streaming.task.regroup import SLOT_COLUMN, regroup
from streaming.task.upsert import required_for_changes, whole_slots
from table.columns.conform import conform
from table.columns.memory_size import rows_bytes
from table.columns.text_bytes import find_bad_text, made_readable
from table.failures import failing_at
from table.files.base.stored_file import StoredBaseFile
from table.files.bloom.key_hashes import screen_hashes
from table.index.bucket import bucket_numbers
from table.index.key_cache import cache_of_process
from table.index.key_lookup import FileHits, LookupCounts
from table.keys.keygen import partition_path_problem
from table.records.merge import PARTIAL_UPDATE, combine_rows, delete_flags, filled_from_older, newer_than_stored
from table.schema.avro_schema import PARTITION_PATH, RECORD_KEY
from table.view.file_group import BaseFile

_PATH_ASIDE = "_hudistream_path"

Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


def tag_rows(plan: TaskPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Tags the rows of one task.

    Args:
        plan: from the driver.
        batches: as `TaskPlan.arriving_schema`; all rows of a key are here, with a global index of whatever path.

    Yields:
        Rows as `TaskPlan.tagged_schema`: one a file group that holds the key, or one without. Rows that cannot be
        stored pass through as they are: they are reported where the others are written.

    Raises:
        HudiError: with instant, partition path and file group as far as they are known.
    """
    with failing_at(instant_time=plan.context.instant_time):
        tagger = _Tagger(plan)
        for rows in _lots(plan, (piece for batch in batches for piece in _with_problems(batch).to_batches())):
            yield from tagger.tag(rows)


def tasks_of(plan: TaskPlan, rows: pa.Table) -> Positions:
    """For each tagged row the task that writes its slot."""
    paths = _encoded(rows.column(PARTITION_PATH))
    slots = rows.column(SLOT_COLUMN).to_numpy().astype(np.int64)
    several = int(slots.max(initial=0)) + 1
    groups, inverse = np.unique(paths.indices.to_numpy() * several + slots, return_inverse=True)
    tasks = [_task_of(plan, paths.dictionary[group // several].as_py(), group % several) for group in groups.tolist()]
    return np.array(tasks, np.int64)[inverse]


def _task_of(plan: TaskPlan, path: str, slot: int) -> int:
    planned = plan.routes.planned.get(path)
    return planned[slot] if planned else crc32(f"{path}\0{slot}".encode()) % plan.routes.tasks


def _encoded(paths: pa.ChunkedArray) -> pa.DictionaryArray:
    """Partition paths as a dictionary; "" where there is none."""
    return pc.fill_null(paths, "").combine_chunks().dictionary_encode()


def _lots(plan: TaskPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Rows that have to be looked at together, with their partition path: all of a key, and no more than fit."""
    assert plan.changes is not None
    if plan.changes.is_global:
        yield from _fitting((pa.Table.from_batches([batch]).drop_columns([SLOT_COLUMN]) for batch in batches), plan)
        return
    for path, pieces in groupby(regroup(batches, plan.memory_bytes), itemgetter(0)):
        yield from _fitting((_with_path(rows, path) for _, _, rows in pieces), plan)


def _with_problems(batch: pa.RecordBatch) -> pa.Table:
    """Rows with what is wrong with their text, which is made readable then: nobody behind can fail on it."""
    rows = pa.Table.from_batches([batch])
    said = pa.nulls(len(rows), pa.string())
    bad = find_bad_text(rows)
    for part in reversed(bad):
        said = pc.if_else(pa.array(part.rows), part.reason, said)
    return (made_readable(rows) if bad else rows).append_column(PROBLEM_COLUMN, said)


def _with_path(rows: pa.Table, path: str) -> pa.Table:
    return rows.append_column(PARTITION_PATH, pa.array([path] * len(rows), pa.string()))


def _fitting(pieces: Iterator[pa.Table], plan: TaskPlan) -> Iterator[pa.Table]:
    held, held_bytes = [], 0
    for rows in pieces:
        held.append(rows)
        held_bytes += rows_bytes(rows)
        if held_bytes > plan.memory_bytes:
            # grouping takes the partition path away: here it is a column like others
            aside = (_renamed(piece, PARTITION_PATH, _PATH_ASIDE) for piece in chain(held, pieces))
            spilled = regroup((batch for piece in aside for batch in in_lots(piece, "")), plan.memory_bytes)
            yield from (_renamed(lot, _PATH_ASIDE, PARTITION_PATH) for _, lot in whole_slots(spilled))
            return
    if held:
        yield pa.concat_tables(held)


def _renamed(rows: pa.Table, name: str, new: str) -> pa.Table:
    return rows.rename_columns([new if column == name else column for column in rows.column_names])


@dataclass(frozen=True)
class _Part:
    """Rows that go the same way.

    Attributes:
        rows: with their partition path.
        file: the file group that holds their keys; None: none does, and they go where their path says.
        gone: whether their keys leave that file group.
    """

    rows: pa.Table
    file: BaseFile | None = None
    gone: bool = False


class _Tagger:
    def __init__(self, plan: TaskPlan) -> None:
        assert plan.changes is not None
        self._plan, self._changes = plan, plan.changes
        self._cache = cache_of_process(plan.changes.cache_bytes)
        self._everywhere: Sequence[BaseFile] | None = None

    def tag(self, rows: pa.Table) -> Iterator[pa.Table]:
        good = self._storable(rows)
        if not good.all():
            yield self._tagged(_Part(rows.filter(pa.array(~good))), None)
            rows = rows.filter(pa.array(good))
        if not len(rows):
            return
        rows = combine_rows(rows, self._plan.context.merge) if self._changes.combines else rows
        keys, codes = distinct_keys(rows)
        files = self._find_files(pc.unique(rows.column(PARTITION_PATH)).to_pylist())
        located = locate(self._plan.context.storage, files, keys, self._changes, self._cache)
        counts: LookupCounts | None = located.counts
        for part in self._parts(rows, codes, located.hits):
            if len(part.rows):
                yield self._tagged(part, counts)
                counts = None

    def _storable(self, rows: pa.Table) -> Flags:
        """Which rows the tasks that write will not turn away."""
        paths = _encoded(rows.column(PARTITION_PATH))
        fit = np.array([partition_path_problem(path) is None for path in paths.dictionary.to_pylist()], np.bool_)
        good: Flags = fit[paths.indices.to_numpy()] & pc.is_valid(rows.column(PARTITION_PATH)).to_numpy()
        good &= pc.fill_null(pc.utf8_length(rows.column(RECORD_KEY)), 0).to_numpy() > 0
        good &= pc.is_null(rows.column(PROBLEM_COLUMN)).to_numpy()
        for name in required_for_changes(self._plan):
            good &= pc.is_valid(rows.column(name)).to_numpy()
        return good

    def _find_files(self, paths: Sequence[str]) -> Sequence[BaseFile]:
        """Where the keys of rows with these partition paths may be."""
        changes = self._changes
        if not changes.is_global:
            return self._files_of(paths)
        if self._everywhere is None:
            paths = sorted(changes.files) if changes.files.is_complete else changes.partition_paths
            self._everywhere = self._files_of(paths)
        return self._everywhere

    def _files_of(self, paths: Iterable[str]) -> Sequence[BaseFile]:
        found: list[BaseFile] = []
        for path in paths:
            known = self._changes.files.of(path)
            with failing_at(partition_path=path):
                found += as_base_files(path, list_live_files(self._plan, path) if known is None else known)
        return found

    def _parts(self, rows: pa.Table, codes: Positions, hits: Sequence[FileHits]) -> Iterator[_Part]:
        """Rows by what becomes of them: updates where they are, removals where they were, inserts where they go."""
        last = np.zeros(len(rows), np.int64)
        last[codes] = np.arange(len(rows))  # where rows of a key were not combined, the last one counts
        encoded = _encoded(rows.column(PARTITION_PATH))
        paths = encoded.indices.to_numpy()
        numbers = {path: number for number, path in enumerate(encoded.dictionary.to_pylist())}
        deletes = delete_flags(rows, self._plan.context.merge)
        stored = np.zeros(len(rows), np.bool_)  # somewhere
        stays = np.zeros(len(rows), np.bool_)  # in the partition path that the row names
        for hit in hits:
            positions = last[hit.keys]
            stored[positions] = True
            stays[positions[paths[positions] == numbers.get(hit.file.partition_path, -1)]] = True
        may_leave = self._changes.moves and not self._changes.drops_known
        moved: list[pa.Table] = []
        for hit in hits:
            positions, first = np.unique(last[hit.keys], return_index=True)
            elsewhere = paths[positions] != numbers.get(hit.file.partition_path, -1)
            leaves = elsewhere & ~deletes[positions] & may_leave
            yield _Part(rows.take(pa.array(positions[~leaves])), hit.file)
            going = positions[leaves]
            if len(going):
                merged, wins = self._moved(hit.file, hit.rows[first[leaves]], rows.take(pa.array(going)))
                yield _Part(rows.take(pa.array(going[wins])), hit.file, gone=True)
                new = wins & ~stays[going]
                stays[going[new]] = True
                moved.append(merged.filter(pa.array(new)))
        fresh = rows.filter(pa.array(~stored[last[codes]] & ~deletes))
        for table in (*moved, fresh):
            yield _Part(table)

    def _moved(self, file: BaseFile, stored_rows: Positions, incoming: pa.Table) -> tuple[pa.Table, Flags]:
        """Rows that leave a file as they will be elsewhere, and which of them are new enough to do so.

        A partial record moves its key even when it is late: Hudi 1.0.2 has the incoming record's meta columns win.
        """
        rules, schema = self._plan.context.merge, self._plan.context.schema
        if rules.mode != PARTIAL_UPDATE and (rules.ordering_field is None or rules.deletes_all):
            return incoming, np.ones(len(incoming), np.bool_)
        with (
            failing_at(partition_path=file.partition_path, file_group=file.file_id),
            StoredBaseFile(self._plan.context.storage, file.path) as stored,
        ):
            old = _rows_at(stored, schema, stored_rows)
        newer = newer_than_stored(old, incoming, rules)
        if rules.mode != PARTIAL_UPDATE:
            return incoming, newer
        filled = filled_from_older(old, incoming.select(schema.names), newer)
        rest = [name for name in incoming.column_names if name not in schema.names]
        for name in rest:
            filled = filled.append_column(name, incoming.column(name))
        return filled, np.ones(len(incoming), np.bool_)

    def _tagged(self, part: _Part, counts: LookupCounts | None) -> pa.Table:
        """Rows ready to travel: to the slot that owns their file group, or by their key."""
        rows, file, count = part.rows, part.file, len(part.rows)
        paths = rows.column(PARTITION_PATH) if file is None else pa.array([file.partition_path] * count, pa.string())
        table = conform(rows, self._plan.context.schema)
        table = table.append_column(RECORD_KEY, rows.column(RECORD_KEY)).append_column(PARTITION_PATH, paths)
        table = table.append_column(SLOT_COLUMN, pa.array(self._slots(part), pa.int32()))
        table = table.append_column(FILE_COLUMN, pa.array([file.file_id if file else None] * count, pa.string()))
        table = table.append_column(GONE_COLUMN, pa.array([part.gone] * count, pa.bool_()))
        said = [None] * count if counts is None else [json.dumps(asdict(counts)), *[None] * (count - 1)]
        table = table.append_column(LOOKUP_COLUMN, pa.array(said, pa.string()))
        return table.append_column(PROBLEM_COLUMN, rows.column(PROBLEM_COLUMN))

    def _slots(self, part: _Part) -> Positions:
        routes, changes = self._plan.routes, self._changes
        if part.file is not None:
            owner = owner_of(part.file.file_id, routes.slots_of(part.file.partition_path), changes)
            return np.full(len(part.rows), owner)
        encoded = _encoded(part.rows.column(PARTITION_PATH))
        several = np.array([routes.slots_of(path) for path in encoded.dictionary.to_pylist()], np.int64)
        keys = pc.fill_null(part.rows.column(RECORD_KEY), "").combine_chunks()
        if changes.is_bucket:
            numbers = bucket_numbers(keys, changes.buckets, changes.bucket_fields)
        else:
            numbers = screen_hashes(keys)[0].astype(np.int64)
        slots: Positions = numbers % several[encoded.indices.to_numpy()]
        return slots


def _rows_at(stored: StoredBaseFile, schema: pa.Schema, positions: Positions) -> pa.Table:
    """Rows of a file by position, in the order of the positions."""
    order = np.argsort(positions, kind="stable")
    wanted, at, found = positions[order], 0, []
    for rows in stored.read_batches(schema):
        low, high = np.searchsorted(wanted, (at, at + len(rows)))
        found.append(rows.take(pa.array(wanted[low:high] - at)))
        at += len(rows)
    return pa.concat_tables(found).take(pa.array(np.argsort(order, kind="stable")))
