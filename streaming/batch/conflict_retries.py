"""Whether a batch that met a conflict is written again, and what it waits for first."""

from collections.abc import Callable
from typing import TypeVar

from streaming.batch.failed_batch import BatchProgress
from streaming.batch.services import TableServices
from streaming.batch.workers import Batch
from table import clock
from table.errors import CommitConflictError, HudiError, TaskFailedError, TimelineMovedError
from table.log import get_logger
from table.options.write_groups import ConcurrencySettings
from table.transaction.lease import Lease

_PAUSE_S = 0.1  # for the other writer to get on

Answer = TypeVar("Answer")

log = get_logger("hudistream.sink")


class ConflictRetries:
    """The retries of one batch.

    Args:
        table: the table's address.
        batch: the batch.
        lease: the writer's hold on the table.
        services: of the writer.
        concurrency: how often a conflict is retried, and whether other writers write the table.
    """

    def __init__(
        self, table: str, batch: Batch, lease: Lease, services: TableServices, concurrency: ConcurrencySettings
    ) -> None:
        self._table, self._batch, self._lease, self._services = table, batch, lease, services
        self._left, self._is_shared = concurrency.retries, concurrency.is_shared
        self._has_waited = False

    def run(
        self, attempt: Callable[[], Answer], explain: Callable[[HudiError], HudiError], progress: BatchProgress
    ) -> Answer:
        """Writes the batch, as often as it is to be written again.

        Args:
            attempt: writes it once.
            explain: says what a failure comes from.
            progress: how far the batch is.

        Raises:
            HudiError: of the last attempt, explained.
        """
        while True:
            try:
                return attempt()
            except HudiError as failed:
                error = explain(failed)
                progress.phase = "retry"
                try:
                    if not self.wait(error, is_new=progress.is_new):
                        raise error
                finally:
                    del error  # its traceback holds this frame, and the frame the writer with its lease

    def wait(self, error: HudiError, *, is_new: bool) -> bool:
        """Waits until the batch can be written again. False: it cannot be.

        A batch waits once for a clustering of its own sink. The text of a task's error may be lost on its way, so any
        failure of a task is taken for the conflict with it. With several writers it gives another writer time, and asks
        for a turn. The move of a timeline is retried by a single writer, too: archival runs beside it.

        Args:
            error: why the batch was not committed.
            is_new: whether it is known that the batch was not committed before.
        """
        if not isinstance(error, CommitConflictError | TaskFailedError):
            return False
        has_met = not self._has_waited and self._services.end_clustering()
        if not self._batch.workers.can_repeat:
            return False
        if has_met and self._lease.is_held:
            self._has_waited = True
            self._tell("batch_waited_for_clustering", error)
            return True
        # the lease may be lost
        shares = self._is_shared and is_new and isinstance(error, CommitConflictError)
        if not (self._left and (shares or isinstance(error, TimelineMovedError))):
            return False
        self._left -= 1
        self._tell("batch_meets_conflict", error)
        self._lease.ask_for_turn()
        clock.sleep_s(_PAUSE_S * (1 + clock.jitter()))
        return True

    def _tell(self, event: str, error: HudiError) -> None:
        log.info(event, table=self._table, batch_id=self._batch.batch_id, why=str(error))
