"""What goes to a task: frozen values, small enough to pickle (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from streaming.plan import columns
from streaming.plan.bucket_assigner import AssignRules
from streaming.plan.live_files import LiveFiles
from streaming.plan.quarantine import Quarantine
from streaming.plan.routes import Routes
from table.options.choices import IndexType
from table.view.file_group import CommittedInstants
from table.view.listing import Listing
from table.write.context import WriteContext


class Pipeline(str, Enum):
    """The ways that rows take to their files."""

    BULK = "arranged by Spark; each task opens files of its own"
    APPEND = "to the slot of their partition path; files are filled up one by one"
    UPSERT = "to the slot of their partition path, which looks for their keys and merges"
    TAGGED_UPSERT = "to whoever looks for their key, and on to the slot of the file group that holds it"


@dataclass(frozen=True)
class ChangePlan:
    """How rows meet the records that the table has already.

    Attributes:
        index: how keys are found.
        prune_by_ranges: whether key ranges are asked, too, with a bloom index.
        combines: the batch is reduced to one record per key first.
        drops_known: rows whose key the table has are dropped (inserts without duplicates).
        adds_only: no key is looked for; the index only says where rows go (inserts into buckets).
        moves: a key that arrives with another partition path moves there (global indexes).
        files: live files of the partition paths that are known; a task lists the others.
        partition_paths: where a global index looks for keys, where `files` does not cover the table.
        buckets: of the bucket index; 0 for the others.
        bucket_fields: names of the record key fields that it hashes.
        cache_bytes: what a worker may remember of files.
        apart: whether keys are looked for by other tasks than those that write.
        to_logs: changes of file groups go to log files: the table is merge-on-read.
    """

    index: IndexType
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
    to_logs: bool = False

    @property
    def is_global(self) -> bool:
        """Whether a key is unique in the table, not only in its partition."""
        return self.index.is_global

    @property
    def prunes(self) -> bool:
        """Whether footers are asked before keys are read."""
        return self.index.has_filters

    @property
    def is_bucket(self) -> bool:
        """Whether a key's hash says its file group."""
        return self.index.has_buckets


@dataclass(frozen=True)
class LogPlan:
    """What the tasks of a merge-on-read table get besides.

    Attributes:
        compacting: (partition path, file id) -> the pending compaction that reads the file group.
        groups_filled: file groups of a slot that take new rows into their base file, the smallest ones.
    """

    compacting: Mapping[tuple[str, str], str] = field(default_factory=dict)
    groups_filled: int = 1


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
        listing: says which files the table has.
        sort_mode: of a bulk insert; None for the other operations.
        quarantine: where bad rows go; None: they fail the batch.
        memory_bytes: rows (Arrow) that a task holds before it uses its disk.
        changes: for upserts, deletes and whatever else looks for keys; None: rows are only added.
        logs: for merge-on-read tables; None: the table is copy-on-write.
        shown: the columns of bad rows that errors show; None: all.
    """

    context: WriteContext
    routes: Routes
    rules: AssignRules
    small_files: LiveFiles
    committed: CommittedInstants
    listing: Listing
    sort_mode: str | None = None
    quarantine: Quarantine | None = None
    memory_bytes: int = 128 * 1024 * 1024
    changes: ChangePlan | None = None
    logs: LogPlan | None = None
    shown: tuple[str, ...] | None = None

    @property
    def pipeline(self) -> Pipeline:
        """Which way the rows take."""
        if self.sort_mode is not None:
            return Pipeline.BULK
        if self.changes is None:
            return Pipeline.APPEND
        return Pipeline.TAGGED_UPSERT if self.changes.apart else Pipeline.UPSERT

    @property
    def tagged_schema(self) -> pa.Schema:
        """Columns of rows whose keys were looked for apart, on their way to the tasks that write (Arrow)."""
        return columns.tagged_schema(self.context.schema)

    @property
    def arriving_schema(self) -> pa.Schema:
        """Columns of the rows that reach a task first (Arrow)."""
        return columns.arriving_schema(self.context.schema, numbered=self.numbers_rows)

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
        looks_back = context.combine_before_insert or not context.allow_duplicates
        return self.pipeline is Pipeline.APPEND and looks_back

    @property
    def is_sorted(self) -> bool:
        """Whether Spark sorts the rows, by partition path first."""
        return self.keeps_order if self.sort_mode is None else self.sort_mode.endswith("SORT")
