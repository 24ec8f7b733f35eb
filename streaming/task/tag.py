"""A task that looks up keys for other tasks: it tags each row with the file group that holds its key.

This is needed where one task looks up a key and another task writes its file group: with a global index, because the
key may be in any partition path, and where one path has too much work for one task.

The output depends only on the rows and the table: Spark may run the task again and must get the same rows.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streaming.plan.columns import PROBLEM_COLUMN, SLOT_COLUMN
from streaming.plan.live_files import in_order
from streaming.plan.task_plan import TaskPlan
from streaming.task.doubled_keys import without_deleted_rows
from streaming.task.grouping import group_by_slot, lots_of_keys
from streaming.task.locate_keys import Located, Locator, list_live_files, owner_of
from streaming.task.log_lookup import LogLookup
from streaming.task.moves import Ways, decide_ways
from streaming.task.route_rows import encode_paths, slots_of
from streaming.task.upsert import required_for_changes
from table.columns.conform import conform
from table.columns.required_values import find_nulls
from table.columns.take import take_rows
from table.columns.text_bytes import find_bad_text, made_readable
from table.failures import failing_at
from table.files.base.stored_file import StoredBaseFile
from table.files.bloom.key_hashes import hash_keys
from table.index.bucket import bucket_numbers
from table.index.key_cache import cache_of_table
from table.index.key_lookup import LookupCounts
from table.keys.arrow_keys import compute_keys
from table.keys.keygen import KeyRules, partition_path_problem
from table.records.merge import combine_rows, delete_flags, filled_from_older, newer_than_stored
from table.schema.avro_schema import PARTITION_PATH, RECORD_KEY
from table.view.file_group import BaseFile

Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


def tag_rows(plan: TaskPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Tags the rows of one task.

    Args:
        plan: from the driver.
        batches: as `TaskPlan.arriving_schema`. They contain all rows of a key in a partition path; with a global index,
            all rows of a key in the batch.

    Yields:
        Rows as `TaskPlan.tagged_schema`: one per file group that holds the key, or one without a file group. Rows that
        cannot be stored pass through unchanged, and the task that writes reports them.

    Raises:
        HudiError: with instant, partition path and file group as far as they are known.
    """
    with failing_at(instant_time=plan.context.instant_time):
        tagger = _Tagger(plan)
        for rows in _lots(plan, (piece for batch in batches for piece in _with_problems(batch).to_batches())):
            yield from tagger.tag(rows)


