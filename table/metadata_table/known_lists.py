"""What a process knows of a metadata table since its own last delta commit, so that it does not ask the store again."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from table.config.table_config import TableConfig
from table.metadata_table.metadata_table import METADATA_FOLDER, MetadataTable
from table.metadata_table.statistics import Statistics
from table.storage.interface import Storage
from table.storage.subfolder import Subfolder
from table.timeline.instant import Instant
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
