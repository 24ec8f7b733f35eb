"""The plan that the driver sends to each task: frozen values, small enough to pickle (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from streaming.plan import columns
from streaming.plan.bucket_assigner import AssignRules, find_small_files
from streaming.plan.live_files import LiveFiles
from streaming.plan.quarantine import Quarantine
from streaming.plan.routes import Routes
from table.index.virtual_keys import VirtualKeys
from table.keys.keygen import KeyRules
from table.metadata_table.read_record_index import RecordIndex
from table.options.choices import IndexType
from table.options.clustering_settings import RowOrder
from table.view.file_group import BaseFile, CommittedInstants
from table.view.listing import Listing
from table.write.context import WriteContext


class Pipeline(str, Enum):
    """The ways of rows to their files."""

    BULK = "arranged by Spark; each task opens files of its own"
    APPEND = "to the slot of their partition path; files are filled up one by one"
    UPSERT = "to the slot of their partition path, which looks for their keys and merges"
    TAGGED_UPSERT = "to the task that looks for their key, and on to the slot of the file group that holds it"


@dataclass(frozen=True)
class ChangePlan:
    """How the rows of a batch change the records of the table.

    Attributes:
        index: how keys are found.
        prune_by_ranges: whether a bloom index checks key ranges, too.
        combines: the batch is reduced to one record per key first.
        drops_known: rows whose key the table has are dropped (inserts without duplicates).
        adds_only: no key is looked up; the index only decides the file group of a row (inserts into buckets).
        moves: a key that arrives with another partition path moves there (global indexes).
        files: live files of the known partition paths; a task lists the others.
        partition_paths: where a global index looks for keys if `files` does not cover the table.
        buckets: number of buckets of the bucket index; 0 for the others.
        bucket_fields: names of the record key fields that the bucket index hashes.
        cache_bytes: most bytes of file contents that a worker may cache.
        apart: whether other tasks look up the keys than the tasks that write.
        to_logs: changes of file groups go to log files: the table is merge-on-read.
        virtual: how keys of stored rows are made where the table does not store them.
        record_index: says which file groups hold the keys; None: the files are asked.
        path_rules: how the merged record makes the partition path to which its key moves; None: the incoming one does.
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
    virtual: VirtualKeys | None = None
    record_index: RecordIndex | None = None
    path_rules: KeyRules | None = None

    @property
    def is_global(self) -> bool:
        """Whether a key is unique in the table, not only in its partition."""
        return self.index.is_global

    @property
    def prunes(self) -> bool:
        """Whether footers are checked before keys are read."""
        return self.index.has_filters

    @property
    def is_bucket(self) -> bool:
        """Whether a key's hash decides its file group."""
        return self.index.has_buckets


@dataclass(frozen=True)
class LogPlan:
    """Additional plan for the tasks of a merge-on-read table.

    Attributes:
        compacting: (partition path, file id) -> the pending compaction that reads the file group.
        groups_filled: how many file groups of a slot take new rows into their base file, the smallest first.
        log_ratio: new rows go to the log files of small slices, in which a byte of log files counts as so many bytes of
            a base file; None: they go into base files.
        joins_logs: whether they did so in earlier batches, so that keys may lie in log files alone.
    """

    compacting: Mapping[tuple[str, str], str] = field(default_factory=dict)
    groups_filled: int = 1
    log_ratio: float | None = None
    joins_logs: bool = False

    def size_of(self, base_bytes: int, log_bytes: int) -> int:
        """What a slice counts for where new rows join its log files (DeltaWriteProfile.getTotalFileSize).

        Args:
            base_bytes: of its base file.
            log_bytes: of its log files.
        """
        assert self.log_ratio is not None
        return base_bytes + int(log_bytes * self.log_ratio)


