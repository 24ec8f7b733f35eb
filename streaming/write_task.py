"""What one task does with its rows: assign buckets, write files, report (runs on a worker, no pyspark).

Rows arrive sorted by partition path and slot, so one file is open at a time. Nothing is decided here
that another attempt at the task could decide otherwise and do harm: file names carry the attempt.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from streaming.bucket_assigner import AssignRules, BucketAssigner, SmallFile, find_small_files, share_of_slot
from streaming.quarantine import Quarantine, QuarantineWriter
from streaming.regroup import NO_PATH, regroup, split_in_order
from streaming.routes import Routes
from table import clock
from table.files.base_file_writer import COPIED, NEW
from table.files.file_names import build_file_id
from table.keygen import partition_path_problem
from table.schema import RECORD_KEY
from table.timeline.commit_metadata import WriteStat, stat_from_json
from table.view.file_group import CommittedInstants
from table.view.file_system_view import list_latest_base_files
from table.write.context import Bucket, WriteContext
from table.write.merge import last_of_each_run
from table.write.write_bucket import BucketWriter

EXAMPLES = 3


@dataclass(frozen=True)
class TaskPlan:
    """All that a task gets from the driver: frozen and small.

    Attributes:
        context: the commit's.
        routes: how many slots a path has.
        rules: sizes.
        small_files: partition path -> its small files, smallest first; a path that is not here has
            not been seen, and the task lists it.
        committed: which files count in such a listing.
        sort_mode: of a bulk insert; None for the other operations.
        quarantine: where bad rows go; None: they fail the batch.
        memory_bytes: rows (Arrow) that a task holds before it uses its disk.
    """

    context: WriteContext
    routes: Routes
    rules: AssignRules
    small_files: Mapping[str, tuple[SmallFile, ...]]
    committed: CommittedInstants
    sort_mode: str | None = None
    quarantine: Quarantine | None = None
    memory_bytes: int = 128 * 1024 * 1024

    @property
    def keeps_order(self) -> bool:
        """Whether the order of a slot's rows decides anything: ties go to the row that arrived last."""
        context = self.context
        return self.sort_mode is None and (context.combine_before_insert or not context.allow_duplicates)

    @property
    def is_sorted(self) -> bool:
        """Whether Spark sorts the rows, by partition path first."""
        return self.keeps_order if self.sort_mode is None else self.sort_mode.endswith("SORT")


@dataclass(frozen=True)
class TaskResult:
    """What a task reports.

    Attributes:
        stats: files it wrote.
        footer_bytes: of these files together.
        copied_bytes: of these files: taken over from older ones without encoding.
        reencoded: why older files were encoded anew -> how many.
        listed: live small files of the paths it had to list.
        bad_rows: rows that cannot be stored: no record key, no fit partition path, null where the
            table's schema allows none; then nothing of this result may be committed.
        examples: some of them, as text.
        quarantined: names of the files that hold the bad rows, if they were put aside.
        query_id: the streaming query that the task belongs to, if it says.
    """

    stats: tuple[WriteStat, ...] = ()
    footer_bytes: int = 0
    copied_bytes: int = 0
    reencoded: Mapping[str, int] = field(default_factory=dict)
    listed: Mapping[str, tuple[SmallFile, ...]] = field(default_factory=dict)
    bad_rows: int = 0
    examples: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()
    query_id: str | None = None

    def encode(self) -> str:
        """JSON, one string a task."""
        return json.dumps(
            {
                "stats": [stat.to_json() for stat in self.stats],
                "footer_bytes": self.footer_bytes,
                "copied_bytes": self.copied_bytes,
                "reencoded": self.reencoded,
                "listed": {path: [asdict(file) for file in files] for path, files in self.listed.items()},
                "bad_rows": self.bad_rows,
                "examples": self.examples,
                "quarantined": self.quarantined,
                "query_id": self.query_id,
            }
        )


