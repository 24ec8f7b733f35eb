"""Announces a data file before it can be published, and checks that the instant is still open."""

from table.errors import StorageError
from table.files.markers import create_marker
from table.files.names import MarkerName
from table.files.publication import confirm_published
from table.storage.interface import Stage
from table.write.context import WriteContext


def announce(context: WriteContext, marker: MarkerName, stage: Stage | None = None) -> Stage:
    """Announces a file before it is opened. Returns the place where the file waits until it is published.

    Args:
        marker: the file, and the kind of write.
        stage: the place, where the caller has chosen it; nothing was written there.

    Raises:
        StorageError: the instant has ended; a late task must not write the file.
    """
    stage = stage or context.storage.stage(context.instant_time, marker.data_file)
    try:
        create_marker(context.storage, context.instant_time, marker, stage.ticket)
        check_not_ended(context, marker.data_file)
    except BaseException:
        context.storage.revoke(marker.data_file, stage.ticket)
        raise
    return stage


def check_not_ended(context: WriteContext, path: str) -> None:
    """Checks that the instant is still open (rule 4). The file's marker must exist before this call.

    In a store without a fence the task checks again before and after it publishes (`table.files.publication`).

    Raises:
        StorageError: the instant has ended.
    """
    if not context.storage.is_open(context.instant_time):
        raise StorageError(f"instant {context.instant_time} was ended while {path} was being written")


def check_still_wanted(context: WriteContext, path: str) -> None:
    """Checks again after the file was published, if the store requires it (`confirm_published`).

    Raises:
        StorageError: the instant has ended; the file is deleted.
    """
    confirm_published(context.storage, path, lambda: check_not_ended(context, path))