@dataclass(frozen=True)
class TaskPlan:
    """The complete plan that a task gets from the driver: frozen and small.

    Attributes:
        context: the commit's.
        routes: how many slots a path has, and the task of each slot.
        rules: sizes.
        small_files: for batches that only add rows: the small files of the known partition paths, smallest first. A
            task lists the other paths.
        committed: the instants that decide which files are visible in such a listing.
        listing: lists the table's files.
        sort_mode: of a bulk insert; None for the other operations.
        order: of the rows of a bulk insert within each partition path; None: as `sort_mode` says.
        quarantine: where bad rows go; None: they fail the batch.
        memory_bytes: bytes of rows (Arrow) that a task holds in memory before it uses its disk.
        changes: for upserts, deletes and all other operations that use the index; None: the batch only adds rows.
        logs: for merge-on-read tables; None: the table is copy-on-write.
        clustered: (partition path, file id) -> the pending clustering of another engine that replaces the file group:
            nothing is written to it.
        shown: the columns of bad rows that errors show; None: all.
    """

    context: WriteContext
    routes: Routes
    rules: AssignRules
    small_files: LiveFiles
    committed: CommittedInstants
    listing: Listing
    sort_mode: str | None = None
    order: RowOrder | None = None
    quarantine: Quarantine | None = None
    memory_bytes: int = 128 * 1024 * 1024
    changes: ChangePlan | None = None
    logs: LogPlan | None = None
    clustered: Mapping[tuple[str, str], str] = field(default_factory=dict)
    shown: tuple[str, ...] | None = None

    @property
    def pipeline(self) -> Pipeline:
        """The way of the rows to their files."""
        if self.sort_mode is not None:
            return Pipeline.BULK
        if self.changes is None:
            return Pipeline.APPEND
        return Pipeline.TAGGED_UPSERT if self.changes.apart else Pipeline.UPSERT

    @property
    def known_files(self) -> LiveFiles:
        """Files of the paths that no task lists: the small ones alone where the batch only adds rows."""
        return self.small_files if self.changes is None else self.changes.files

    def small_files_of(self, path: str) -> tuple[BaseFile, ...]:
        """The files of such a path that new rows go into first, smallest first; none with a bucket index."""
        files = self.known_files.of(path) or ()
        if self.changes is None:
            return files
        if self.changes.is_bucket or self.needs_keys_only:
            return ()
        return find_small_files((one for one in files if (path, one.file_id) not in self.clustered), self.rules)

    @property
    def looks_into_logs(self) -> bool:
        """Whether keys may lie in log files alone, and the batch looks for them there.

        Other indexes refuse such keys as far as they recognise them (`streaming.task.log_only_keys`).
        """
        if self.logs is None or self.changes is None or self.changes.index is not IndexType.RECORD_INDEX:
            return False
        return self.logs.joins_logs or self.context.tells_keys

    @property
    def tagged_schema(self) -> pa.Schema:
        """Columns of the rows after the second exchange: other tasks have looked up their keys (Arrow)."""
        return columns.tagged_schema(self.context.schema)

    @property
    def arriving_schema(self) -> pa.Schema:
        """Columns of the rows after the first exchange (Arrow)."""
        return columns.arriving_schema(self.context.schema, numbered=self.numbers_rows)

    @property
    def needs_keys_only(self) -> bool:
        """Whether only key and partition path of a row are used: the batch deletes."""
        return self.context.merge.deletes_all

    @property
    def numbers_rows(self) -> bool:
        """Whether rows carry their arrival number, which orders equal rows: an exchange loses the order of arrival."""
        return self.changes is not None and self.changes.combines

    @property
    def keeps_order(self) -> bool:
        """Whether the order of a slot's rows matters: of equal rows the last to arrive wins."""
        context = self.context
        looks_back = context.combine_before_insert or not context.allow_duplicates
        return self.pipeline is Pipeline.APPEND and looks_back

    @property
    def is_sorted(self) -> bool:
        """Whether Spark sorts the rows, by partition path first."""
        if self.sort_mode is None:
            return self.keeps_order
        return self.order is None and self.sort_mode.endswith("SORT")
