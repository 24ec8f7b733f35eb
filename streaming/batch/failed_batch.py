"""The value that describes a failed batch to users, and the progress of the current batch."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from table.errors import CommitOutcomeUnknownError, HudiError, InvalidRecordError, LostDataError
from table.hudi_table import HudiTable
from table.references.losses import explain_failure
from table.snapshot import Snapshot
from table.timeline.commit_cache import CommitCache
from table.timeline.metadata.commit import WriteStat, total_rows

# Spark's messages for a cancelled job, and for a thread that was interrupted while it waited for a job
_INTERRUPTED = re.compile(r"SPARK_JOB_CANCELLED|Job \d+ cancelled|part of cancelled job group|\bInterruptedException\b")


def is_interruption(error: BaseException) -> bool:
    """Whether a batch did not fail, but was cut off: its query was stopped, or its Spark job cancelled (pure).

    Args:
        error: what the batch raised.
    """
    return _INTERRUPTED.search(str(error)) is not None


@dataclass(frozen=True)
class Explainer:
    """Says what a failure comes from: a task may have met a file that is gone or cut short.

    Attributes:
        reopen: returns the table as it is now; None where there is none.
        commits: decoded commits of the table.
    """

    reopen: Callable[[], HudiTable | None]
    commits: CommitCache

    def __call__(self, error: HudiError) -> HudiError:
        """As `explain_failure`; the error itself where it cannot come from a file of the table.

        Args:
            error: what the batch raised.
        """
        is_of_task = error.partition_path is not None or isinstance(error, LostDataError)
        if not is_of_task or isinstance(error, InvalidRecordError | CommitOutcomeUnknownError):
            return error
        table = self.reopen()
        return explain_failure(Snapshot.load(table, commits=self.commits), error) if table is not None else error


@dataclass(frozen=True)
class FailedBatch:
    """A batch that failed: its rows are in no snapshot of the table, unless the outcome is unknown.

    Attributes:
        table: the table's address.
        batch_id: Spark's id, or None for a write outside a stream.
        instant_time: the commit that was begun for it, or None.
        error: the exception that the sink raises.
        outcome_unknown: whether the batch may be visible all the same. Either the store did not say whether it created
            the commit file, or the table has a commit of this number, or it could not be asked whether an earlier
            attempt had been committed. If the caller then stores the rows elsewhere, they may exist twice. The next
            attempt at the batch finds out.
    """

    table: str
    batch_id: int | None
    instant_time: str | None
    error: Exception
    outcome_unknown: bool = False


@dataclass
class BatchProgress:
    """How far a batch is. The writer notes it, and the sink reads it when the batch failed.

    Attributes:
        instant_time: the commit that was begun.
        is_new: whether it is known that no earlier attempt was committed.
        is_visible: whether its commit is complete.
        phase: what the writer is doing, for the lines of a batch that takes long: ``open`` the table, take the
            ``lease``, ``recover`` what dead writers left, ``plan``, ``write``, ``commit``, ``after`` the commit; and
            ``retry``, between two attempts.
        written: what the tasks wrote, once they are done: rows, updated rows and files.
        deletes_unmatched: deletes whose key the tasks did not find.
    """

    instant_time: str | None = None
    is_new: bool = False
    is_visible: bool = False
    phase: str = "open"
    written: Mapping[str, int] = field(default_factory=dict)
    deletes_unmatched: int = 0

    def reset(self) -> None:
        """Begins another batch."""
        self.instant_time, self.is_new, self.is_visible = None, False, False
        self.phase, self.written, self.deletes_unmatched = "open", {}, 0

    def note_written(self, stats: Sequence[WriteStat], deletes_unmatched: int = 0) -> None:
        """Notes that the tasks are done and that the commit follows.

        Args:
            stats: write stats of the files that the tasks wrote.
            deletes_unmatched: deletes whose key they did not find.
        """
        self.deletes_unmatched = deletes_unmatched
        updated = sum(stat.num_update_writes for stat in stats)
        self.written = {"rows": total_rows(stats), "updated": updated, "files": len(stats)}
        self.phase = "commit"

    def failed(self, table: str, batch_id: int | None, error: Exception) -> FailedBatch | None:
        """The `FailedBatch` for a batch that raised this error; None if the batch is visible."""
        if self.is_visible:
            return None
        may_be_there = batch_id is not None and not self.is_new
        unknown = may_be_there or isinstance(error, CommitOutcomeUnknownError)
        return FailedBatch(table, batch_id, self.instant_time, error, unknown)
