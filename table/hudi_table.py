"""HudiTable: where a table is and what its properties say; open one, create one, list its timeline."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from table.clock import InstantClock
from table.config.table_config import TableConfig, create_table_config, load_table_config
from table.config.writable import check_path_is_free
from table.errors import TableNotFoundError, TimelineMovedError
from table.files.near_tables import near_tables
from table.lock import NO_LOCK, TableLock
from table.metadata_table.known_lists import KnownLists
from table.storage.interface import METAFOLDER, Storage, join
from table.storage.opening import open_storage
from table.timeline.active_timeline import load_timeline
from table.timeline.archived_timeline import Archive
from table.timeline.layout import TimelineLayout, layout_of
from table.timeline.lost_properties import open_config
from table.timeline.timeline import Timeline
from table.view.listing import Listing
from table.view.store_listing import StorageListing


@dataclass(frozen=True)
class HudiTable:
    """A table: where it is and what its properties say. Immutable and picklable; holds no open file.

    Attributes:
        storage: the table's.
        config: its properties.
        lock: keeps writers of other engines out; it stays in its process.
        known_lists: what this process knows of the metadata table; it stays in its process, too.
    """

    storage: Storage
    config: TableConfig
    lock: TableLock = field(default=NO_LOCK, compare=False, repr=False)
    known_lists: KnownLists = field(default_factory=KnownLists, compare=False, repr=False)

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
            CorruptFileError: when its properties are damaged, or are gone although there are commits.
        """
        return HudiTable.at(open_storage(path, storage_options), os.fspath(path))

    @staticmethod
    def at(storage: Storage, path: str | None = None) -> "HudiTable":
        """Opens the table in a folder that is open already.

        Args:
            storage: its folder.
            path: how the caller names it; None: by its address.

        Raises:
            TableNotFoundError, CorruptFileError: as `open`.
        """
        config = open_config(storage)
        if config is None:
            named = storage.base_uri if path is None else path
            raise TableNotFoundError(
                f"there is no Hudi table at {named!r} (no .hoodie/hoodie.properties){near_tables(storage)}"
            )
        return HudiTable(storage, config)

    @property
    def layout(self) -> TimelineLayout:
        """The layout of its timeline: folder, file names, encodings.

        Raises:
            UnsupportedTableError: this project does not know the layout.
        """
        return layout_of(self.config.layout_version, self.config.timeline_folder)

    @property
    def instant_clock(self) -> InstantClock:
        """Chooses the times of its instants. Only in layout 2 they decide to which slice a log file belongs."""
        return InstantClock(self.config.timezone, self.lock.clock_skew_ms if self.layout.completes_in_order else 0)

    @property
    def archived_timeline(self) -> Archive:
        """The archive of its instants."""
        return self.layout.open_archive(self.storage, self.config.archive_folder)

    @property
    def listing(self) -> Listing:
        """Says which partitions and data files the table has."""
        return StorageListing(self.storage)

    @property
    def store_listing(self) -> Listing:
        """As `listing`, from the store itself: for callers that look for files which no commit names."""
        return StorageListing(self.storage)

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


def create_table(storage: Storage, config: TableConfig) -> HudiTable:
    """Creates a table, or opens the one that another process created first (HoodieTableMetaClient).

    Folders first and the properties last, so that a table that can be opened is whole.

    Raises:
        TableExistsError: when the path is a file or a folder with something in it that is no table.
        CorruptFileError: when it was a table, and its properties are gone or damaged.
    """
    existing = open_config(storage)
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
