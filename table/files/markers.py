"""Markers announce the files that a writer is about to write, so that a dead writer's files can be found.

CREATE announces a new file, MERGE the next version of a base file, APPEND a log file of timeline layout 1. In layout 2
a log file belongs to one instant, and is announced as CREATE (WriteMarkers.createLogMarkerIfNotExists).

This module writes direct markers, one file per data file, below ``.hoodie/.temp/<instant>``. It reads both
encodings: direct markers, and the timeline server's ``MARKERS<n>`` lists (MarkerBasedRollbackUtils).
"""

from collections.abc import Sequence

from table import threads
from table.files.log.instants import is_written_by
from table.files.names import MarkerName, parse_marker
from table.storage.interface import METAFOLDER, Storage, join

TEMP_FOLDER = join(METAFOLDER, ".temp")
CREATE, MERGE, APPEND = "CREATE", "MERGE", "APPEND"
_TYPE_FILE = "MARKERS.type"


def marker_folder(instant_time: str) -> str:
    """Folder of an instant's markers."""
    return join(TEMP_FOLDER, instant_time)


def marker_path(instant_time: str, marker: MarkerName) -> str:
    """Path of a direct marker, relative to the table."""
    return join(marker_folder(instant_time), str(marker))


def create_marker(storage: Storage, instant_time: str, marker: MarkerName, ticket: str = "") -> None:
    """Announces a data file (path relative to the table) before it can be published.

    Args:
        instant_time: instant time of the commit.
        marker: the file, and the kind of write.
        ticket: the store's name for the waiting file (`table.storage.interface.Stage`).
    """
    path, data = marker_path(instant_time, marker), ticket.encode()
    if not storage.create_exclusive(path, data) and data:
        storage.put(path, data)  # a second attempt at the same file has another ticket


def is_of_instant_alone(storage: Storage, instant_time: str, marker: MarkerName) -> bool:
    """Whether only this instant wrote the file; a log file that it appended to may hold other instants' blocks."""
    return marker.kind != APPEND or is_written_by(storage, marker.data_file, instant_time)


def delete_marker(storage: Storage, instant_time: str, marker: MarkerName) -> None:
    """Removes one direct marker."""
    storage.delete_metafile(marker_path(instant_time, marker))


def delete_some_markers(storage: Storage, instant_time: str, markers: Sequence[MarkerName]) -> None:
    """Removes direct markers, side by side where the store answers requests over a network."""
    if storage.calls_at_once == 1 or len(markers) < 2:
        for marker in markers:
            delete_marker(storage, instant_time, marker)
        return
    with threads.make_pool(min(storage.calls_at_once, len(markers)), "hudistream-markers") as pool:
        for _ in pool.map(lambda marker: delete_marker(storage, instant_time, marker), markers):
            pass  # evaluating the results raises the first error


def list_markers(storage: Storage, instant_time: str) -> list[MarkerName]:
    """Every marker of an instant, sorted; `data_file` is relative to the table."""
    names = list_marker_names(storage, instant_time)
    return sorted({marker for name in names if (marker := parse_marker(name)) is not None}, key=str)


def list_marker_names(storage: Storage, instant_time: str) -> list[str]:
    """The names of all files in an instant's marker folder, parsable or not."""
    folder = marker_folder(instant_time)
    names = list(storage.list_tree(folder))
    if _TYPE_FILE in names:
        lists = [name for name in names if name.startswith("MARKERS") and name != _TYPE_FILE]
        names = [line for name in lists for line in storage.read(join(folder, name)).decode().split("\n") if line]
    return names


def delete_markers(storage: Storage, instant_time: str) -> None:
    """Removes all markers of an instant."""
    storage.delete_metafolder(marker_folder(instant_time))


def list_marked_instants(storage: Storage) -> list[str]:
    """Instants that have markers, oldest first."""
    return sorted(entry.name for entry in storage.list_dir(TEMP_FOLDER) if entry.is_dir and entry.name.isdigit())
