"""Cleaning as a service after commits."""

from table.clock import parse_instant_time
from table.config.table_config import TableConfig
from table.hudi_table import HudiTable
from table.log import get_logger
from table.options.choices import CleanFailure, CleanPolicy
from table.options.groups import CleanSettings
from table.services.clean.clean import carry_out_cleans, schedule_clean
from table.services.clean.memory import CleanerMemory
from table.services.clean.trigger import Cleaning, choose_cleaning
from table.services.service import ServiceOutcome, Spread, TableService, Trigger
from table.snapshot import Snapshot
from table.timeline.instant import Action

CLEANING = "cleaning"
SAFE_RETENTION_S = 600
COMMITS_SEEN = 5

log = get_logger("hudistream.services")


class CleaningService(TableService[Snapshot]):
    """Deletes versions of files that no reader needs any more.

    Args:
        settings: the policy.
        archives: whether the same sink archives; for the log where nothing cleans.
        compacts: whether compactions run beside the stream.
    """

    name = CLEANING

    def __init__(self, settings: CleanSettings, *, archives: bool = False, compacts: bool = False) -> None:
        self._settings, self._archives, self._compacts = settings, archives, compacts
        self._warned, self._commits = False, 0
        self._memory = CleanerMemory()

    @property
    def on_failure(self) -> CleanFailure:
        """``hudistream.clean.on.failure``."""
        return self._settings.on_failure

    def choose(self, config: TableConfig) -> Cleaning:
        """When a table with these properties is cleaned."""
        return choose_cleaning(
            config.table_type,
            compaction_async=self._compacts,
            clean_async=self._settings.at_checkpoint,
            inline=not self._settings.asynchronous,
            automatic=self._settings.automatic,
        )

    def trigger(self, config: TableConfig) -> Trigger:
        """By the gate of `choose_cleaning`."""
        return self.choose(config).trigger

    def note_commit(self, snapshot: Snapshot) -> None:
        """Warns once where nothing cleans, and once where readers may lose their files.

        A sink that commits once, as a command does, leaves cleaning to the table's stream.
        """
        self._commits += 1
        cleaning = self.choose(snapshot.config)
        if cleaning.trigger is not Trigger.NOT_NOW:
            self._warn_of_short_retention(snapshot)
        elif cleaning is Cleaning.NEVER and self._commits == 2:
            log.warning(
                "nothing_cleans",
                table=snapshot.storage.base_uri,
                archives=self._archives,
                hint="old versions of files pile up: set hoodie.clean.automatic=true and leave clean.async.enabled out "
                "(hoodie.clean.async.enabled=false cleans after each commit), or run `hudistream clean` from a "
                "scheduler",
            )

    def _warn_of_short_retention(self, snapshot: Snapshot) -> None:
        settings = self._settings
        if self._warned or settings.policy is not CleanPolicy.KEEP_LATEST_COMMITS:
            return
        if settings.grace_ms >= SAFE_RETENTION_S * 1000:
            return
        seconds = retention_s([instant.time for instant in snapshot.timeline.writes_by_time], settings.commits_retained)
        if seconds is not None and seconds < SAFE_RETENTION_S:
            self._warned = True
            log.warning(
                "retention_is_short",
                table=snapshot.storage.base_uri,
                commits_retained=settings.commits_retained,
                seconds=round(seconds, 1),
                hint="a reader that takes longer loses its files: raise hoodie.clean.commits.retained, or set "
                "hudistream.clean.grace.ms",
            )

    def plan(self, table: HudiTable) -> Snapshot | None:
        """The table with the cleans that are to be carried out on its timeline: begun cleans, else a due one.

        None where the sink leaves the execution to another job.
        """
        snapshot = schedule_clean(table, self._settings, known=self._memory)
        return snapshot if self._settings.executes and snapshot.timeline.pending_of(Action.CLEAN) else None

    def execute(self, table: HudiTable, plan: Snapshot, spread: Spread | None = None) -> ServiceOutcome:  # noqa: ARG002
        """Carries them out."""
        done = carry_out_cleans(plan, self._settings, self._memory)
        return ServiceOutcome(
            cleans=len(done),
            files_deleted=sum(len(names) for outcome in done for names in outcome.deleted.values()),
            files_failed=sum(len(names) for outcome in done for names in outcome.failed.values()),
            emptied=tuple(path for outcome in done for path in outcome.plan.emptied),
        )


def retention_s(commit_times: list[str], commits_retained: int) -> float | None:
    """For about how many seconds a reader's files stay, by the pace of the last commits; None: too few to know."""
    last = commit_times[-COMMITS_SEEN:]
    if len(last) < COMMITS_SEEN:
        return None
    pace_ms = (parse_instant_time(last[-1]) - parse_instant_time(last[0])) / (len(last) - 1)
    return pace_ms / 1000 * commits_retained
