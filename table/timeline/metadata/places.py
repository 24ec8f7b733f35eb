"""Partition paths and file names that a record holds, checked before they are joined to the table's address (pure).

Other engines write records, too, and people edit them. A path outside of the table, or below ``.hoodie``, means that
the record is damaged.
"""

from typing import Any

from table.storage.interface import METAFOLDER


def partition_of(value: Any) -> str:
    """Checks a partition path, and returns it unchanged.

    Args:
        value: from the record; "" in a table without partitions.

    Raises:
        TypeError: it is no text.
        ValueError: it lies outside of the table, or below ``.hoodie``.
    """
    if not isinstance(value, str):
        raise TypeError(f"{value!r} in the place of a partition path")
    if value and (value.startswith(("/", METAFOLDER)) or ".." in value or "\0" in value) and not _is_inside(value):
        raise ValueError(f"the partition path {value!r} does not lie in the table")
    return value


def name_of(value: Any) -> str:
    """Checks a file name or a file id, and returns it unchanged.

    Args:
        value: from the record.

    Raises:
        TypeError: it is no text.
        ValueError: it is no name within a folder.
    """
    if not isinstance(value, str):
        raise TypeError(f"{value!r} in the place of a name")
    if "/" in value or "\0" in value or value in (".", ".."):
        raise ValueError(f"{value!r} is no name of a file within its partition")
    return value


def _is_inside(path: str) -> bool:
    segments = path.split("/")
    return not path.startswith("/") and "\0" not in path and ".." not in segments and segments[0] != METAFOLDER
