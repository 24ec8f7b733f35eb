"""What is due after a commit: a list of services, in one background thread unless one of them says otherwise.

As in Flink's CleanFunction, the services are started after a commit unless they still run. Their failure is
the table's, not the batch's, which is visible by then.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from structlog.contextvars import bound_contextvars

from streaming.batch.upkeep_summary import UpkeepSummary
from table import clock, threads
from table.errors import HudiError, TimelineMovedError
from table.hudi_table import HudiTable
from table.lock import NO_LOCK, TableLock
from table.log import get_logger
from table.options.choices import CleanFailure
from table.options.write_options import WriteOptions
from table.services.after_commit import services_of
from table.services.clean.service import CLEANING
from table.services.service import ServiceOutcome, Spread, TableService, Trigger
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.timeline.instant import Action

log = get_logger("hudistream.services")


class TableServices:
    """The services of one table, for one sink.

    Args:
        storage: the table's.
        options: policies.
        lock: of the table.
        run: what is done, and what it did; replaced in tests.

    Attributes:
        services: in the order in which they run.
        failures: how often one failed.
        last_error: the last failure.
        listeners: get a summary of every run, in the thread that did it; they raise nothing.
    """

    def __init__(
        self,
        storage: Storage,
        options: WriteOptions,
        lock: TableLock = NO_LOCK,
        run: Callable[[HudiTable], object] | None = None,
    ) -> None:
        self._storage, self._lock = storage, lock
        self.services: Sequence[TableService[Any]] = services_of(options)
        self._run = run or self._run_due
        self._due: Mapping[TableService[Any], Trigger] = {}
        self._plans: dict[str, Any] = {}
        self._spread: Spread | None = None
        self._policy = CleanFailure.WARN
        self._thread: threads.RunningThread | None = None
        self._stopped = self._paused = False
        self._pending_error: Exception | None = None
        self._emptied: set[str] = set()
        self.failures = 0
        self.last_error: Exception | None = None
        self.listeners: list[Callable[[UpkeepSummary], None]] = []
        self._done = UpkeepSummary("")

    def take_emptied(self) -> tuple[str, ...]:
        """Partition paths that cleans emptied since the last call: the writer removes their folders."""
        emptied, self._emptied = tuple(self._emptied), set()
        return emptied

    @property
    def is_cleaning(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def check(self) -> None:
        """Before a batch: raises what the policy ``fail`` asks for.

        Raises:
            HudiError: the services failed since the last batch.
        """
        error, self._pending_error = self._pending_error, None
        if error is not None:
            raise HudiError(
                f"cleaning or archival failed after an earlier batch: {error}; remove the cause, or set "
                "hudistream.clean.on.failure=warn; the batch can be run again"
            ) from error

    def after_commit(self, snapshot: Snapshot, spread: Spread | None = None) -> None:
        """Starts the services that are due unless some run. Called once per micro-batch, when it is visible.

        Where one of them runs before the next batch, all of them are done when this returns: each builds on those
        before it. Their failure is no more the batch's.

        Args:
            snapshot: the table as the batch found it.
            spread: has pieces of work done on other machines; None: there are none.
        """
        table, self._spread = HudiTable(self._storage, snapshot.config, self._lock), spread
        for service in self.services:
            service.advise(snapshot)
        triggers = [service.trigger(snapshot.config) for service in self.services]
        due = {s: trigger for s, trigger in zip(self.services, triggers, strict=True) if trigger is not Trigger.NOT_NOW}
        if not due or self.is_cleaning or self._stopped or self._paused:
            return
        self._due = due
        self._plans = self._plan_between_batches(table)
        if Trigger.INLINE in triggers:
            self._run_and_tell(table)
            return
        # not a daemon: the interpreter waits until a clean under way is done
        self._thread = threads.start_thread(lambda: self._run_and_tell(table), "hudistream-services")

    def _plan_between_batches(self, table: HudiTable) -> dict[str, Any]:
        """The plans that must be made while nothing is written, by the name of their service."""
        plans: dict[str, Any] = {}
        for service in self._due if self._run == self._run_due else ():
            if service.plans_between_batches:
                try:
                    plans[service.name] = service.plan(table)
                except HudiError as error:  # the batch is visible, and stays so
                    plans[service.name] = None
                    self._note_failure(error, service.on_failure)
        return plans

    def _run_due(self, table: HudiTable) -> None:
        """Each service in turn. One that fails does not keep the others from running: none needs another's success."""
        has_failed = False
        for service, trigger in self._due.items():
            if trigger is Trigger.AFTER_COMPACTION and not (self._done.compactions or has_failed):
                continue  # CompactionCommitSink cleans once it has committed; a compaction that fails keeps nothing
            self._policy = service.on_failure
            started_s, outcome = clock.monotonic_s(), ServiceOutcome()
            try:
                between = service.plans_between_batches
                plan = self._plans.pop(service.name, None) if between else service.plan(table)
                if plan is not None:
                    outcome = service.execute(table, plan, self._spread)
            except TimelineMovedError as moved:  # another archival or clean goes on: after the next commit, then
                log.debug("service_put_off", table=self._storage.base_uri, service=service.name, why=str(moved))
            except Exception as error:  # noqa: BLE001 nothing of this may reach the stream
                has_failed = True
                self._note_failure(error, service.on_failure)
                self._done = replace(self._done, error=self._done.error or repr(error))
            finally:
                self._note_outcome(service.name, outcome, clock.monotonic_s() - started_s)

    def _note_outcome(self, name: str, outcome: ServiceOutcome, seconds: float) -> None:
        self._emptied.update(outcome.emptied)
        done = self._done
        self._done = replace(
            done,
            cleans=done.cleans + outcome.cleans,
            files_deleted=done.files_deleted + outcome.files_deleted,
            files_failed=done.files_failed + outcome.files_failed,
            instants_archived=done.instants_archived + outcome.instants_archived,
            compactions=done.compactions + outcome.compactions,
            clean_seconds=seconds if name == CLEANING else done.clean_seconds,
        )

    def _run_and_tell(self, table: HudiTable) -> None:
        self._done = UpkeepSummary(self._storage.base_uri)
        self._policy = next(iter(self._due)).on_failure
        # a thread begins without the context of the one that started it
        with bound_contextvars(table=self._storage.base_uri):
            try:
                self._run(table)
            except Exception as error:  # noqa: BLE001 nothing of this may reach the stream
                self._note_failure(error, self._policy)
                self._done = replace(self._done, error=repr(error))
            for listener in self.listeners:
                listener(self._done)

    def _note_failure(self, error: Exception, policy: CleanFailure) -> None:
        self.failures += 1
        self.last_error = error
        log.warning(
            "table_services_failed",
            table=self._storage.base_uri,
            error=repr(error),
            failures=self.failures,
            then=policy.value,
        )
        self._paused |= policy is CleanFailure.PAUSE
        if policy is CleanFailure.FAIL:
            self._pending_error = error

    def after_empty_batch(self, snapshot: Snapshot, spread: Spread | None = None) -> None:
        """A batch without rows: a clean that is pending gets its turn, also where no commit follows for long.

        Args:
            snapshot: the table as the batch found it.
            spread: as of `after_commit`.
        """
        if snapshot.timeline.pending_of(Action.CLEAN):
            self.after_commit(snapshot, spread)

    def start_no_more(self) -> None:
        """Lets the services under way finish, and starts none after them."""
        self._stopped = True

    def stop(self) -> None:
        """Starts no service any more, and waits for those under way."""
        self.start_no_more()
        self.wait()

    def wait(self) -> None:
        """Waits for the services under way."""
        if self._thread is not None:
            self._thread.join()
