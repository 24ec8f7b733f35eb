"""One tree of errors, grouped by what the caller does next.

========================================================  ==========================================
class                                                     what to do
========================================================  ==========================================
InvalidConfigError, TableNotFoundError, TableExistsError  fix the call
UnsupportedTableError, SchemaMismatchError,               this table or this batch cannot be written
InvalidRecordError, BatchRefusedError                     as it is
CommitConflictError: WriteConflictError,                  run the batch again
TimelineMovedError, InstantEndedError
CommitConflictError: TableHeldError                       wait for the process that it names, or stop it
CommitConflictError: ActionPendingError                   finish what is pending, as the message says
CommitConflictError: BatchOrderError                      look at the stream: its checkpoint, or its sink's id
CommitOutcomeUnknownError, StorageError                   run the batch again
TaskFailedError                                           look at what it names, then run the batch again
CorruptFileError                                          stop; the bytes are not Hudi's
LostDataError                                             put the file back, or accept the loss
BrokenInvariantError                                      a bug of ours, please report
========================================================  ==========================================

Every error survives pickling: they cross from workers to the driver.
"""


class HudiError(Exception):
    """Root of every error that this project raises on purpose.

    Attributes:
        instant_time: the commit whose task failed; None where it was no task, as with the others.
        partition_path: of the rows that the task was at; "" in a table without partitions.
        file_group: id of the file group that it was reading or writing.
    """

    instant_time: str | None = None
    partition_path: str | None = None
    file_group: str | None = None

    def __str__(self) -> str:
        """What happened, and where."""
        context = {
            "instant": self.instant_time,
            "partition path": None if self.partition_path is None else repr(self.partition_path),
            "file group": self.file_group,
        }
        where = ", ".join(f"{name} {value}" for name, value in context.items() if value is not None)
        return f"{super().__str__()} ({where})" if where else super().__str__()


class InvalidConfigError(HudiError, ValueError):
    """An option or an argument is wrong; the message names it, its value and the way out."""


class TableNotFoundError(HudiError):
    """There is no Hudi table at the path."""


class TableExistsError(HudiError):
    """There is already something at the path where a table was to be created."""


class UnsupportedTableError(HudiError):
    """The table has a property that this project cannot write (or read) without harming it."""


class SchemaMismatchError(HudiError):
    """The batch's schema and the table's cannot be reconciled, or a type is not supported."""


class InvalidRecordError(HudiError):
    """Rows of the batch cannot be written: a null key, for example. Nothing became visible."""


class BatchRefusedError(HudiError):
    """A pre-commit validator refused the batch. Nothing became visible."""


class CommitConflictError(HudiError):
    """Something of another process stands in the way; its class says what to do. Nothing became visible.

    Attributes:
        file_groups: partition path and file id of the file groups that another commit changed, too, where nothing else
            stands against the batch; else none.
    """

    file_groups: frozenset[tuple[str, str]] = frozenset()


class TableHeldError(CommitConflictError):
    """Another process holds the table, a lock of it, or a turn. Wait until it has ended, or stop it."""


class ActionPendingError(CommitConflictError):
    """A write, a service, a rollback or a restore is pending, and has to end first; the message names the way."""


class WriteConflictError(CommitConflictError):
    """Another writer changed what the batch was planned from. Run the batch again."""


class InstantEndedError(CommitConflictError):
    """Another process ended the instant: it rolled it back, withdrew it, or finished it. Run the batch again."""


class BatchOrderError(CommitConflictError):
    """The batch's number contradicts what is committed. To run it again does not help: the message names the way."""


class TimelineMovedError(WriteConflictError):
    """A file of the timeline was deleted between its listing and the look at it: what was to be decided is open.

    Retried within hudistream. It leaves the library only where the timeline changes faster than it can be read.
    """


class CommitOutcomeUnknownError(HudiError):
    """The store did not say whether the commit file was created, and could not be asked.

    The next attempt at the same batch finds out by itself and skips or writes.
    """


class StorageError(HudiError):
    """The store refused or failed; the message names the operation and the path."""


class CatalogError(HudiError):
    """A catalog did not answer or refused, or has another table of that name. The table is as it was."""


class TaskFailedError(HudiError):
    """A task of the batch failed for a reason that is none of the others. Nothing became visible."""


class CorruptFileError(HudiError):
    """A file is not what its name says it is."""


class LostDataError(HudiError):
    """A data file that a commit wrote is gone or cut short. Nothing is built on what is left; the message names it."""


class BrokenInvariantError(HudiError):
    """An internal invariant is violated: a bug of ours, please report it."""
