"""Compaction as a service after commits."""

from dataclasses import dataclass

from table.config.table_config import TableConfig
from table.hudi_table import HudiTable
from table.options.choices import CleanFailure, TableType
from table.options.groups import BaseFileSettings, CompactionSettings
from table.services.compaction.compaction import carry_out_compactions, schedule_compaction
from table.services.compaction.runner import CompactionRunner
from table.services.service import ServiceOutcome, Spread, Trigger
from table.timeline.instant import Action
from table.timeline.timeline import Timeline


@dataclass(frozen=True)
class CompactionService:
    """Makes base files of slices with log files.

    Attributes:
        settings: when, and which slices.
        base_file: how base files are encoded.
        on_failure: as of cleaning: one option speaks of all services.
    """

    settings: CompactionSettings
    base_file: BaseFileSettings
    on_failure: CleanFailure = CleanFailure.WARN
    name: str = "compaction"
    plans_between_batches: bool = True

    def trigger(self, config: TableConfig) -> Trigger:
        """After each commit to a merge-on-read table, beside the stream unless it is to be inline."""
        if config.table_type != TableType.MERGE_ON_READ:
            return Trigger.NOT_NOW
        if self.settings.inline:
            return Trigger.INLINE
        return Trigger.BACKGROUND if self.settings.asynchronous else Trigger.NOT_NOW

    def advise(self, table: HudiTable, timeline: Timeline) -> None:
        """Nothing."""

    def plan(self, table: HudiTable) -> Timeline | None:
        """The timeline with the compactions that are to be carried out: requested ones, else a new one if it is due."""
        timeline = schedule_compaction(table, self.settings, only_due=True)
        return timeline if timeline.pending_of(Action.COMPACTION) else None

    def execute(self, table: HudiTable, plan: Timeline, spread: Spread | None = None) -> ServiceOutcome:
        """Carries them out: large ones elsewhere, if somebody is there."""
        runner = CompactionRunner(self.settings.tasks, spread, self.settings.executors_from_mb)
        return ServiceOutcome(compactions=len(carry_out_compactions(table, plan, self.base_file, runner)))
