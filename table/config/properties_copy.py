"""The copy of ``hoodie.properties`` that writers keep, for a table that loses the file and Hudi's backup of it.

::

    .hoodie/.hudistream/hoodie.properties   the properties as a batch saw them last
"""

from collections.abc import Mapping

from table import clock
from table.config.properties import format_properties, parse_properties
from table.config.table_config import is_valid
from table.errors import CorruptFileError
from table.storage.interface import OWN_FOLDER, Storage, join

COPY_FILE = join(OWN_FOLDER, "hoodie.properties")


def keep_copy(storage: Storage, properties: Mapping[str, str], known: Mapping[str, str] | None) -> Mapping[str, str]:
    """Renews the copy if the properties are not those that the caller saw last.

    Args:
        storage: the table's.
        properties: as they are now.
        known: as this function returned them last; None at first: then the copy is read.

    Returns:
        The properties that the copy holds now.

    Raises:
        StorageError: the store fails.
    """
    if known is None:
        known = read_whole(storage, COPY_FILE)
    if known != properties:
        storage.put(COPY_FILE, format_properties(properties, clock.now_ms(), "Copied at"))
    return dict(properties)


def read_whole(storage: Storage, path: str) -> dict[str, str] | None:
    """The properties in a file; None where it does not exist, or is damaged."""
    try:
        found = parse_properties(storage.read(path))
    except (FileNotFoundError, CorruptFileError):
        return None
    return found if is_valid(found) else None
