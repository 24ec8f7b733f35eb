"""Snapshot: a table with one listing of its timeline, which decides what files, schema and commits are read."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property

import pyarrow as pa

from table.config.metadata_indexes import FILES
from table.config.table_config import TableConfig
from table.errors import InvalidConfigError
from table.hudi_table import HudiTable
from table.metadata_table.metadata_listing import MetadataListing
from table.options.choices import TableType
from table.schema.avro_schema import from_avro, without_meta_columns
from table.storage.interface import FileInfo, Storage
from table.timeline.commit_cache import CommitCache
from table.timeline.instant import Action
from table.timeline.layout import TimelineLayout
from table.timeline.timeline import Timeline
from table.view.file_group import CommittedInstants, FileGroup, group_files, parse_data_files, unknown_completions
from table.view.file_system_view import confirm, load_committed_instants
from table.view.listing import Listing, Narrow

# ActiveTimelineV1.getLastCommitMetadataWithValidSchema: these may carry an older schema
SERVICE_OPERATIONS = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"})


class Snapshot:
    """A table, and its timeline at one moment. All answers of a snapshot come from that timeline.

    Readers use it for slices and rows, writers and services for their decisions. It is not picklable.

    Args:
        timeline: its active timeline, as listed.
        as_of: instant time of the last visible write; None: all completed writes are visible.
        commits: decoded commits of this table, where the caller keeps them.

    Attributes:
        table: as given.
        timeline: the instants up to `as_of`.
        commits: the metadata of completed commits, each decoded once.
        as_of: as given.

    Raises:
        InvalidConfigError: the active timeline begins after `as_of`, so the writes visible then are not known any more.
    """

    def __init__(
        self, table: HudiTable, timeline: Timeline, as_of: str | None = None, commits: CommitCache | None = None
    ) -> None:
        first = timeline.first_active_time
        if as_of is not None and first is not None and as_of < first:
            raise InvalidConfigError(
                f"the table has no snapshot of {as_of}: earlier commits than {first} were archived, and their files "
                f"may have been cleaned; ask for {first} or later"
            )
        self.table, self.as_of = table, as_of
        self.timeline = timeline if as_of is None else timeline.until(as_of)
        self.commits = commits if commits is not None else CommitCache(table.storage)
        self.commits.forget_archived(timeline)
        self._whole = timeline
        self._committed: CommittedInstants | None = None
        self._listing: Listing | None = None
        self._slicing: CommittedInstants | None = None
        self._retired: dict[str, str] = {}  # completion times of archived writes, filled on demand

    @staticmethod
    def load(table: HudiTable, as_of: str | None = None, commits: CommitCache | None = None) -> "Snapshot":
        """The snapshot of the timeline as it is now; the arguments are those of `Snapshot`.

        Raises:
            TimelineMovedError: the table was converted to another timeline layout since it was opened.
        """
        return Snapshot(table, table.load_timeline(), as_of, commits)

    def again(self) -> "Snapshot":
        """The same table, its timeline listed again."""
        return Snapshot.load(self.table, commits=self.commits)

    def at(self, timeline: Timeline) -> "Snapshot":
        """The same table with another timeline of it."""
        return Snapshot(self.table, timeline, commits=self.commits)

    @property
    def storage(self) -> Storage:
        """The table's."""
        return self.table.storage

    @property
    def config(self) -> TableConfig:
        """The table's properties, as they were when it was opened."""
        return self.table.config

    @property
    def layout(self) -> TimelineLayout:
        """The layout that the timeline was listed in."""
        return self.timeline.layout

    @property
    def listing(self) -> Listing:
        """Lists the partitions and data files of the table: from its metadata table, if it has one, else the store."""
        if self._listing is None:
            writes = (instant.time for instant in self._whole.completed_writes)
            keeps = FILES in self.config.metadata_indexes
            self._listing = MetadataListing(self.storage, writes) if keeps else self.table.listing
        return self._listing

    @property
    def listed(self) -> Timeline:
        """The active timeline as it was listed, with the instants after `as_of`."""
        return self._whole

    @cached_property
    def cleans(self) -> frozenset[str]:
        """Instant times of all completed cleans, those after `as_of` included."""
        return frozenset(instant.time for instant in self._whole.completed_of(Action.CLEAN))

    # no `cached_property` where a store is asked: before Python 3.12 it holds one lock for all tables of the process
    @property
    def committed(self) -> CommittedInstants:
        """Which files are visible. Reads the replace commits, once."""
        if self._committed is None:
            self._committed = load_committed_instants(self.commits, self.timeline, self.table.archived_timeline)
        return self._committed

    @property
    def slicing(self) -> CommittedInstants:
        """As `committed`, for callers that write, compact or delete by file slices.

        Those callers group files without the archive, unlike `list_file_groups`. So the completion times of archived
        late writes (`table.timeline.late_writes`) are added here: their log files belong after a compaction.

        Raises:
            CorruptFileError: a file of the archive is damaged.
        """
        if self._slicing is None:
            self._slicing = self.with_late_writes(self.committed)
        return self._slicing

    @property
    def confirmed(self) -> CommittedInstants:
        """As `slicing`, for callers that build on files: with the files that the active timeline names.

        `list_file_groups` and `walk_file_groups` of `table.view.file_system_view` compare them with the listing. Reads
        the commits that this process does not know.

        Raises:
            CorruptFileError: the file of a commit is damaged.
        """
        return replace(self.slicing, named=self.commits.named_files.follow(self.timeline, self.commits.find_named))

    def with_late_writes(self, committed: CommittedInstants) -> CommittedInstants:
        """Adds the completion times of archived late writes, as in `slicing`.

        Raises:
            CorruptFileError: a file of the archive is damaged.
        """
        if self.config.table_type != TableType.MERGE_ON_READ:
            return committed
        late = self.commits.late_writes.find(self.table.archived_timeline, self.timeline)
        return replace(committed, completions={**late, **committed.completions}) if late else committed

    def load_schema(self, until: str | None = None) -> pa.Schema | None:
        """The table's columns without meta columns (Arrow), or None when nothing was written yet.

        Args:
            until: as the writes that were requested up to this time left them; None: all visible ones.
        """
        of_service = ""
        for instant in reversed(self.timeline.completed_writes):
            if until is not None and instant.time > until:
                continue
            metadata = self.commits.read_outline(instant)
            text = metadata.extra.get("schema")
            if text and metadata.operation not in SERVICE_OPERATIONS:
                return without_meta_columns(from_avro(text))
            of_service = of_service or text or ""
        # use the schema of a service's commit if all writes before it were archived: it is the schema it read with
        stored = of_service or self.config.extra.get("hoodie.table.create.schema")
        return without_meta_columns(from_avro(stored)) if stored else None

    def list_partition_paths(self) -> list[str]:
        """All partition paths on storage now, sorted. A path may have no visible file."""
        return self.listing.list_partition_paths()

    def list_file_groups(self, partition_path: str) -> tuple[FileGroup, ...]:
        """File groups of one partition, in order of file id."""
        return self.group_files(partition_path, self.listing.list_files(partition_path))

    def walk_file_groups(
        self, narrow: Narrow | None = None, *, confirms: bool = False
    ) -> Iterator[tuple[str, tuple[FileGroup, ...]]]:
        """Every partition path with its file groups, in no order; each folder is listed once.

        Args:
            narrow: as of `Listing.walk`.
            confirms: whether the folders of the store are compared with the files that the active timeline names.
                The lists of a metadata table prove nothing: they do not notice what is gone.

        Raises:
            LostDataError: `confirms`, and a file is gone or differs.
        """
        confirmed = self.confirmed if confirms else self.committed
        unseen = set(confirmed.named or ())
        listing = self.table.store_listing if confirms else self.listing
        for path, entries in listing.walk(narrow):
            unseen.discard(path)
            confirm(path, entries, confirmed)
            yield path, self.group_files(path, entries)
        for path in sorted(unseen) if narrow is None else ():
            confirm(path, (), confirmed)

    def replaced_groups(self, partition_path: str, entries: Iterable[FileInfo]) -> tuple[FileGroup, ...]:
        """File groups of a partition that replace commits replaced, and whose files are still there."""
        gone = self.committed.replaced.get(partition_path)
        if not gone:
            return ()
        bases, logs = parse_data_files(partition_path, entries)
        every = group_files(partition_path, bases, logs, replace(self.slicing, replaced={}))
        return tuple(group for group in every if group.file_id in gone)

    def group_files(self, partition_path: str, entries: Iterable[FileInfo]) -> tuple[FileGroup, ...]:
        """File groups of a partition. Reads the archive where the order of archived writes matters (layout 2)."""
        bases, logs = parse_data_files(partition_path, entries)
        unknown = unknown_completions(bases, logs, self.committed) - self._retired.keys()
        if unknown:
            # if the archive does not have a write, its request time is taken as its completion time
            self._retired.update({time: time for time in unknown})
            self._retired.update(self.table.archived_timeline.find_completions(unknown))
        committed = self.committed
        if self._retired:
            committed = replace(committed, completions={**committed.completions, **self._retired})
        return group_files(partition_path, bases, logs, committed)
