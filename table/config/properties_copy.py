"""The copy of ``hoodie.properties`` that writers keep, for a table that loses the file and Hudi's backup of it.

::

    .hoodie/.hudistream/hoodie.properties   the properties as a batch saw them last
"""

from collections.abc import Mapping

from table import clock
from table.config.properties import format_properties, parse_properties
from table.config.table_config import PROPERTIES_FILE, find_fault
from table.errors import CorruptFileError
from table.storage.interface import OWN_FOLDER, Storage, join

COPY_FILE = join(OWN_FOLDER, "hoodie.properties")
# no writer removes these but in an upgrade or downgrade: a file without them was cut
_LASTING = (
    "hoodie.table.type", "hoodie.table.recordkey.fields", "hoodie.table.partition.fields",
    "hoodie.table.precombine.field", "hoodie.table.ordering.fields", "hoodie.table.keygenerator.class",
    "hoodie.table.keygenerator.type", "hoodie.populate.meta.fields", "hoodie.table.base.file.format",
    "hoodie.table.cdc.enabled", "hoodie.record.merge.mode", "hoodie.table.timeline.timezone", "hoodie.timeline.path",
    "hoodie.timeline.history.path", "hoodie.archivelog.folder",
    "hoodie.datasource.write.hive_style_partitioning", "hoodie.datasource.write.partitionpath.urlencode",
    "hoodie.datasource.write.drop.partition.columns",
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
            f"{PROPERTIES_FILE} of {storage.base_uri!r} has lost {lost}={(known or {})[lost]}, which {COPY_FILE} "
            "has as a batch saw it last: put that file in its place; if the key was removed on purpose, delete it"
        )
    if known != properties:
        storage.put(COPY_FILE, format_properties(properties, clock.now_ms(), "Copied at"))
    return dict(properties)


def _find_lost(known: Mapping[str, str], properties: Mapping[str, str]) -> str | None:
    """A lasting key that is gone from the properties of one table version (pure)."""
    if known.get("hoodie.table.version") != properties.get("hoodie.table.version"):
        return None
    return next((key for key in _LASTING if known.get(key) and not properties.get(key)), None)


def read_whole(storage: Storage, path: str) -> dict[str, str] | None:
    """The properties in a file; None where it does not exist, or is damaged."""
    try:
        data = storage.read(path)
    except FileNotFoundError:
        return None
    return parse_properties(data) if find_fault(data) is None else None
