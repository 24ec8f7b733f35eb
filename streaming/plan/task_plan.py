"""What goes to a task and what comes back: frozen values, small enough to pickle."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

import pyarrow as pa

from streaming.batch.quarantine import Quarantine
from streaming.plan.bucket_assigner import AssignRules, LiveFile
from streaming.plan.live_files import LiveFiles
from streaming.plan.routes import Routes
from streaming.task.regroup import SLOT_COLUMN
from table.index.key_lookup import BLOOM, BUCKET, GLOBAL_BLOOM, GLOBAL_INDEXES, LookupCounts
from table.records.merge import ARRIVAL_COLUMN
from table.schema.avro_schema import PARTITION_PATH, RECORD_KEY
from table.timeline.metadata.commit import WriteStat, stat_from_json
from table.view.file_group import CommittedInstants
from table.write.context import WriteContext

EXAMPLES = 3
FILE_COLUMN = "_hudistream_file"  # file group that holds the key
GONE_COLUMN = "_hudistream_gone"  # whether the key goes from there whatever the order: it moves elsewhere
LOOKUP_COLUMN = "_hudistream_lookup"
PROBLEM_COLUMN = "_hudistream_problem"  # why the row cannot be stored; it is reported where the others are written


@dataclass(frozen=True)
class ChangePlan:
    """How rows meet the records that the table has already.

    Attributes:
        index: ``BLOOM``, ``SIMPLE``, ``BUCKET``, ``GLOBAL_BLOOM``, ``GLOBAL_SIMPLE``.
        prune_by_ranges: whether key ranges are asked, too, with a bloom index.
        combines: one record a key of the batch before anything else.
        drops_known: rows whose key the table has are dropped (inserts without duplicates).
        adds_only: no key is looked for; the index only says where rows go (inserts into buckets).
        moves: a key that arrives with another partition path moves there (global indexes).
        files: live files of the partition paths that are known; a task lists the others.
        partition_paths: where a global index looks for keys, where `files` does not cover the table.
        buckets: of the bucket index; 0 for the others.
        bucket_fields: names of the record key fields that it hashes.
        cache_bytes: what a worker may remember of files.
        apart: whether keys are looked for by other tasks than those that write.
    """

    index: str
    prune_by_ranges: bool = True
    combines: bool = True
    drops_known: bool = False
    adds_only: bool = False
    moves: bool = True
    files: LiveFiles = field(default_factory=LiveFiles)
    partition_paths: tuple[str, ...] = ()
    buckets: int = 0
    bucket_fields: tuple[str, ...] = ()
    cache_bytes: int = 0
    apart: bool = False

    @property
    def is_global(self) -> bool:
        """Whether a key is unique in the table, not only in its partition."""
        return self.index in GLOBAL_INDEXES

    @property
    def prunes(self) -> bool:
        """Whether footers are asked before keys are read."""
        return self.index in (BLOOM, GLOBAL_BLOOM)

    @property
    def is_bucket(self) -> bool:
        """Whether a key's hash says its file group."""
        return self.index == BUCKET


@dataclass(frozen=True)
class TaskPlan:
    """All that a task gets from the driver: frozen and small.

    Attributes:
        context: the commit's.
        routes: how many slots a path has.
        rules: sizes.
        small_files: for rows that are only added: the small files of the partition paths that are known,
            smallest first; a task lists the others.
        committed: which files count in such a listing.
        sort_mode: of a bulk insert; None for the other operations.
        quarantine: where bad rows go; None: they fail the batch.
        memory_bytes: rows (Arrow) that a task holds before it uses its disk.
        changes: for upserts, deletes and whatever else looks for keys; None: rows are only added.
    """

    context: WriteContext
    routes: Routes
    rules: AssignRules
    small_files: LiveFiles
    committed: CommittedInstants
    sort_mode: str | None = None
    quarantine: Quarantine | None = None
    memory_bytes: int = 128 * 1024 * 1024
    changes: ChangePlan | None = None

    @property
    def tagged_schema(self) -> pa.Schema:
        """Columns of rows whose keys were looked for apart, on their way to the tasks that write (Arrow)."""
        columns = [(RECORD_KEY, pa.string()), (PARTITION_PATH, pa.string()), (SLOT_COLUMN, pa.int32())]
        columns += [(FILE_COLUMN, pa.string()), (GONE_COLUMN, pa.bool_()), (LOOKUP_COLUMN, pa.string())]
        columns.append((PROBLEM_COLUMN, pa.string()))
        return pa.schema([*self.context.schema, *(pa.field(*column) for column in columns)])

    @property
    def arriving_schema(self) -> pa.Schema:
        """Columns of the rows that reach a task first (Arrow)."""
        columns = [
            *self.context.schema,
            pa.field(RECORD_KEY, pa.string()),
            pa.field(PARTITION_PATH, pa.string()),
            pa.field(SLOT_COLUMN, pa.int32()),
        ]
        if self.numbers_rows:
            columns.append(pa.field(ARRIVAL_COLUMN, pa.int64()))
        return pa.schema(columns)

    @property
    def needs_keys_only(self) -> bool:
        """Whether nothing of a row counts but its key and partition path: deletes."""
        return self.context.merge.deletes_all

    @property
    def numbers_rows(self) -> bool:
        """Whether rows carry a number by which equals are ordered: no exchange keeps the order of arrival."""
        return self.changes is not None and self.changes.combines

    @property
    def keeps_order(self) -> bool:
        """Whether the order of a slot's rows decides anything: ties go to the row that arrived last."""
        context = self.context
        return (
            self.sort_mode is None
            and self.changes is None
            and (context.combine_before_insert or not context.allow_duplicates)
        )

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
        listed: live files of the paths it had to list; for rows that are only added, the small ones.
        bad_rows: rows that cannot be stored: no record key, no fit partition path, null where the
            table's schema allows none; then nothing of this result may be committed.
        examples: some of them, as text.
        quarantined: names of the files that hold the bad rows, if they were put aside.
        query_id: the streaming query that the task belongs to, if it says.
        lookup: what looking for keys cost.
    """

    stats: tuple[WriteStat, ...] = ()
    footer_bytes: int = 0
    copied_bytes: int = 0
    reencoded: Mapping[str, int] = field(default_factory=dict)
    listed: Mapping[str, tuple[LiveFile, ...]] = field(default_factory=dict)
    bad_rows: int = 0
    examples: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()
    query_id: str | None = None
    lookup: LookupCounts = field(default_factory=LookupCounts)

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
                "lookup": asdict(self.lookup),
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
        {path: tuple(LiveFile(**file) for file in files) for path, files in document["listed"].items()},
        document["bad_rows"],
        tuple(document["examples"]),
        tuple(document["quarantined"]),
        document["query_id"],
        LookupCounts(**document["lookup"]),
    )


def decode_lookups(rows: pa.Table) -> LookupCounts:
    """What the tasks that looked for keys say that it cost: each says it in one of its rows."""
    total = LookupCounts()
    for text in rows.column(LOOKUP_COLUMN).drop_null().to_pylist():
        total += LookupCounts(**json.loads(text))
    return total


def combine_results(results: Iterable[TaskResult]) -> TaskResult:
    """What all tasks of a batch did."""
    listed: dict[str, tuple[LiveFile, ...]] = {}
    stats: list[WriteStat] = []
    examples: list[str] = []
    quarantined: list[str] = []
    query_id = None
    reencoded: Counter[str] = Counter()
    footer_bytes = copied_bytes = bad_rows = 0
    lookup = LookupCounts()
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
        lookup += result.lookup
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
        lookup,
    )
