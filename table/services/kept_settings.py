"""The settings by which a sink cares for a table. Tools that judge the table without options go by them.

::

    .hoodie/.hudistream/settings.json   those of the stream that started last
"""

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from table.errors import InvalidConfigError, StorageError
from table.log import get_logger
from table.options.groups import ArchiveSettings, CleanSettings, CompactionSettings
from table.options.settings import Settings
from table.options.write_groups import SizeSettings
from table.options.write_options import WriteOptions
from table.storage.interface import OWN_FOLDER, Storage, join
from table.version import VERSION

SETTINGS_FILE = join(OWN_FOLDER, "settings.json")

log = get_logger("hudistream.sink")


@dataclass(frozen=True)
class KeptSettings:
    """What a table's files and services are judged by.

    Attributes:
        sink_id: the sink; "" where none is known.
        sizes: which files are small.
        clean: when a clean is due.
        archive: how long the active timeline may be.
        compaction: when a compaction is due.
    """

    sink_id: str = ""
    sizes: SizeSettings = field(default_factory=SizeSettings)
    clean: CleanSettings = field(default_factory=CleanSettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    compaction: CompactionSettings = field(default_factory=CompactionSettings)


_GROUPS: dict[str, type[Settings]] = {
    "sizes": SizeSettings,
    "clean": CleanSettings,
    "archive": ArchiveSettings,
    "compaction": CompactionSettings,
}


def settings_of(options: WriteOptions, sink_id: str) -> KeptSettings:
    """The settings of a sink (pure)."""
    return KeptSettings(sink_id, options.sizes, options.clean, options.archive, options.compaction)


def encode_settings(settings: KeptSettings) -> bytes:
    """Content of the file (pure)."""
    return json.dumps({**asdict(settings), "version": VERSION}, sort_keys=True).encode()


def decode_settings(data: bytes) -> KeptSettings:
    """The inverse of `encode_settings` (pure).

    Another version of hudistream may have written the file: fields that this one does not know, and groups with values
    that it refuses, are left out.
    """
    try:
        found = json.loads(data)
    except ValueError:
        return KeptSettings()
    if not isinstance(found, dict):
        return KeptSettings()
    groups = {name: _decode_group(kind, found.get(name)) for name, kind in _GROUPS.items()}
    return KeptSettings(str(found.get("sink_id", "")), **groups)


def _decode_group(kind: type[Settings], found: Any) -> Any:
    known = {each.name for each in fields(kind)}
    given = found if isinstance(found, dict) else {}
    try:
        return kind(**{name: value for name, value in given.items() if name in known})
    except (InvalidConfigError, TypeError, ValueError):
        return kind()


def keep_settings(storage: Storage, settings: KeptSettings, *, of_stream: bool) -> None:
    """Leaves the settings of a sink at the table, unless they are there. Where the store fails, the log says so.

    Args:
        of_stream: whether a stream writes by them. A write outside of a stream, such as a delete with default options,
            does not replace those of a stream: it leaves its own only where there are none.
    """
    data = encode_settings(settings)
    try:
        known = _read(storage)
        if known != data and (of_stream or known is None):
            storage.put(SETTINGS_FILE, data)
    except StorageError as error:  # nothing depends on them but tools that look
        log.warning("settings_not_kept", table=storage.base_uri, error=str(error))


def load_settings(storage: Storage) -> KeptSettings:
    """The settings of the sink that started last; the defaults where none is known.

    Raises:
        StorageError: the store fails.
    """
    data = _read(storage)
    return KeptSettings() if data is None else decode_settings(data)


def _read(storage: Storage) -> bytes | None:
    try:
        return storage.read(SETTINGS_FILE)
    except FileNotFoundError:
        return None
