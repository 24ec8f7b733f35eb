"""Archival as a service after commits."""

from dataclasses import dataclass, field

from table.config.table_config import TableConfig
from table.errors import CommitConflictError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.options.choices import CleanFailure
from table.options.groups import ArchiveSettings, CleanSettings, CompactionSettings
from table.services.archival.archival import ScheduledArchival, carry_out_archival, schedule_archival
from table.services.archival.plan import is_far_behind
from table.services.service import ServiceOutcome, Spread, TableService, Trigger
from table.snapshot import Snapshot
from table.timeline.instant import Action

log = get_logger("hudistream.archival")


@dataclass(frozen=True)
class ArchivalService(TableService[ScheduledArchival]):
    """Keeps the active timeline short.

    Attributes:
        settings: the bounds.
        clean: how many files are deleted at a time, and what a failure does.
        compaction: when a merge-on-read table is compacted.
    """

    settings: ArchiveSettings
    clean: CleanSettings
    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    name: str = "archival"
    _told: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    @property
    def on_failure(self) -> CleanFailure:
        """As for cleaning: one option covers both."""
        return self.clean.on_failure

    def trigger(self, config: TableConfig) -> Trigger:  # noqa: ARG002 as `TableService`
        """After each commit, whether the table is cleaned or not."""
        return Trigger.BACKGROUND if self.settings.automatic else Trigger.NOT_NOW

    def note_commit(self, snapshot: Snapshot) -> None:
        """Warns once of a savepoint that has held archival for long."""
        savepoints = snapshot.timeline.completed_of(Action.SAVEPOINT)
        commits = len(snapshot.timeline.completed_writes)
        if not (savepoints and self.settings.automatic and is_far_behind(commits, self.settings)):
            return
        held = savepoints[0].time
        if held not in self._told:
            self._told.add(held)
            log.warning(
                "archival_held",
                table=snapshot.storage.base_uri,
                savepoint=held,
                commits=commits,
                hint="no commit after this savepoint leaves the active timeline, and every batch and reader lists all "
                f"of them: delete it when it is no longer needed (hudistream savepoint delete PATH {held})",
            )

    def plan(self, table: HudiTable) -> ScheduledArchival | None:
        """Which instants leave the active timeline."""
        return schedule_archival(table, self.settings, self.compaction)

    def execute(self, table: HudiTable, plan: ScheduledArchival, spread: Spread | None = None) -> ServiceOutcome:  # noqa: ARG002
        """Retires them."""
        try:
            done = carry_out_archival(table, plan, self.settings, self.clean)
        except CommitConflictError as conflict:  # another archival is under way: the next commit looks again
            log.debug("archival_left_to_another", table=table.storage.base_uri, why=str(conflict))
            return ServiceOutcome()
        return ServiceOutcome(instants_archived=len(done.instants))
