"""One run of the services that are due after a commit: services, plans and outcome; and the slot for one run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from streaming.batch.upkeep_summary import UpkeepSummary
from table import clock, threads
from table.errors import HudiError, TimelineMovedError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.options.choices import CleanFailure
from table.services.clean.service import CLEANING
from table.services.service import ServiceOutcome, Spread, TableService, Trigger

NoteFailure = Callable[[Exception, CleanFailure], None]

log = get_logger("hudistream.services")


@dataclass(frozen=True)
class ServiceRun:
    """The services that are due, in the order in which they run.

    Attributes:
        table: the table.
        due: service -> when it runs.
        plans: name of a service -> the plan that was made between two batches, or None.
        spread: distributes work to other machines; None: there are none.
    """

    table: HudiTable
    due: Mapping[TableService[Any], Trigger]
    plans: Mapping[str, Any] = field(default_factory=dict)
    spread: Spread | None = None

    @property
    def followers(self) -> "ServiceRun | None":
        """The same run with the services alone that must run after the last commit, too; None: there are none."""
        due = {service: trigger for service, trigger in self.due.items() if service.follows_commits}
        return ServiceRun(self.table, due) if due else None

    @property
    def is_inline(self) -> bool:
        """Whether one of its services must run before the next batch."""
        return Trigger.INLINE in self.due.values()

    def planned(self, note_failure: NoteFailure) -> "ServiceRun":
        """The same run with the plans that must be made while nothing is written.

        Args:
            note_failure: called with the error if a plan cannot be made, and with the policy of its service.
        """
        plans: dict[str, Any] = {}
        for service in self.due:
            if service.plans_between_batches:
                try:
                    plans[service.name] = service.plan(self.table)
                except HudiError as error:  # the batch is visible, and stays so
                    plans[service.name] = None
                    note_failure(error, service.on_failure)
        return replace(self, plans=plans)

    def carry_out(self, note_failure: NoteFailure) -> tuple[UpkeepSummary, frozenset[str]]:
        """Runs each service in turn. If one fails, the others still run: they do not depend on its success.

        Args:
            note_failure: called with the error of a service that failed, and with its policy.

        Returns:
            The summary of the run, and the partition paths that cleans emptied.
        """
        done, emptied, has_failed = UpkeepSummary(self.table.storage.base_uri), set[str](), False
        for service, trigger in self.due.items():
            if trigger is Trigger.AFTER_COMPACTION and not (done.compactions or has_failed):
                continue  # CompactionCommitSink cleans after it has committed; a failed compaction does not block it
            started_s, outcome = clock.monotonic_s(), ServiceOutcome()
            try:
                outcome = self._run_one(service)
            except TimelineMovedError as moved:  # another archival or clean runs: try again after the next commit
                log.debug("service_put_off", table=done.table, service=service.name, why=str(moved))
            except Exception as error:  # noqa: BLE001 a failed service must not fail the stream
                has_failed = True
                note_failure(error, service.on_failure)
                done = replace(done, error=done.error or repr(error))
            emptied.update(outcome.emptied)
            done = _added(done, outcome, clock.monotonic_s() - started_s if service.name == CLEANING else None)
        return done, frozenset(emptied)

    def _run_one(self, service: TableService[Any]) -> ServiceOutcome:
        between = service.plans_between_batches
        plan = self.plans.get(service.name) if between else service.plan(self.table)
        return service.execute(self.table, plan, self.spread) if plan is not None else ServiceOutcome()


def _added(done: UpkeepSummary, outcome: ServiceOutcome, clean_seconds: float | None) -> UpkeepSummary:
    return replace(
        done,
        cleans=done.cleans + outcome.cleans,
        files_deleted=done.files_deleted + outcome.files_deleted,
        files_failed=done.files_failed + outcome.files_failed,
        instants_archived=done.instants_archived + outcome.instants_archived,
        compactions=done.compactions + outcome.compactions,
        clusterings=done.clusterings + outcome.clusterings,
        clean_seconds=clean_seconds if clean_seconds is not None else done.clean_seconds,
    )


class RunSlot:
    """Room for one run, and for one more that waits. Between the thread of a run and the next commit."""

    def __init__(self) -> None:
        self._lock = threads.make_lock()
        self._is_taken = False
        self._waiting: ServiceRun | None = None

    def take(self, run: ServiceRun) -> bool:
        """Takes the slot for a run. If it is taken, the followers of the run wait, in place of those before.

        Returns:
            Whether the caller has the slot. It then calls `next_run` until that gives none, or `free`.
        """
        with self._lock:
            if self._is_taken:
                self._waiting = run.followers
                return False
            self._is_taken = True
            return True

    def next_run(self) -> ServiceRun | None:
        """The run that waits, which has the slot now; None: nothing waits, and the slot is free."""
        with self._lock:
            following, self._waiting = self._waiting, None
            self._is_taken = following is not None
            return following

    def free(self) -> None:
        """Gives the slot back after a run that ended early. What waits stays for the next one."""
        with self._lock:
            self._is_taken = False
