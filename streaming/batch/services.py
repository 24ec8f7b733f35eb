"""Runs the services that are due after a commit, in one background thread unless one of them must run inline.

As in Flink's CleanFunction, the services are started after a commit unless they still run. If they fail, the batch
does not fail: it is visible by then.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from structlog.contextvars import bound_contextvars

from streaming.batch.service_run import RunSlot, ServiceRun
from streaming.batch.upkeep_summary import UpkeepSummary
from table import threads
from table.errors import HudiError
from table.hudi_table import HudiTable
from table.lock import NO_LOCK, TableLock
from table.log import get_logger
from table.options.choices import CleanFailure
from table.options.write_options import WriteOptions
from table.services.after_commit import services_of
from table.services.clustering.service import CLUSTERING
from table.services.service import Spread, TableService, Trigger
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.timeline.instant import Action
from table.transaction.lease import Lease

log = get_logger("hudistream.services")


class Failures:
    """Failures of services, and what they lead to."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._pending: Exception | None = None
        self.count = 0
        self.last: Exception | None = None
        self.pauses = False

    def note(self, error: Exception, policy: CleanFailure) -> None:
        """Notes a failure of a service with such a policy."""
        self.count += 1
        self.last = error
        log.warning(
            "table_services_failed", table=self._table, error=repr(error), failures=self.count, then=policy.value
        )
        self.pauses |= policy is CleanFailure.PAUSE
        if policy is CleanFailure.FAIL:
            self._pending = error

    def check(self) -> None:
        """Raises the failure of a service whose policy is ``fail``, once.

        Raises:
            HudiError: the services failed since the last batch.
        """
        error, self._pending = self._pending, None
        if error is not None:
            raise HudiError(
                f"cleaning or archival failed after an earlier batch: {error}; remove the cause, or set "
                "hudistream.clean.on.failure=warn; the batch can be run again"
            ) from error


class TableServices:
    """The services of one table, for one sink.

    Args:
        options: the policies of the services.
        lock: the table's lock.
        lease: the sink's hold on the table; without it, the table is not clustered in the background.

    Attributes:
        services: in the order in which they run.
        gate: lets a run in; None: it runs at once. Services of several tables share one.
        listeners: called with a summary of every run, in the thread that ran it. They must not raise.
    """

    def __init__(
        self,
        storage: Storage,
        options: WriteOptions,
        lock: TableLock = NO_LOCK,
        lease: Lease | None = None,
    ) -> None:
        self._storage, self._lock = storage, lock
        self._lease = lease
        self.services: Sequence[TableService[Any]] = services_of(options, lease)
        self._thread: threads.RunningThread | None = None
        self._slot, self._failures = RunSlot(), Failures(storage.base_uri)
        self._stopped = False
        self._is_clustering = False  # or was, since the last commit
        self._emptied: set[str] = set()
        self.gate: threads.Gate | None = None
        self.listeners: list[Callable[[UpkeepSummary], None]] = []

    def take_emptied(self) -> tuple[str, ...]:
        """Partition paths that cleans emptied since the last call: the writer removes their folders."""
        emptied, self._emptied = tuple(self._emptied), set()
        return emptied

    @property
    def failures(self) -> int:
        """How often a service failed."""
        return self._failures.count

    @property
    def last_error(self) -> Exception | None:
        """The error of the last failure."""
        return self._failures.last

    @property
    def is_cleaning(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def check(self) -> None:
        """Before a batch, raises the pending error if the policy is ``fail``.

        Raises:
            HudiError: the services failed since the last batch.
        """
        self._failures.check()

    def after_commit(self, snapshot: Snapshot, spread: Spread | None = None) -> None:
        """Starts the services that are due, unless services still run. Called once per batch, when it is visible.

        If services still run, those that follow commits run once more after them.

        If one of them must run before the next batch, all of them are done when this returns, because each builds on
        the services before it. Their failure does not fail the batch.

        Args:
            snapshot: the table as the batch found it.
            spread: distributes work to other machines; None: there are none.
        """
        for service in self.services:
            service.note_commit(snapshot)
        triggers = {service: service.trigger(snapshot.config) for service in self.services}
        due = {service: trigger for service, trigger in triggers.items() if trigger is not Trigger.NOT_NOW}
        if not due or self._stopped or self._failures.pauses:
            return
        run = ServiceRun(HudiTable(self._storage, snapshot.config, self._lock), due, spread=spread)
        if not self._slot.take(run):
            return
        try:
            self._start(run.planned(self._failures.note))
        except BaseException:
            self._slot.free()
            raise

    def _start(self, run: ServiceRun) -> None:
        # beside other writers a clustering gives way, and no batch waits for it
        is_alone = self._lease is not None and not self._lease.is_shared
        self._is_clustering = is_alone and run.plans.get(CLUSTERING) is not None
        if run.is_inline:
            self._carry_out_all(run)
        else:  # not a daemon: the interpreter waits until a running clean is done
            self._thread = threads.start_thread(lambda: self._carry_out(run), "hudistream-services")

    def _carry_out(self, run: ServiceRun) -> None:
        try:
            self._carry_out_all(run)
        except BaseException:  # else the slot was handed over, and the next run may have begun
            self._slot.free()
            raise

    def _carry_out_all(self, run: ServiceRun) -> None:
        # a thread does not inherit the logging context of the thread that started it
        with bound_contextvars(table=self._storage.base_uri), self.gate or nullcontext():
            following: ServiceRun | None = run
            while following is not None:
                done, emptied = following.carry_out(self._failures.note)
                self._emptied.update(emptied)
                for listener in self.listeners:
                    listener(done)
                following = self._slot.next_run()

    def after_empty_batch(self, snapshot: Snapshot, spread: Spread | None = None) -> None:
        """After a batch without rows, runs the services if a clean is pending: the next commit may be far away.

        Args:
            snapshot: the table as the batch found it.
            spread: as in `after_commit`.
        """
        if snapshot.timeline.pending_of(Action.CLEAN):
            self.after_commit(snapshot, spread)

    @property
    def is_clustering(self) -> bool:
        """Whether the thread carries a clustering out, or will do so."""
        return self._is_clustering and self.is_cleaning

    def end_clustering(self) -> bool:
        """Waits for the clustering that the thread carries out. Calls no store.

        Returns:
            Whether there was one since the last commit. It may have ended since a batch met it.
        """
        was_clustering, self._is_clustering = self._is_clustering, False
        if was_clustering:
            self.wait()
        return was_clustering

    def start_no_more(self) -> None:
        """Lets running services finish, and starts no more."""
        self._stopped = True

    def stop(self) -> None:
        """Starts no more services, and waits for those that run."""
        self.start_no_more()
        self.wait()

    def wait(self) -> None:
        """Waits for the services that run."""
        if self._thread is not None:
            self._thread.join()
