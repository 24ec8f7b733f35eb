"""A data file is announced before anything of it can be published, and then its task looks whether that is wanted."""

from table.errors import StorageError
from table.files.markers import create_marker
from table.files.names import MarkerName
from table.files.publication import confirm_published
from table.storage.interface import Stage
from table.write.context import WriteContext


def announce(context: WriteContext, marker: MarkerName) -> Stage:
    """Announces a file, before it is opened. Returns where it waits until it is published.

    Args:
        context: the commit's.
        marker: the file, and what kind of write it is.

    Raises:
        StorageError: the instant has ended; a task that comes late must not begin.
    """
    stage = context.storage.stage(context.instant_time, marker.data_file)
    create_marker(context.storage, context.instant_time, marker, stage.ticket)
    try:
        check_not_ended(context, marker.data_file)
    except BaseException:
        context.storage.revoke(marker.data_file, stage.ticket)
        raise
    return stage


def check_not_ended(context: WriteContext, path: str) -> None:
    """Looks whether the instant is still open (rule 4), after its marker is there.

    Where the store has no fence, the task looks again before and after it publishes (`table.files.publication`).

    Raises:
        StorageError: the instant has ended.
    """
    if not context.storage.is_open(context.instant_time):
        raise StorageError(f"instant {context.instant_time} was ended while {path} was being written")


def check_still_wanted(context: WriteContext, path: str) -> None:
    """Looks once more, after the file was published, where the store needs it (`confirm_published`).

    Raises:
        StorageError: the instant has ended; the file is deleted.
    """
    confirm_published(context.storage, path, lambda: check_not_ended(context, path))
