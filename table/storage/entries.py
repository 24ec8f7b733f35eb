"""What a backend of fsspec says of a file, as a listing entry (pure)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from table.storage.interface import FileInfo


def info_of_entry(name: str, entry: Mapping[str, Any]) -> FileInfo:
    """The listing entry of a file or folder.

    Args:
        name: in its folder.
        entry: of the backend: ``type``, ``size``, and a modification time under one of several names.
    """
    return FileInfo(name, int(entry.get("size") or 0), _modified_ms(entry), entry["type"] == "directory")


def _modified_ms(entry: Mapping[str, Any]) -> int:
    for key in ("LastModified", "mtime", "last_modified", "updated", "created"):
        value = entry.get(key)
        if isinstance(value, (int, float)):
            return int(value * 1000)
        if isinstance(value, datetime):
            return int(value.timestamp() * 1000)
    return 0