def decode_result(text: str) -> TaskResult:
    """The inverse of `TaskResult.encode`."""
    document = json.loads(text)
    return TaskResult(
        tuple(stat_from_json(stat, stat["partitionPath"]) for stat in document["stats"]),
        document["footer_bytes"],
        document["copied_bytes"],
        document["reencoded"],
        {path: tuple(SmallFile(**file) for file in files) for path, files in document["listed"].items()},
        document["bad_rows"],
        tuple(document["examples"]),
        tuple(document["quarantined"]),
        document["query_id"],
    )


def write_rows(plan: TaskPlan, write_token: str, batches: Iterable[pa.RecordBatch]) -> TaskResult:
    """Writes the rows of one task.

    Args:
        plan: from the driver.
        write_token: this attempt's.
        batches: table columns, ``_hoodie_record_key``, ``_hoodie_partition_path`` and the slot (int32).

    Returns:
        Files written, all whole. Raises what the store raises; markers tell about the rest.
    """
    task = _Task(plan, write_token)
    try:
        grouped = split_in_order(batches) if plan.is_sorted else regroup(batches, plan.memory_bytes)
        for path, slot, rows in grouped:
            task.write(path, slot, rows)
        return task.finish()
    except BaseException:
        task.abandon()
        raise


class _Task:
    """The state of a task between two runs of rows: one slot and one file at a time."""

    def __init__(self, plan: TaskPlan, write_token: str) -> None:
        self._plan, self._token = plan, write_token
        self._slot: tuple[str, int] | None = None
        self._assigner: BucketAssigner | None = None
        self._bucket: Bucket | None = None
        self._writer: BucketWriter | None = None
        self._held: pa.Table | None = None
        self._stats: list[WriteStat] = []
        self._footer_bytes = self._copied_bytes = 0
        self._reencoded: Counter[str] = Counter()
        self._listed: dict[str, tuple[SmallFile, ...]] = {}
        self._bad_rows = 0
        self._examples: list[str] = []
        self._bad = QuarantineWriter(plan.quarantine, write_token) if plan.quarantine else None

    def write(self, path: str, slot: int, rows: pa.Table) -> None:
        problem = partition_path_problem(None if path == NO_PATH else path)
        if problem is not None:
            self._count_bad(rows, problem)
            return
        if self._slot != (path, slot):
            self._end_slot()
            self._slot = (path, slot)
            self._assigner = self._open_slot(path, slot)
        rows = self._without_bad_rows(rows)
        if self._plan.context.combine_before_insert:
            rows = self._combined(rows)
        self._assign(rows)

    def _open_slot(self, path: str, slot: int) -> BucketAssigner:
        rules = self._plan.rules
        known = self._plan.small_files.get(path)
        if known is None:
            known = self._listed.get(path)
        if known is None and rules.small_file_limit_bytes <= 0:
            known = ()
        if known is None:
            known = self._list_small_files(path)
            self._listed[path] = known
        share = share_of_slot(known, slot, self._plan.routes.slots_of(path))
        return BucketAssigner(path, share, rules, lambda: build_file_id(clock.fresh_uuid()))

    def _list_small_files(self, path: str) -> tuple[SmallFile, ...]:
        # on an empty timeline nothing counts, and nothing need be listed (S21)
        if not self._plan.committed.times:
            return ()
        files = list_latest_base_files(self._plan.context.storage, path, self._plan.committed)
        return find_small_files((SmallFile(f.file_id, f.name, f.size_bytes) for f in files), self._plan.rules)

    def _without_bad_rows(self, rows: pa.Table) -> pa.Table:
        bad = pc.equal(pc.fill_null(pc.utf8_length(rows.column(RECORD_KEY)), 0), 0)
        for name in self._plan.context.required:
            bad = pc.or_(bad, pc.is_null(rows.column(name)))
        if pc.any(bad).as_py():
            names = ", ".join(("the record key is null or empty", *self._plan.context.required))
            reason = f"{names} null where the schema allows none" if self._plan.context.required else names
            self._count_bad(rows.filter(bad), reason)
            rows = rows.filter(pc.invert(bad))
        # unless bad rows are put aside nothing will be committed: the rest is only counted
        return rows.slice(0, 0) if self._bad_rows and self._bad is None else rows

    def _count_bad(self, rows: pa.Table, reason: str) -> None:
        self._bad_rows += len(rows)
        if self._bad is not None:
            self._bad.write(rows.drop_columns([RECORD_KEY]), reason)
        wanted = EXAMPLES - len(self._examples)
        shown = rows.slice(0, wanted).drop_columns([RECORD_KEY])
        self._examples += [f"{_shown(shown.slice(number, 1))} ({reason})" for number in range(len(shown))]

    def _combined(self, rows: pa.Table) -> pa.Table:
        """One row a key; the last row seen waits, because its key may go on in the next batch."""
        if self._held is not None:
            rows = pa.concat_tables([self._held, rows])
            self._held = None
        if len(rows) < 2:
            self._held = rows if len(rows) else None
            return rows.slice(0, 0)
        self._held = rows.slice(len(rows) - 1)
        return last_of_each_run(rows.slice(0, len(rows) - 1), self._held.column(RECORD_KEY)[0].as_py())

    def _assign(self, rows: pa.Table) -> None:
        assert self._assigner is not None
        start = 0
        for bucket, count in self._assigner.assign(len(rows)):
            if bucket != self._bucket:
                self._close_file()
                self._writer = BucketWriter(self._plan.context, bucket, self._token)
                self._bucket = bucket
            assert self._writer is not None
            self._writer.write(rows.slice(start, count))
            start += count

    def _end_slot(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            if not self._bad_rows or self._bad is not None:
                self._assign(held)
        self._close_file()

    def _close_file(self) -> None:
        if self._writer is not None:
            stat, summary = self._writer.close()
            self._stats.append(stat)
            self._footer_bytes += summary.footer_bytes
            self._copied_bytes += summary.copied_bytes
            if summary.way not in (NEW, COPIED):
                self._reencoded[summary.way] += 1
        self._writer = self._bucket = None

    def finish(self) -> TaskResult:
        self._end_slot()
        put_aside = self._bad.close() if self._bad is not None else None
        quarantined = (put_aside,) if put_aside else ()
        return TaskResult(
            tuple(self._stats),
            self._footer_bytes,
            self._copied_bytes,
            dict(self._reencoded),
            self._listed,
            self._bad_rows,
            tuple(self._examples),
            quarantined,
        )

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.abandon()


def _shown(row: pa.Table) -> str:
    """One row as text. Values that Python has no form for (a date in the year 12921) show as their column's name."""
    values = {}
    for name in row.column_names:
        try:
            values[name] = row.column(name)[0].as_py()
        except (OverflowError, ValueError):
            values[name] = f"<{row.column(name).type}>"
    return str(values)


def combine_results(results: Iterable[TaskResult]) -> TaskResult:
    """What all tasks of a batch did."""
    listed: dict[str, tuple[SmallFile, ...]] = {}
    stats: list[WriteStat] = []
    examples: list[str] = []
    quarantined: list[str] = []
    query_id = None
    reencoded: Counter[str] = Counter()
    footer_bytes = copied_bytes = bad_rows = 0
    for result in results:
        query_id = result.query_id or query_id
        quarantined += result.quarantined
        stats += result.stats
        footer_bytes += result.footer_bytes
        copied_bytes += result.copied_bytes
        reencoded.update(result.reencoded)
        listed.update(result.listed)
        bad_rows += result.bad_rows
        examples += result.examples
    shown = tuple(examples[:EXAMPLES])
    return TaskResult(
        tuple(stats),
        footer_bytes,
        copied_bytes,
        dict(reencoded),
        listed,
        bad_rows,
        shown,
        tuple(quarantined),
        query_id,
    )
