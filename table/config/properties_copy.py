"""The copy of ``hoodie.properties`` that writers keep, for a table that loses the file and Hudi's backup of it.

::

    .hoodie/.hudistream/hoodie.properties   the properties as a batch saw them last
"""

from collections.abc import Mapping

from table import clock
from table.config.properties import format_properties
from table.config.table_config import PROPERTIES_FILE, config_from_properties, whole_properties
from table.errors import CorruptFileError
from table.storage.interface import OWN_FOLDER, Storage, join

COPY_FILE = join(OWN_FOLDER, "hoodie.properties")
# a file that says otherwise because keys are gone was cut: no writer takes these from a table but a conversion
_LASTING = (
    "table_type", "record_key_fields", "partition_fields", "ordering_fields", "keygen_type", "hive_style", "url_encode",
    "timezone", "timeline_folder", "archive_folder", "base_file_format", "populate_meta_fields",
    "drop_partition_columns", "change_images",
)  # fmt: skip


def keep_copy(storage: Storage, properties: Mapping[str, str], known: Mapping[str, str] | None) -> Mapping[str, str]:
    """Renews the copy if the properties are not those that the caller saw last.

    Args:
        storage: the table's.
        properties: as they are now.
        known: as this function returned them last; None at first: then the copy is read.

    Returns:
        The properties that the copy holds now.

    Raises:
        CorruptFileError: the properties have lost a key that the copy has, and that stays for a table's life.
        StorageError: the store fails.
    """
    if known is None:
        known = read_whole(storage, COPY_FILE)
    lost = _find_lost(known or {}, properties)
    if lost is not None:
        raise CorruptFileError(
            f"{PROPERTIES_FILE} of {storage.base_uri!r} has lost {lost}, which {COPY_FILE} has as a batch saw it last: "
            "put that file in its place; if the key was removed on purpose, delete it"
        )
    if known != properties:
        storage.put(COPY_FILE, format_properties(properties, clock.now_ms(), "Copied at"))
    return dict(properties)


def _find_lost(known: Mapping[str, str], properties: Mapping[str, str]) -> str | None:
    """What the properties of a table have lost, as KEY=VALUE of the properties that were known; None: nothing (pure).

    Writers spell some keys anew, and leave out others that have their defaults. So keys that are gone count where the
    table would be another one without them.
    """
    if not known or known.get("hoodie.table.version") != properties.get("hoodie.table.version"):
        return None
    gone = {key: value for key, value in known.items() if value and not properties.get(key)}
    lost = [key for key, value in gone.items() if _lasting({**properties, key: value}) != _lasting(properties)]
    return ", ".join(f"{key}={gone[key]}" for key in sorted(lost)) or None


def _lasting(properties: Mapping[str, str]) -> tuple[object, ...]:
    config = config_from_properties(properties)
    return tuple(getattr(config, name) for name in _LASTING)


def read_whole(storage: Storage, path: str) -> dict[str, str] | None:
    """The properties in a file; None where it does not exist, or is damaged."""
    try:
        return whole_properties(storage.read(path))
    except (FileNotFoundError, CorruptFileError):
        return None