def _lots(plan: TaskPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Splits rows, with their partition path, into lots that fit into memory. All rows of a key are in one lot."""
    assert plan.changes is not None
    if plan.changes.is_global:
        pieces = (pa.Table.from_batches([batch]).drop_columns([SLOT_COLUMN]) for batch in batches)
        yield from lots_of_keys(pieces, plan.memory_bytes)
        return
    for path, of_path in groupby(group_by_slot(batches, plan.memory_bytes), itemgetter(0)):
        yield from lots_of_keys((_with_path(rows, path) for _, _, rows in of_path), plan.memory_bytes)


def _with_problems(batch: pa.RecordBatch) -> pa.Table:
    """Adds a column that names bad text in a row, and makes the text readable, so that later steps do not fail."""
    rows = pa.Table.from_batches([batch])
    problems = pa.nulls(len(rows), pa.string())
    bad = find_bad_text(rows)
    for part in reversed(bad):
        problems = pc.if_else(pa.array(part.rows), part.reason, problems)
    return (made_readable(rows) if bad else rows).append_column(PROBLEM_COLUMN, problems)


def _with_path(rows: pa.Table, path: str) -> pa.Table:
    return rows.append_column(PARTITION_PATH, pa.array([path] * len(rows), pa.string()))


@dataclass(frozen=True)
class _Part:
    """Rows that get the same tag.

    Attributes:
        rows: with their partition path.
        file: the file group that holds their keys; None: no file group does, and the slot follows from the key.
        removes: whether their keys leave that file group.
    """

    rows: pa.Table
    file: BaseFile | None = None
    removes: bool = False


class _Tagger:
    def __init__(self, plan: TaskPlan) -> None:
        assert plan.changes is not None
        self._plan, self._changes = plan, plan.changes
        storage, time = plan.context.storage, plan.context.instant_time
        cache = cache_of_table(storage.base_uri, plan.changes.cache_bytes, time)
        self._locator = Locator(storage, plan.changes, cache)
        self._everywhere: Sequence[BaseFile] | None = None
        self._logs = LogLookup(plan)

    def tag(self, rows: pa.Table) -> Iterator[pa.Table]:
        good = self._storable(rows)
        if not good.all():
            yield self._tagged(_Part(rows.filter(pa.array(~good))), None)
            rows = rows.filter(pa.array(good))
        if not len(rows):
            return
        rows = combine_rows(rows, self._plan.context.merge) if self._changes.combines else rows
        index, located = self._changes.record_index, None
        if index is not None:
            located = self._locator.locate_by_index(rows, index, self._files_of, self._logs.has_rows)
        if located is None:
            files = self._find_files(pc.unique(rows.column(PARTITION_PATH)).to_pylist())
            located = without_deleted_rows(self._plan, rows, self._locator.locate(rows, files))
            if self._plan.looks_into_logs:
                # paths that the driver knows have no log files
                paths = [path for path in self._all_paths() if self._changes.files.of(path) is None]
                located = self._logs.complete(rows, located, paths)
        counts: LookupCounts | None = located.counts
        for part in self._parts(rows, located):
            if len(part.rows):
                yield self._tagged(part, counts)
                counts = None

    def _storable(self, rows: pa.Table) -> Flags:
        """Which rows the tasks that write will accept."""
        paths = encode_paths(rows.column(PARTITION_PATH))
        fit = np.array([partition_path_problem(path) is None for path in paths.dictionary.to_pylist()], np.bool_)
        good: Flags = fit[paths.indices.to_numpy()] & pc.is_valid(rows.column(PARTITION_PATH)).to_numpy()
        good &= pc.fill_null(pc.utf8_length(rows.column(RECORD_KEY)), 0).to_numpy() > 0
        good &= pc.is_null(rows.column(PROBLEM_COLUMN)).to_numpy()
        for name in required_for_changes(self._plan):
            good &= ~find_nulls(rows, name)
        return good

    def _find_files(self, paths: Sequence[str]) -> Sequence[BaseFile]:
        """The files that may hold the keys of rows with these partition paths."""
        changes = self._changes
        if not changes.is_global:
            return self._files_of(paths)
        if self._everywhere is None:
            self._everywhere = self._files_of(self._all_paths())
        return self._everywhere

    def _all_paths(self) -> Sequence[str]:
        changes = self._changes
        if changes.files.is_complete:
            return sorted(changes.files)
        # the driver did not list them for a batch that finds its keys by the record index
        return changes.partition_paths if changes.record_index is None else self._plan.listing.list_partition_paths()

    def _files_of(self, paths: Iterable[str]) -> Sequence[BaseFile]:
        found: list[BaseFile] = []
        for path in paths:
            known = self._changes.files.of(path)
            with failing_at(partition_path=path):
                found += in_order(list_live_files(self._plan, path) if known is None else known)
        return found

    def _parts(self, rows: pa.Table, located: Located) -> Iterator[_Part]:
        """Splits rows into updates of a file, removals from a file, and inserts into their partition path."""
        if self._changes.to_logs and self._changes.is_bucket:
            yield _Part(rows)  # deletes, too: a task writes them to the bucket's log without a key lookup
            return
        ways = self._decide_ways(rows, located)
        arrived = ways.stays.copy()  # rows whose key is stored in their partition path, or moves there
        moved: list[pa.Table] = []
        for way in ways.of_files:
            file = way.hit.file
            yield _Part(take_rows(rows, way.updates), file)
            if len(way.leaving):
                merged, wins = self._moved(file, way.leaving_stored, take_rows(rows, way.leaving))
                if self._changes.path_rules is not None:
                    merged = _with_own_paths(merged, self._changes.path_rules)
                    back = pc.equal(merged.column(PARTITION_PATH), file.partition_path).to_numpy()
                    yield _Part(take_rows(rows, way.leaving[back]), file)
                    wins &= ~back
                yield _Part(take_rows(rows, way.leaving[wins]), file, removes=True)
                new = wins & ~arrived[way.leaving]
                arrived[way.leaving[new]] = True
                moved.append(merged.filter(pa.array(new)))
        # a delete of a key that no file holds goes along, to be counted by the task that writes
        for table in (*moved, rows.filter(pa.array(~located.known))):
            yield _Part(table)

    def _decide_ways(self, rows: pa.Table, located: Located) -> Ways:
        return decide_ways(
            located.hits,
            located.known,
            encode_paths(rows.column(PARTITION_PATH)),
            delete_flags(rows, self._plan.context.merge),
            may_leave=self._changes.moves and not self._changes.drops_known,
        )

    def _moved(self, file: BaseFile, stored_rows: Positions, incoming: pa.Table) -> tuple[pa.Table, Flags]:
        """Rows that leave a file, merged for their new place, and which of them are new enough to leave.

        A partial record moves its key even when it is late: in Hudi 1.0.2 the incoming record's meta columns win. In
        tables of version 9 the path of the merged record counts, as in Hudi 1.2 (`ChangePlan.path_rules`).
        """
        rules, schema = self._plan.context.merge, self._plan.context.schema
        if not rules.mode.fills_nulls and not rules.compares:
            return incoming, np.ones(len(incoming), np.bool_)
        with (
            failing_at(partition_path=file.partition_path, file_group=file.file_id),
            StoredBaseFile(self._plan.context.storage, file.path, file.size_bytes) as stored,
        ):
            old = _rows_at(stored, schema, stored_rows)
        newer = newer_than_stored(old, incoming, rules)
        if not rules.mode.fills_nulls:
            return incoming, newer
        filled = filled_from_older(old, incoming.select(schema.names), newer)
        rest = [name for name in incoming.column_names if name not in schema.names]
        for name in rest:
            filled = filled.append_column(name, incoming.column(name))
        return filled, np.ones(len(incoming), np.bool_)

    def _tagged(self, part: _Part, counts: LookupCounts | None) -> pa.Table:
        """Adds slot and tag to rows. The slot is the owner of their file group, or follows from their key."""
        rows, file, count = part.rows, part.file, len(part.rows)
        counted = [None] * count if counts is None else [json.dumps(asdict(counts)), *[None] * (count - 1)]
        of_route = [
            rows.column(RECORD_KEY),
            rows.column(PARTITION_PATH) if file is None else pa.array([file.partition_path] * count, pa.string()),
            pa.array(self._slots(part), pa.int32()),
        ]
        of_tag = [
            pa.array([file.file_id if file else None] * count, pa.string()),
            pa.array([part.removes] * count, pa.bool_()),
            pa.array(counted, pa.string()),
            rows.column(PROBLEM_COLUMN),
        ]
        columns = conform(rows, self._plan.context.schema).columns
        return pa.Table.from_arrays([*columns, *of_route, *of_tag], schema=self._plan.tagged_schema)

    def _slots(self, part: _Part) -> Positions:
        routes, changes = self._plan.routes, self._changes
        if part.file is not None:
            owner = owner_of(part.file.file_id, routes.slots_of(part.file.partition_path), changes)
            return np.full(len(part.rows), owner)
        keys = part.rows.column(RECORD_KEY)
        if changes.is_bucket:
            filled = pc.fill_null(keys, "").combine_chunks()
            numbers = bucket_numbers(filled, changes.buckets, changes.bucket_fields)
        else:
            numbers = hash_keys(keys)
        return slots_of(routes, part.rows.column(PARTITION_PATH), numbers)


def _with_own_paths(merged: pa.Table, rules: KeyRules) -> pa.Table:
    """Merged records with the partition paths that their own columns make."""
    _, paths = compute_keys(rules, merged)
    number = merged.schema.get_field_index(PARTITION_PATH)
    return merged.set_column(number, PARTITION_PATH, pc.coalesce(paths, merged.column(PARTITION_PATH)))


def _rows_at(stored: StoredBaseFile, schema: pa.Schema, positions: Positions) -> pa.Table:
    """Rows of a file by position, in the order of the positions."""
    order = np.argsort(positions, kind="stable")
    wanted, at, found = positions[order], 0, []
    for rows in stored.read_batches(schema):
        low, high = np.searchsorted(wanted, (at, at + len(rows)))
        found.append(take_rows(rows, wanted[low:high] - at))
        at += len(rows)
    return take_rows(pa.concat_tables(found), np.argsort(order, kind="stable"))
