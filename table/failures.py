"""Where a task failed travels with its error: the instant, the partition path, the file group."""

from collections.abc import Iterator
from contextlib import contextmanager

from table.errors import HudiError, TaskFailedError, WriteConflictError


@contextmanager
def failing_at(
    *, instant_time: str | None = None, partition_path: str | None = None, file_group: str | None = None
) -> Iterator[None]:
    """Errors that pass through say where they happened.

    An error of hudistream keeps its class and what an inner block attached already. A file that does not exist any more
    becomes a `WriteConflictError`: the batch was planned from it, and is to be planned anew. Any other error becomes a
    `TaskFailedError` with the original as its cause.

    Args:
        instant_time: the commit's.
        partition_path: the one at work.
        file_group: id of the one at work; goes with its own partition path.

    Raises:
        HudiError: instead of whatever the block raises.
    """
    try:
        yield
    except HudiError as error:
        _tell(error, instant_time, partition_path, file_group)
        raise
    except Exception as error:
        failed = _translate(error)
        _tell(failed, instant_time, partition_path, file_group)
        raise failed from error


def _translate(error: Exception) -> HudiError:
    if isinstance(error, FileNotFoundError):
        return WriteConflictError(
            f"a file that the batch was planned from does not exist any more ({describe(error)}): another writer "
            "replaced it, and a clean deleted it; the batch is not visible and can be run again"
        )
    return TaskFailedError(describe(error))


def describe(error: BaseException) -> str:
    """One line for an error that is not ours: its class, and what it says."""
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _tell(error: HudiError, instant_time: str | None, partition_path: str | None, file_group: str | None) -> None:
    error.instant_time = instant_time if error.instant_time is None else error.instant_time
    # an outer file group or path may be another one's: the inner word counts
    if error.file_group is None and error.partition_path in (None, partition_path):
        error.file_group = file_group
    error.partition_path = partition_path if error.partition_path is None else error.partition_path
