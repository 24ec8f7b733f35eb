"""How a data file becomes visible, and what an end has to do about tasks that come late (rules 4 and 5).

With a fence no task can publish a file once its instant has ended. Then one look at the markers is enough, and the
markers go with the instant. Without a fence a task that runs late may publish a file at any time. Then the task looks
again before and after it publishes, an end looks at the markers twice, and markers of files that no commit names stay
as long as a task may run. No other module asks which of the two a store is.
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
"""Tasks that live longer than a day are not reckoned with."""


def publish(storage: Storage, path: str, stage: Stage, output: OutputFile, look: Callable[[], None]) -> None:
    """Closes a file that was announced, and publishes it.

    Args:
        path: of the file, relative to the table.
        stage: where it waits.
        output: open.
        look: raises a StorageError where the instant has ended.

    Raises:
        StorageError: the instant has ended, or the store fails: the file is not published.
    """
    if not storage.has_fence:
        look()
    output.close()
    storage.publish(path, stage, output)


def confirm_published(storage: Storage, path: str, look: Callable[[], None]) -> None:
    """After a file was published: without a fence, the end of its instant may have looked for it too early.

    Args:
        path: of the file.
        look: raises a StorageError where the instant has ended.

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
    """Closes a file after a failure. Without a fence it may have been published: the rollback finds it by its marker.

    Raises:
        StorageError, OSError: the store fails.
    """
    if storage.has_fence and stage is not None:
        storage.discard(path, stage, output)
    output.close()


def may_publish_late(storage: Storage, instant_time: str, zone: str) -> bool:
    """Whether a task of an instant that has ended may yet publish a file.

    Args:
        instant_time: the instant's.
        zone: the table's.
    """
    return not storage.has_fence and clock.now_ms() - clock.parse_instant_time(instant_time, zone) <= LONGEST_TASK_MS


def is_final(storage: Storage) -> bool:
    """Whether no file of an instant appears once its end was carried out."""
    return storage.has_fence


def delete_announced(storage: Storage, instant_time: str, marker: MarkerName) -> bool:
    """Deletes the file that a marker announces, and keeps one that waits from being published.

    A log file that another instant wrote into, too, stays: older writers append to log files.

    Returns:
        Whether there was such a file.
    """
    if storage.has_fence:
        with suppress(FileNotFoundError):  # one of a marker list of another engine
            storage.revoke(marker.data_file, storage.read(marker_path(instant_time, marker)).decode())
    return is_of_instant_alone(storage, instant_time, marker) and storage.delete(marker.data_file)


def walk_markers(storage: Storage, instant_time: str) -> Iterator[MarkerName]:
    """The markers of an instant that ends. Without a fence it looks twice: a task may have announced a file between.

    A marker may come twice.
    """
    for _ in range(1 if storage.has_fence else 2):
        yield from list_markers(storage, instant_time)


def forget_stray(storage: Storage, instant_time: str, marker: MarkerName) -> None:
    """Removes the marker of a file that its commit does not name, unless a late task may yet publish the file."""
    if storage.has_fence:
        delete_marker(storage, instant_time, marker)


def forget_committed(storage: Storage, instant_time: str, named: frozenset[str]) -> None:
    """Removes the markers of a completed commit; those of other files stay as long as a late task may publish them.

    Args:
        instant_time: the commit's.
        named: paths of the files that it names.
    """
    if storage.has_fence:
        delete_markers(storage, instant_time)
        return
    markers = list_markers(storage, instant_time)
    delete_some_markers(storage, instant_time, [marker for marker in markers if marker.data_file in named])


def forget_rolled_back(storage: Storage, instant_time: str) -> None:
    """Removes the markers of an instant that was rolled back, unless a late task may yet publish a file."""
    if storage.has_fence:
        delete_markers(storage, instant_time)


def forget_ended(storage: Storage, instant_time: str, zone: str) -> None:
    """Removes the markers of an instant that ended at some time, once no task of it can run any more.

    Args:
        instant_time: the instant's.
        zone: the table's.
    """
    if not may_publish_late(storage, instant_time, zone):
        delete_markers(storage, instant_time)
