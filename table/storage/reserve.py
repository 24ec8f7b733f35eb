"""A file that keeps some room on a disk for the command that frees space.

A clean writes its plan before it deletes anything, and on a full disk it could not. So a table on a disk has a file
without content of use. The clean deletes it where the disk is full, and makes it again once there is room.
"""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from table.errors import StorageError
from table.log import get_logger
from table.storage.interface import OWN_FOLDER, Storage, join

RESERVE_FILE = join(OWN_FOLDER, "reserve")
RESERVE_BYTES = 256 * 1024  # plans of some hundred files, which are written twice

_FULL = (errno.ENOSPC, errno.EDQUOT)

Answer = TypeVar("Answer")

log = get_logger("hudistream.clean")


def is_full(error: BaseException | None) -> bool:
    """Whether an error says that the disk is full, or the quota used up."""
    while error is not None:
        if getattr(error, "errno", None) in _FULL:
            return True
        error = error.__cause__
    return False


def keep_reserve(storage: Storage) -> None:
    """Makes the reserve of a table on a disk, unless it has one. Where there is no room for it, there is none."""
    if storage.waits_for_disk and not storage.exists(RESERVE_FILE):
        with suppress(StorageError):
            storage.put(RESERVE_FILE, os.urandom(RESERVE_BYTES))  # other bytes might take no room


def with_reserve(storage: Storage, call: Callable[[], Answer]) -> tuple[Answer, bool]:
    """Makes a call, and once more without the reserve if the disk is full.

    Args:
        storage: of the table.
        call: can be repeated.

    Returns:
        The answer, and whether the reserve was given up for it.

    Raises:
        StorageError: the disk is full, and the table has no reserve, or it is too small.
    """
    try:
        return call(), False
    except StorageError as error:
        if not (is_full(error) and storage.delete_metafile(RESERVE_FILE)):
            raise
        log.warning("reserve_released", table=storage.base_uri, bytes=RESERVE_BYTES, why=str(error))
    return call(), True
