"""MetadataTable: the table within the table that lists its files (HoodieBackedTableMetadata)."""

from collections.abc import Iterable
from dataclasses import dataclass

from table.config.metadata_indexes import FILES
from table.config.table_config import PROPERTIES_FILE, TableConfig, config_from_properties, whole_properties
from table.errors import CorruptFileError, UnsupportedTableError
from table.files.names import build_write_token, parse_base_file, parse_log_file
from table.storage.interface import METAFOLDER, FileInfo, Storage, join
from table.storage.subfolder import Subfolder
from table.timeline.active_timeline import load_timeline
from table.timeline.instant import Action, Instant, State
from table.timeline.layout import TimelineLayout, layout_of, name_instant
from table.timeline.metadata.compaction import CompactionOperation, decode_compaction_plan
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
_COUNTED = 1_010_101  # number of an attempt that no task reaches: the token tells the number of file groups
_COMPACTIONS = (Action.COMMIT, Action.COMPACTION, Action.LOG_COMPACTION)
GroupKey = tuple[str, str]  # index and file id
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
        data = own.read(PROPERTIES_FILE)
        try:
            return MetadataTable(own, config_from_properties(whole_properties(data)))
        except (CorruptFileError, ValueError) as error:
            raise CorruptFileError(f"{METADATA_FOLDER}/{PROPERTIES_FILE} is damaged: {error}") from error

    @property
    def layout(self) -> TimelineLayout:
        """The layout of its timeline."""
        return layout_of(self.config.layout_version, self.config.timeline_folder)

    def load_timeline(self) -> Timeline:
        """Its active timeline, from one listing."""
        return load_timeline(self.storage, self.layout)

    def list_files(self, index: str = FILES) -> list[FileInfo]:
        """The files of an index, sorted by name.

        Args:
            index: its name, which is the partition path.
        """
        return sorted((e for e in self.storage.list_dir(index) if not e.is_dir), key=lambda entry: entry.name)


def is_making(time: str) -> bool:
    """Whether a delta commit of that time made the metadata table (pure).

    The others have the time of an action of the table. In layout 1 the time of a making one has three digits more.
    """
    return time.startswith(MADE) or len(time) > _DIGITS


def unfinished_times(own: Timeline, timeline: Timeline) -> frozenset[str]:
    """The delta commits whose actions the table has not completed: they may be taken back (pure).

    Hudi's writers complete a delta commit first, and may die before the action is complete.

    Args:
        own: timeline of the metadata table.
        timeline: of the table.
    """
    done = {instant.time for instant in timeline if instant.is_completed}
    pending = {instant.time for instant in timeline.pending}
    first = timeline.first_active_time or ""  # of the writes: archival may leave older rollbacks and cleans
    times = (one.time for one in own.completed_of(Action.DELTA_COMMIT) if not is_making(one.time))
    return frozenset(time for time in times if time not in done and (time >= first or time in pending))


def find_slice(entries: list[FileInfo], committed: CommittedInstants) -> FileSlice:
    """The base file and the log files that list the files of the table (pure).

    Args:
        entries: of `MetadataTable.list_files`.
        committed: instants of the metadata table's own timeline.

    Raises:
        UnsupportedTableError: there is not one file group, but several.
        CorruptFileError: there is none.
    """
    slices = slices_in(FILES, entries, committed)
    if not slices:
        raise CorruptFileError("the metadata table has no file with the lists of files")
    if len(slices) != 1:
        raise UnsupportedTableError(f"the metadata table has {len(slices)} file groups for files, and should have one")
    return slices[0]


def slices_in(index: str, entries: list[FileInfo], committed: CommittedInstants) -> list[FileSlice]:
    """The files that hold the records of an index, a slice for each file group (pure).

    Args:
        index: its name.
        entries: of `MetadataTable.list_files`.
        committed: instants of the metadata table's own timeline.
    """
    return [group.merged_slice for group in build_file_groups(index, entries, committed)]


