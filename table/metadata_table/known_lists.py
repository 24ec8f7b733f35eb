"""What a process knows of a metadata table since its own last delta commit, so that it does not ask the store again."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from table.config.table_config import TableConfig
from table.metadata_table.lost_files import WRITES, NamedFiles, read_named
from table.metadata_table.metadata_table import METADATA_FOLDER, MetadataTable, is_making
from table.metadata_table.statistics import Statistics
from table.storage.interface import Storage
from table.storage.subfolder import Subfolder
from table.timeline.instant import Action, Instant
from table.timeline.timeline import Timeline


@dataclass(frozen=True)
class SeenLists:
    """A metadata table as it was at a delta commit.

    The number of file groups of an index changes only when the index is made anew, and the columns with statistics only
    by another writer. Both write instants into the metadata table.

    Attributes:
        table_config: properties of the table.
        own_config: properties of the metadata table.
        time: of the delta commit.
        instants: the metadata table's instants before it.
        statistics: those that the table keeps; None if it keeps none.
        group_counts: index -> number of its file groups, as far as they were counted.
    """

    table_config: TableConfig
    own_config: TableConfig
    time: str
    instants: frozenset[Instant]
    statistics: Statistics | None
    group_counts: Mapping[str, int] = field(default_factory=dict)

    def holds(self, timeline: Timeline) -> bool:
        """Whether only this delta commit came since (pure).

        Args:
            timeline: of the metadata table, as it is now.
        """
        later = timeline.files - self.instants
        return any(one.is_completed for one in later) and all(one.time == self.time for one in later)


class KnownLists:
    """The metadata table of one table, as this process knows it. Other processes may change it at any time."""

    def __init__(self) -> None:
        self._seen: SeenLists | None = None
        self._named: dict[tuple[str, Action], NamedFiles] = {}
        self._of: frozenset[Instant] = frozenset()  # the instants that made the metadata table of which they are

    def open(self, storage: Storage, config: TableConfig) -> tuple[MetadataTable, Timeline, SeenLists | None]:
        """Opens the metadata table of a table, and lists its timeline.

        Args:
            storage: of the table.
            config: the table's properties, as they are now.

        Returns:
            The metadata table, its timeline, and what is known of it and still holds; None: nothing is.

        Raises:
            FileNotFoundError: there is none.
            CorruptFileError, StorageError: its properties cannot be read.
        """
        seen = self._seen
        if seen is not None and seen.table_config == config:
            own = MetadataTable(Subfolder(storage, METADATA_FOLDER), seen.own_config)
            timeline = own.load_timeline()
            if seen.holds(timeline):
                return own, timeline, seen
        own = MetadataTable.open(storage)
        return own, own.load_timeline(), None

    def remember(self, seen: SeenLists) -> None:
        """Keeps what a delta commit has read.

        Args:
            seen: the metadata table at the delta commit, which is complete.
        """
        self._seen = seen

    def note_named(self, named: NamedFiles) -> None:
        """Keeps the names of the files that a delta commit of this process wrote."""
        self._named[named.instant.time, named.instant.action] = named

    def name_files(self, own: MetadataTable, timeline: Timeline) -> tuple[NamedFiles, ...]:
        """The files that the instants of the metadata table wrote. Those that are not known are read.

        Args:
            own: the metadata table.
            timeline: its timeline.

        Raises:
            CorruptFileError: the file of an instant is damaged.
            StorageError: the store fails.
        """
        writes = timeline.completed_of(*WRITES)
        of = frozenset(one for one in writes if is_making(one.time))
        known = self._named if of == self._of else {}
        unknown = [one for one in writes if (one.time, one.action) not in known]
        read = {(one.instant.time, one.instant.action): one for one in read_named(own, unknown)}
        every = {**known, **read}
        # another thread may have noted what came after the timeline was listed: it is read again
        self._named = {key: every[key] for key in ((one.time, one.action) for one in writes) if key in every}
        self._of = of
        return tuple(self._named.values())
