"""HudiTable: open one, create one, ask it for its timeline, schema and files."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from table.config.table_config import TableConfig, create_table_config, load_table_config
from table.config.writable import check_path_is_free
from table.errors import TableNotFoundError, TimelineMovedError
from table.files.base.stored_file import StoredBaseFile
from table.files.names import BASE_FILE_EXTENSION
from table.lock import NO_LOCK, TableLock
from table.options.choices import TableType
from table.schema.avro_schema import META_FIELDS, RECORD_KEY, from_avro, without_meta_columns
from table.storage.interface import METAFOLDER, Storage, join
from table.storage.opening import open_storage
from table.timeline.active_timeline import load_timeline
from table.timeline.archived_timeline import Archive
from table.timeline.commit_cache import CommitCache
from table.timeline.layout import TimelineLayout, layout_of
from table.timeline.timeline import Timeline
from table.view.file_group import CommittedInstants
from table.view.file_system_view import load_committed_instants
from table.view.listing import Listing, StorageListing

# ActiveTimelineV1.getLastCommitMetadataWithValidSchema: these may carry an older schema
_OPERATIONS_WITHOUT_SCHEMA = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"})


@dataclass(frozen=True)
class HudiTable:
    """A table: where it is and what its properties say. Immutable and picklable; holds no open file.

    Attributes:
        storage: the table's.
        config: its properties.
        lock: keeps writers of other engines out; it stays in its process.
    """

    storage: Storage
    config: TableConfig
    lock: TableLock = field(default=NO_LOCK, compare=False, repr=False)

    def __reduce__(self) -> tuple[type["HudiTable"], tuple[Storage, TableConfig]]:
        return type(self), (self.storage, self.config)

    @staticmethod
    def open(path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> "HudiTable":
        """Opens the table at a path.

        Args:
            path: a folder or an address; see `table.storage.opening.open_storage`.
            storage_options: for fsspec.

        Raises:
            TableNotFoundError: when there is none.
            CorruptFileError: when its properties are damaged.
        """
        storage = open_storage(path, storage_options)
        config = load_table_config(storage)
        if config is None:
            raise TableNotFoundError(f"there is no Hudi table at {os.fspath(path)!r} (no .hoodie/hoodie.properties)")
        return HudiTable(storage, config)

    @property
    def layout(self) -> TimelineLayout:
        """The layout of its timeline: folder, file names, encodings.

        Raises:
            UnsupportedTableError: this project does not know the layout.
        """
        return layout_of(self.config.layout_version, self.config.timeline_folder)

    @property
    def archived_timeline(self) -> Archive:
        """The archive of its instants."""
        return self.layout.open_archive(self.storage, self.config.archive_folder)

    @property
    def listing(self) -> Listing:
        """Says which partitions and data files the table has."""
        return StorageListing(self.storage)

    def open_commits(self) -> CommitCache:
        """An empty cache of its decoded commits, for callers that read commits more than once."""
        return CommitCache(self.storage)

    def load_timeline(self) -> Timeline:
        """The active timeline, from one listing.

        Raises:
            TimelineMovedError: it is empty, and the table has another layout by now: its instants are elsewhere.
        """
        timeline = load_timeline(self.storage, self.layout)
        if not timeline.files:
            self._check_layout()
        return timeline

    def _check_layout(self) -> None:
        """A conversion takes the timeline to another folder: an object from before it would show an empty table."""
        now = load_table_config(self.storage)
        if now is not None and now.layout_version != self.config.layout_version:
            raise TimelineMovedError(
                f"the table at {self.storage.base_uri!r} has hoodie.table.version={now.version} by now, and had "
                f"{self.config.version} when it was opened: open it again"
            )

    def load_committed(self, timeline: Timeline, commits: CommitCache | None = None) -> CommittedInstants:
        """Which files a snapshot of that timeline shows.

        Args:
            timeline: as loaded.
            commits: of this table, where the caller keeps them; None: they are read.
        """
        return load_committed_instants(commits or self.open_commits(), timeline)

    def load_slicing(self, timeline: Timeline, commits: CommitCache | None = None) -> CommittedInstants:
        """As `load_committed`, for callers that decide by slices what is written, compacted or deleted.

        They group files without asking the archive, as `Snapshot` does: so it is asked here, where log files may be
        those of retired writes that a compaction passed.

        Raises:
            CorruptFileError: a file of the archive is damaged.
        """
        known = commits or self.open_commits()
        return self.with_late_writes(self.load_committed(timeline, known), timeline, known)

    def with_late_writes(
        self, committed: CommittedInstants, timeline: Timeline, commits: CommitCache | None = None
    ) -> CommittedInstants:
        """What `load_slicing` adds to the instants that count.

        Raises:
            CorruptFileError: a file of the archive is damaged.
        """
        if self.config.table_type != TableType.MERGE_ON_READ:
            return committed
        late = (commits or self.open_commits()).late_writes.find(self.archived_timeline, timeline)
        return replace(committed, completions={**late, **committed.completions}) if late else committed

    def load_schema(self, timeline: Timeline, commits: CommitCache | None = None) -> pa.Schema | None:
        """The table's columns without meta columns (Arrow), or None when nothing was written yet.

        Args:
            timeline: as loaded.
            commits: of this table, where the caller keeps them; None: they are read.
        """
        known, of_service = commits or self.open_commits(), ""
        for instant in reversed(timeline.completed_writes):
            metadata = known.read(instant)
            text = metadata.extra.get("schema")
            if text and metadata.operation not in _OPERATIONS_WITHOUT_SCHEMA:
                return without_meta_columns(from_avro(text))
            of_service = of_service or text or ""
        # a service's commit says what it read with: it alone is left where the writes before it were archived
        stored = of_service or self.config.extra.get("hoodie.table.create.schema")
        return without_meta_columns(from_avro(stored)) if stored else None


def create_table(storage: Storage, config: TableConfig) -> HudiTable:
    """Creates a table, or opens the one that somebody else created first (HoodieTableMetaClient).

    Folders first and the properties last, so that a table that can be opened is whole.

    Raises:
        TableExistsError: when the path is a file or a folder with something in it that is no table.
    """
    existing = load_table_config(storage)
    if existing is not None:
        return HudiTable(storage, existing)
    check_path_is_free(storage)
    table = HudiTable(storage, config)
    for folder in (".schema", ".temp", ".aux/.bootstrap/.partitions", ".aux/.bootstrap/.fileids"):
        storage.make_dir(join(METAFOLDER, folder))
    storage.make_dir(table.archived_timeline.folder)
    create_table_config(storage, config)
    created = load_table_config(storage)  # also ours: a version may spell what was asked for in other words
    if created is None:
        raise TableNotFoundError(f"the table at {storage.base_uri!r} was deleted while it was being created")
    return HudiTable(storage, created)


def find_stored_key(table: HudiTable, timeline: Timeline, commits: CommitCache | None = None) -> str | None:
    """A record key, if the spelling of the table's keys must be checked; None otherwise, and for an empty table."""
    if table.config.keygen_type != "COMPLEX" or len(table.config.record_key_fields) != 1:
        return None
    known = commits or table.open_commits()
    for instant in reversed(timeline.completed_writes):
        for stat in known.read(instant).stats:
            if stat.path.endswith(BASE_FILE_EXTENSION) and table.storage.exists(stat.path):
                with StoredBaseFile(table.storage, stat.path) as file:
                    for rows in file.read_batches(pa.schema([META_FIELDS[2]])):
                        return str(rows.column(RECORD_KEY)[0])
    return None
