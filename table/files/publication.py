"""Publishes data files, and deals with late tasks when an instant ends (rules 4 and 5).

In a store with a fence no task can publish a file once its instant has ended. The process that ends the instant reads
the markers once, and deletes them. In a store without a fence a late task may publish a file at any time. So the task
checks, before and after it publishes, that its instant has not ended. The process that ends the instant reads the
markers twice. Markers of files that no commit names stay as long as a task may run. Only this module distinguishes
stores with and without a fence.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress

from table import clock
from table.errors import StorageError
from table.files.markers import (
    delete_marker,
    delete_markers,
    delete_some_markers,
    is_of_instant_alone,
    list_markers,
    marker_path,
)
from table.files.names import MarkerName
from table.storage.interface import OutputFile, Stage, Storage

LONGEST_TASK_MS = 24 * 3_600_000
"""We assume that no task runs longer than a day."""


def publish(storage: Storage, path: str, stage: Stage, output: OutputFile, look: Callable[[], None]) -> None:
    """Closes a file that was announced, and publishes it.

    Args:
        path: path of the file, relative to the table.
        stage: the place where the file waits.
        output: the open file.
        look: raises a StorageError if the instant has ended.

    Raises:
        StorageError: the instant has ended, or the store fails: the file is not published.
    """
    if not storage.has_fence:
        look()
    output.close()
    storage.publish(path, stage, output)


def confirm_published(storage: Storage, path: str, look: Callable[[], None]) -> None:
    """Checks after publication that the instant has not ended.

    Without a fence, the process that ended the instant may have searched for the file before the task published it.

    Args:
        path: path of the file.
        look: raises a StorageError if the instant has ended.

    Raises:
        StorageError: the instant has ended; the file is deleted.
    """
    if storage.has_fence:
        return
    try:
        look()
    except StorageError:
        storage.delete(path)
        raise


def discard(storage: Storage, path: str, stage: Stage | None, output: OutputFile) -> None:
    """Closes a file after a failure. Without a fence this may publish it; the rollback then finds it by its marker.

    Raises:
        StorageError, OSError: the store fails.
    """
    if storage.has_fence and stage is not None:
        storage.discard(path, stage, output)
    output.close()


def may_publish_late(storage: Storage, instant_time: str, zone: str) -> bool:
    """Whether a task of an instant that has ended may still publish a file.

    Args:
        instant_time: time of the instant.
        zone: time zone of the table.
    """
    return not storage.has_fence and clock.now_ms() - clock.parse_instant_time(instant_time, zone) <= LONGEST_TASK_MS


def is_final(storage: Storage) -> bool:
    """Whether no file of an instant can appear after the instant's end."""
    return storage.has_fence


def delete_announced(storage: Storage, instant_time: str, marker: MarkerName) -> bool:
    """Deletes the file that a marker announces. If the file still waits, it can no longer be published.

    A log file that also holds blocks of another instant stays: older writers append to log files.

    Returns:
        Whether there was a file to delete.
    """
    if storage.has_fence:
        with suppress(FileNotFoundError):  # the marker is in another engine's marker list
            storage.revoke(marker.data_file, storage.read(marker_path(instant_time, marker)).decode())
    return is_of_instant_alone(storage, instant_time, marker) and storage.delete(marker.data_file)


def walk_markers(storage: Storage, instant_time: str) -> Iterator[MarkerName]:
    """The markers of an instant that ends. A marker may come twice.

    Without a fence the markers are listed twice: a task may announce a file between the two listings.
    """
    for _ in range(1 if storage.has_fence else 2):
        yield from list_markers(storage, instant_time)


def forget_stray(storage: Storage, instant_time: str, marker: MarkerName) -> None:
    """Removes the marker of a file that the commit does not name, unless a late task may still publish the file."""
    if storage.has_fence:
        delete_marker(storage, instant_time, marker)


def forget_committed(storage: Storage, instant_time: str, named: frozenset[str]) -> None:
    """Removes the markers of a completed commit.

    Without a fence the markers of files that the commit does not name stay: a late task may still publish them.

    Args:
        instant_time: time of the commit.
        named: paths of the files that the commit names.
    """
    if storage.has_fence:
        delete_markers(storage, instant_time)
        return
    markers = list_markers(storage, instant_time)
    delete_some_markers(storage, instant_time, [marker for marker in markers if marker.data_file in named])


def forget_rolled_back(storage: Storage, instant_time: str) -> None:
    """Removes the markers of an instant that was rolled back, unless a late task may still publish a file."""
    if storage.has_fence:
        delete_markers(storage, instant_time)


def forget_ended(storage: Storage, instant_time: str, zone: str) -> None:
    """Removes the markers of an instant that has ended, once none of its tasks can still run.

    Args:
        instant_time: time of the instant.
        zone: time zone of the table.
    """
    if not may_publish_late(storage, instant_time, zone):
        delete_markers(storage, instant_time)
