"""Markers: what a writer was about to write, so that a dead one's files are found again.

Written are direct markers, one empty file a data file, below ``.hoodie/.temp/<instant>``. Read are
both encodings: direct ones, and the timeline server's ``MARKERS<n>`` lists (MarkerBasedRollbackUtils).
"""

from table.files.file_names import MarkerName, parse_marker
from table.storage import METAFOLDER, Storage, join

TEMP_FOLDER = join(METAFOLDER, ".temp")
CREATE, MERGE = "CREATE", "MERGE"
_TYPE_FILE = "MARKERS.type"


def marker_folder(instant_time: str) -> str:
    """Folder of an instant's markers."""
    return join(TEMP_FOLDER, instant_time)


def create_marker(storage: Storage, instant_time: str, data_file: str, kind: str) -> None:
    """Announces a data file (path relative to the table) before it is opened."""
    storage.create_exclusive(join(marker_folder(instant_time), str(MarkerName(data_file, kind))), b"")


def marker_exists(storage: Storage, instant_time: str, data_file: str, kind: str) -> bool:
    """Whether a data file is still announced."""
    return storage.exists(join(marker_folder(instant_time), str(MarkerName(data_file, kind))))


def list_markers(storage: Storage, instant_time: str) -> list[MarkerName]:
    """Every marker of an instant, sorted; `data_file` is relative to the table."""
    folder = marker_folder(instant_time)
    top = storage.list_dir(folder)
    if any(entry.name == _TYPE_FILE for entry in top):
        names = []
        for entry in top:
            if entry.name.startswith("MARKERS") and entry.name != _TYPE_FILE:
                names += storage.read(join(folder, entry.name)).decode().split("\n")
    else:
        names = _walk(storage, folder, "")
    markers = {marker for name in names if (marker := parse_marker(name)) is not None}
    return sorted(markers, key=str)


def _walk(storage: Storage, folder: str, below: str) -> list[str]:
    names = []
    for entry in storage.list_dir(join(folder, below)):
        path = join(below, entry.name)
        names += _walk(storage, folder, path) if entry.is_dir else [path]
    return names


def delete_markers(storage: Storage, instant_time: str) -> None:
    """Removes an instant's markers; nothing happens where there are none."""
    storage.delete_dir(marker_folder(instant_time))


def list_marked_instants(storage: Storage) -> list[str]:
    """Instants that have markers, oldest first."""
    return sorted(entry.name for entry in storage.list_dir(TEMP_FOLDER) if entry.is_dir and entry.name.isdigit())
