"""MetadataTable: the table within the table that lists its files (HoodieBackedTableMetadata)."""

from collections.abc import Iterable
from dataclasses import dataclass

from table.config.metadata_indexes import FILES
from table.config.properties import parse_properties
from table.config.table_config import PROPERTIES_FILE, TableConfig, config_from_properties, is_valid
from table.errors import CorruptFileError, UnsupportedTableError
from table.storage.interface import METAFOLDER, FileInfo, Storage, join
from table.storage.subfolder import Subfolder
from table.timeline.active_timeline import load_timeline
from table.timeline.instant import Action, Instant
from table.timeline.layout import TimelineLayout, layout_of
from table.timeline.timeline import Timeline
from table.view.file_group import (
    CommittedInstants,
    FileSlice,
    build_file_groups,
    committed_instants,
    parse_data_files,
)

METADATA_FOLDER = join(METAFOLDER, "metadata")
FILE_ID = "files-0000-0"  # the only file group of the partition
_DIGITS = 17
MADE = "0" * 14  # begins the times of the instants that made the metadata table


@dataclass(frozen=True)
class MetadataTable:
    """A metadata table. Its own properties say its layout: Hudi 1.0.2 also keeps one of version 6 in a later table.

    Attributes:
        storage: its folder.
        config: its own properties.
    """

    storage: Subfolder
    config: TableConfig

    @staticmethod
    def open(storage: Storage) -> "MetadataTable":
        """Opens the metadata table of a table.

        Args:
            storage: of the table.

        Raises:
            FileNotFoundError: there is none.
            CorruptFileError, StorageError: its properties cannot be read.
        """
        own = Subfolder(storage, METADATA_FOLDER)
        properties = parse_properties(own.read(PROPERTIES_FILE))
        if not is_valid(properties):
            raise CorruptFileError(f"{METADATA_FOLDER}/{PROPERTIES_FILE} is not whole")
        try:
            return MetadataTable(own, config_from_properties(properties))
        except ValueError as error:
            raise CorruptFileError(f"{METADATA_FOLDER}/{PROPERTIES_FILE} is damaged: {error}") from error

    @property
    def layout(self) -> TimelineLayout:
        """The layout of its timeline."""
        return layout_of(self.config.layout_version, self.config.timeline_folder)

    def load_timeline(self) -> Timeline:
        """Its active timeline, from one listing."""
        return load_timeline(self.storage, self.layout)

    def list_files(self) -> list[FileInfo]:
        """The files of the partition ``files``, sorted by name."""
        return sorted((e for e in self.storage.list_dir(FILES) if not e.is_dir), key=lambda entry: entry.name)


def is_making(time: str) -> bool:
    """Whether a delta commit of that time made the metadata table (pure).

    The others have the time of an action of the table. In layout 1 the time of a making one has three digits more.
    """
    return time.startswith(MADE) or len(time) > _DIGITS


def find_slice(entries: list[FileInfo], committed: CommittedInstants) -> FileSlice:
    """The base file and the log files that list the files of the table (pure).

    Args:
        entries: of `MetadataTable.list_files`.
        committed: instants of the metadata table's own timeline.

    Raises:
        UnsupportedTableError: there is not one file group, but several or none.
    """
    groups = build_file_groups(FILES, entries, committed)
    if len(groups) != 1:
        raise UnsupportedTableError(f"the metadata table has {len(groups)} file groups for files, and should have one")
    return groups[0].merged_slice


def newest_base(timeline: Timeline, entries: Iterable[FileInfo] = ()) -> str:
    """The newest instant at which a slice begins: of a compaction, completed or pending, or of a file (pure).

    Args:
        timeline: of the metadata table.
        entries: of `MetadataTable.list_files`. In layout 1 the names of log files hold the instant of their slice.
    """
    times = {instant.time for instant in compactions_of(timeline)}
    bases, logs = parse_data_files(FILES, entries)
    committed = committed_instants(timeline, {})
    times.update(base.instant_time for base in bases if committed.includes(base.instant_time))
    times.update(log.base_instant_time for log in logs if not committed.logs_name_writers)
    return max(times, default="")


def compactions_of(timeline: Timeline) -> tuple[Instant, ...]:
    """The compactions on a timeline, completed or pending (pure)."""
    actions = (Action.COMMIT, Action.COMPACTION, Action.LOG_COMPACTION)
    return (*timeline.completed_of(*actions), *timeline.pending_of(*actions))
