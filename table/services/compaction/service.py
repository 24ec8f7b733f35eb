"""Compaction as a service after commits."""

from dataclasses import dataclass

from table.config.table_config import TableConfig
from table.errors import CommitConflictError
from table.hudi_table import HudiTable
from table.lock import NO_LOCK
from table.log import get_logger
from table.options.choices import CleanFailure, TableType
from table.options.groups import BaseFileSettings, CompactionSettings
from table.services.compaction.compaction import schedule_compaction
from table.services.compaction.execution import carry_out_compactions
from table.services.compaction.runner import runner_of
from table.services.service import ServiceOutcome, Spread, TableService, Trigger
from table.snapshot import Snapshot
from table.timeline.instant import Action

log = get_logger("hudistream.services")


@dataclass(frozen=True)
class CompactionService(TableService[Snapshot]):
    """Makes base files of slices with log files.

    Attributes:
        settings: when, and which slices.
        base_file: how base files are encoded.
        on_failure: as for cleaning: one option covers all services.
        shared: whether other writers may write the table at the same time.
    """

    settings: CompactionSettings
    base_file: BaseFileSettings
    on_failure: CleanFailure = CleanFailure.WARN
    shared: bool = False
    name: str = "compaction"
    plans_between_batches: bool = True

    def trigger(self, config: TableConfig) -> Trigger:
        """After each commit to a merge-on-read table, beside the stream unless it is to be inline."""
        if config.table_type != TableType.MERGE_ON_READ:
            return Trigger.NOT_NOW
        if self.settings.executes and self.settings.inline:
            return Trigger.INLINE
        return Trigger.BACKGROUND if self.settings.executes or self.settings.requests else Trigger.NOT_NOW

    def plan(self, table: HudiTable) -> Snapshot | None:
        """The table with the compactions that are to be carried out on its timeline: requested ones, else a due one.

        None where the sink leaves the execution to another job.
        """
        if not self.settings.requests:
            snapshot = Snapshot.load(table)
            return snapshot if snapshot.timeline.pending_of(Action.COMPACTION) else None
        try:
            snapshot = schedule_compaction(table, self.settings, only_due=True, shared=self.shared)
        except CommitConflictError as conflict:  # another writer of the table is at work: after the next commit, then
            log.debug("compaction_put_off", table=table.storage.base_uri, why=str(conflict))
            return None
        return snapshot if self.settings.executes and snapshot.timeline.pending_of(Action.COMPACTION) else None

    def execute(self, table: HudiTable, plan: Snapshot, spread: Spread | None = None) -> ServiceOutcome:
        """Carries them out: large ones on other machines, if there are any."""
        runner = runner_of(self.settings, spread, beside_batches=not self.settings.inline)
        is_shared = table.lock is not NO_LOCK
        done = carry_out_compactions(plan, self.base_file, runner, beside_others=is_shared)
        return ServiceOutcome(compactions=len(done))
