"""What a local or mounted file system says of paths and has beside a table's files: room, rights, checksum files."""

import errno
import os
from collections.abc import Sequence
from contextlib import suppress

from table.storage.interface import Room, failed


def find_mode(full: str) -> int | None:
    """The mode of a file or folder; None if it is not there.

    Raises:
        StorageError: the file system gives no answer, which is not the same.
    """
    try:
        return os.stat(full).st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return None
        raise failed("look for", full, error) from error


def room_at(root: str, folders: Sequence[str]) -> Room | None:
    """Free bytes and rights where a table lies; None where the operating system does not say, or there is nothing.

    Args:
        root: full path of the table's folder.
        folders: full paths of folders that are written in, too.
    """
    try:
        found = os.statvfs(root)
    except (OSError, AttributeError):  # Windows has none
        return None
    there = (path for path in (root, *folders) if os.path.isdir(path))
    refused = next((path for path in there if not os.access(path, os.W_OK | os.X_OK)), "")
    is_read_only = bool(found.f_flag & os.ST_RDONLY)
    return Room(found.f_bavail * found.f_frsize, refused or (root if is_read_only else ""), is_read_only)


def delete_checksum_sibling(full: str) -> None:
    """Deletes the ``.crc`` file of a path: Hadoop refuses a local file whose sibling is of older content."""
    folder, name = os.path.split(full)
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, f".{name}.crc"))