def is_whole(found: FileSlice) -> bool:
    """Whether a slice begins with a base file, or with the log file that made its file group (pure).

    A process that was paused while it dropped an index may have deleted files of the one that was made after it.
    """
    return found.base_file is not None or is_making(found.base_instant_time)


def check_compactions(timeline: Timeline) -> None:
    """Refuses a compaction without a request: it belongs to an earlier metadata table, and was completed in this one.

    Args:
        timeline: of the metadata table. Archival deletes a request first, so an answer may be wrong for a moment.

    Raises:
        UnsupportedTableError: names the compaction.
    """
    for one in timeline.completed_of(*_COMPACTIONS):
        if not any(file.state is State.REQUESTED for file in timeline.files_of(one.time, one.action)):
            raise UnsupportedTableError(f"the compaction {one.time} of the metadata table was not requested there")


def newest_base(own: MetadataTable, timeline: Timeline, group: GroupKey, entries: Iterable[FileInfo]) -> str:
    """The newest instant at which a slice of a file group begins, in timeline layout 1.

    It is that of a base file, that in the name of a log file, or a pending compaction that plans the file group.

    Args:
        own: the metadata table.
        timeline: its timeline, listed before the files.
        group: index and file id.
        entries: of `MetadataTable.list_files`.

    Raises:
        CorruptFileError: the plan of a pending compaction is damaged.
    """
    bases, logs = parse_data_files(group[0], entries)
    committed = committed_instants(timeline, {})
    times = {base.instant_time for base in bases if base.file_id == group[1] and committed.includes(base.instant_time)}
    times.update(log.base_instant_time for log in logs if log.file_id == group[1])
    times.update(one.time for one in timeline.pending_of(*_COMPACTIONS) if group in planned_groups(own, one))
    return max(times, default="")


def planned_groups(own: MetadataTable, compaction: Instant) -> dict[GroupKey, CompactionOperation]:
    """The file groups of a requested compaction, by index and file id.

    Args:
        own: the metadata table.
        compaction: pending.

    Raises:
        CorruptFileError: its plan is damaged.
        FileNotFoundError: it has no request any more.
    """
    requested = name_instant(own.layout, compaction.time, Action.COMPACTION, State.REQUESTED)
    plan = decode_compaction_plan(own.storage.read(requested.path), requested.path)
    return {(one.partition_path, one.file_id): one for one in plan.operations}


def token_of_group(file_id: str, count: int) -> str:
    """Write token of the first file of a file group of an index, and of each base file that is made here (pure).

    The hash of a key finds its file group by their number. If some are gone, a key is looked for in a wrong one, and
    counts as new. So names say how many there were. Hudi takes a token for no more than a name.

    Args:
        file_id: of the file group.
        count: number of file groups of the index.
    """
    if count == 1:
        return build_write_token(0, 0, 0)
    return build_write_token(int(file_id.split("-")[-2]), count, _COUNTED)


def _said_count(name: str) -> int | None:
    file = parse_base_file(name) or parse_log_file(name)
    numbers = file.write_token.split("-") if file is not None else []
    return int(numbers[1]) if numbers[2:] == [str(_COUNTED)] else None


def count_groups(entries: Iterable[FileInfo]) -> int:
    """The number of file groups of an index (pure).

    Args:
        entries: of `MetadataTable.list_files`.

    Raises:
        CorruptFileError: the index has no files, or names of its files say another number.
    """
    files = [file for of_kind in parse_data_files("", entries) for file in of_kind]
    count = len({file.file_id for file in files})
    if not count:
        raise CorruptFileError("an index of the metadata table has no files")
    differing = {number for file in files if (number := _said_count(file.name)) is not None} - {count}
    if differing:
        raise CorruptFileError(f"an index of the metadata table has {count} file groups, and had {max(differing)}")
    return count


def compactions_of(timeline: Timeline) -> tuple[Instant, ...]:
    """The compactions on a timeline, completed or pending (pure)."""
    return (*timeline.completed_of(*_COMPACTIONS), *timeline.pending_of(*_COMPACTIONS))
