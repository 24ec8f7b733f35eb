"""Makes ``hoodie.properties`` again, from Hudi's own backup or from the copy of this project's writers.

A source may be older than the file that was lost. So it is refused where the timeline, the metadata table or the newest
commit say another version, and the keys that may have changed since are listed.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from table import clock
from table.config.held_change import MARK
from table.config.properties import format_properties
from table.config.properties_copy import COPY_FILE, read_whole
from table.config.table_config import BACKUP_FILE, PROPERTIES_FILE, TableConfig, config_from_properties
from table.errors import CorruptFileError, InvalidConfigError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.metadata_table.metadata_table import METADATA_FOLDER
from table.services.check.finding import Finding, Kind, Repair, Severity
from table.storage.interface import METAFOLDER, Storage, join
from table.timeline.active_timeline import find_instant
from table.timeline.instant import REQUEST_TIME_NAMES, CompletionTimeNames
from table.timeline.metadata.avro_commit import is_avro

_SOURCES = (BACKUP_FILE, COPY_FILE)
_PARTITIONS = "hoodie.table.metadata.partitions"
# keys that writers change in the life of a table
_CHANGED_LATER = (
    "hoodie.table.version",
    "hoodie.timeline.layout.version",
    _PARTITIONS,
    f"{_PARTITIONS}.inflight",
    "hoodie.table.precombine.field",
    "hoodie.table.ordering.fields",
    "hoodie.record.merge.mode",
    "hoodie.table.cdc.enabled",
    "hoodie.table.create.schema",
    "hoodie.database.name",
)

log = get_logger("hudistream.check")


@dataclass(frozen=True)
class Evidence:
    """What a table shows of its version.

    Attributes:
        has_layout_1: whether ``.hoodie`` holds instants.
        has_layout_2: whether the timeline's folder below it does.
        metadata_version: ``hoodie.table.version`` of the metadata table; "" where there is none.
        is_avro: whether the newest commit is Avro, as in layout 2; None where it does not say.
    """

    has_layout_1: bool
    has_layout_2: bool
    metadata_version: str = ""
    is_avro: bool | None = None


def find_contradiction(config: TableConfig, seen: Evidence) -> str:
    """Why properties cannot be those of a table; "" where nothing speaks against them (pure).

    Args:
        config: the properties of the source.
        seen: what the table shows.
    """
    says = f"hoodie.table.version={config.version}"
    folder = join(METAFOLDER, config.timeline_folder)
    is_later = config.layout_version > 1
    if seen.has_layout_1 and seen.has_layout_2:
        return f"instants are in {METAFOLDER} and in {folder}: a conversion between versions was under way"
    if is_later and seen.has_layout_1:
        return f"it says {says}, and the instants are in {METAFOLDER}, as in version 6"
    if not is_later and seen.has_layout_2:
        return f"it says {says}, and the instants are in {folder}, as from version 8 on"
    if seen.metadata_version not in ("", str(config.version)):
        return f"it says {says}, and the metadata table hoodie.table.version={seen.metadata_version}"
    if seen.is_avro not in (None, is_later):
        return f"it says {says}, and the newest commit is encoded as in another timeline layout"
    return ""


def has_source(storage: Storage) -> bool:
    """Whether there is a whole file from which the properties can be made again."""
    return any(read_whole(storage, path) is not None for path in _SOURCES)


def mend_properties(storage: Storage) -> list[Finding]:
    """Makes the properties again if they are gone or damaged; does nothing if they are whole, or there is no source.

    Args:
        storage: the table's, held by the caller.

    Raises:
        CorruptFileError: a source contradicts the table: nothing was written.
        StorageError: the store fails.
    """
    if read_whole(storage, PROPERTIES_FILE) is not None:
        return []
    refused = []
    for path in _SOURCES:
        properties = read_whole(storage, path)
        if properties is None:
            continue
        config = config_from_properties(properties)
        why = find_contradiction(config, _load_evidence(HudiTable(storage, config)))
        if why:
            refused.append(f"{path}: {why}")
            continue
        properties = {key: value for key, value in properties.items() if key != MARK}
        changed = _without_lost_lists(storage, properties)
        _write(storage, format_properties(changed, clock.now_ms(), "Made again at"))
        log.warning("properties_made_again", table=storage.base_uri, source=path)
        return [_made_again(storage, path, changed)]
    if refused:
        raise CorruptFileError(
            f"{PROPERTIES_FILE} of {storage.base_uri!r} is gone or damaged, and is not made again: bring it back from "
            f"a backup of your own; nothing was written ({'; '.join(refused)})"
        )
    return []


def _load_evidence(table: HudiTable) -> Evidence:
    storage, config = table.storage, table.config
    later = CompletionTimeNames(join(METAFOLDER, config.timeline_folder))
    has_1, has_2 = (
        any(names.parse(name) is not None for name in storage.list_names(names.folder))
        for names in (REQUEST_TIME_NAMES, later)
    )
    of_lists = read_whole(storage, join(METADATA_FOLDER, PROPERTIES_FILE)) or {}
    return Evidence(has_1, has_2, of_lists.get("hoodie.table.version", ""), _is_newest_avro(table))


def _is_newest_avro(table: HudiTable) -> bool | None:
    writes = table.load_timeline().completed_writes
    # layout 2 may hold files that were moved there unchanged, which have no completion time
    newest = next((i for i in reversed(writes) if table.config.layout_version == 1 or i.completion_time), None)
    data = find_instant(table.storage, newest) if newest is not None else None
    return is_avro(data) if data and data.strip() else None


def _without_lost_lists(storage: Storage, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties, without a metadata table that is not there any more: readers would look for it."""
    changed = dict(properties)
    if changed.get(_PARTITIONS) and not storage.exists(join(METADATA_FOLDER, PROPERTIES_FILE)):
        changed[_PARTITIONS] = ""
    return changed


def _write(storage: Storage, data: bytes) -> None:
    """Writes the file unless a whole one appeared meanwhile.

    Raises:
        StorageError: the store fails.
    """
    if storage.create_exclusive(PROPERTIES_FILE, data, durable=True):
        return
    with suppress(InvalidConfigError):  # the store, or the disk, knows no conditions after all
        if storage.has_versions:
            seen = storage.read_versioned(PROPERTIES_FILE)
            if seen is not None and read_whole(storage, PROPERTIES_FILE) is None:
                storage.replace_if(PROPERTIES_FILE, data, seen.version)
            return
    if read_whole(storage, PROPERTIES_FILE) is None:
        storage.put(PROPERTIES_FILE, data)


def _made_again(storage: Storage, source: str, properties: Mapping[str, str]) -> Finding:
    older = ", ".join(f"{key}={properties[key]}" for key in _CHANGED_LATER if properties.get(key))
    text = f"it was gone or damaged, and was made again from {source}; what may be older than the table: {older}"
    if storage.exists(METADATA_FOLDER) and not properties.get(_PARTITIONS):
        text += f"; {METADATA_FOLDER} exists, and is not in use"
    advice = "compare these properties with what the table's writers set"
    return Finding(Kind.PROPERTIES, Severity.ERROR, PROPERTIES_FILE, text, Repair.DONE, "", advice)
