"""Upkeep of the metadata table: its own compaction, cleaning and archival, as a service after commits.

It is a table like others, so the same services clean and archive it. It fails no batch: lists that cannot be compacted
grow, and are dropped before they cost more than a listing of the store.
"""

from dataclasses import replace

from table.config.metadata_indexes import FILES
from table.config.table_config import TableConfig
from table.errors import CorruptFileError, UnsupportedTableError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.metadata_table.compact import DELTA_COMMITS, Compaction, compact_lists
from table.metadata_table.drop import drop_present_metadata_table
from table.metadata_table.metadata_table import MetadataTable
from table.options.choices import CleanFailure, CleanPolicy
from table.options.groups import ArchiveSettings, CleanSettings
from table.services.archival.archival import archive
from table.services.clean.clean import clean
from table.services.service import ServiceOutcome, Spread, TableService, Trigger
from table.snapshot import Snapshot

log = get_logger("hudistream.metadata_table")

_PATIENCE = 2  # times as many commits as make a compaction due
_CLEAN = CleanSettings(policy=CleanPolicy.KEEP_LATEST_FILE_VERSIONS, versions_retained=3, parallelism=1)


class MetadataTableService(TableService[int]):
    """Keeps the lists of files small.

    Args:
        delta_commits: of the metadata table, from which on a compaction is due.
    """

    name = "metadata table"
    on_failure = CleanFailure.WARN

    def __init__(self, delta_commits: int) -> None:
        self._delta_commits, self._commits, self._uncompacted = delta_commits, 0, 0

    def note_commit(self, snapshot: Snapshot) -> None:
        """Counts the commits to a table that has a metadata table."""
        self._commits += FILES in snapshot.config.metadata_indexes
        self._uncompacted += FILES in snapshot.config.metadata_indexes

    def trigger(self, config: TableConfig) -> Trigger:
        """Beside the next batch, after some commits to a table that has a metadata table.

        Nothing is compacted while a batch decides its end. If batches follow each other without a pause, that may be
        so at each look: then the look comes before the next batch, until nothing hinders one.
        """
        if FILES not in config.metadata_indexes or 2 * self._commits < self._delta_commits:
            return Trigger.NOT_NOW  # each look costs some requests
        return Trigger.INLINE if self._uncompacted > _PATIENCE * self._delta_commits else Trigger.BACKGROUND

    def plan(self, table: HudiTable) -> int | None:  # noqa: ARG002
        """The number of delta commits that make a compaction due: `execute` looks at the metadata table."""
        self._commits = 0
        return self._delta_commits

    def execute(self, table: HudiTable, plan: int, spread: Spread | None = None) -> ServiceOutcome:  # noqa: ARG002
        """Compacts the lists, then cleans and archives the metadata table.

        Raises:
            StorageError: the store fails.
            CommitConflictError: another process archives the metadata table.
        """
        if keep_metadata_table_small(table, plan) is not Compaction.HINDERED:
            self._uncompacted = 0
        return ServiceOutcome()


def keep_metadata_table_small(table: HudiTable, delta_commits: int = DELTA_COMMITS) -> Compaction:
    """Compacts the lists of files of a table if it is due, then cleans and archives its metadata table.

    Args:
        table: with a metadata table.
        delta_commits: number of log files from which on a compaction is due.

    Returns:
        What came of it; HINDERED where the metadata table was dropped, too.

    Raises:
        StorageError: the store fails.
        CommitConflictError: another process archives the metadata table.
    """
    try:
        outcome = compact_lists(table.storage, table.load_timeline(), delta_commits)
        if outcome is not Compaction.DONE:
            return outcome
        own = MetadataTable.open(table.storage)
        # Hudi writes no time zone into its properties: its instants have the times of the table's
        inner = HudiTable(own.storage, replace(own.config, timezone=table.config.timezone))
        clean(inner, _CLEAN)
        archive(inner, ArchiveSettings(), _CLEAN)
    except FileNotFoundError:
        return Compaction.HINDERED  # it was dropped meanwhile
    except (UnsupportedTableError, CorruptFileError) as error:
        log.warning("metadata_table_not_kept", table=table.storage.base_uri, why=str(error))
        drop_present_metadata_table(table.storage)
        return Compaction.HINDERED
    return outcome
