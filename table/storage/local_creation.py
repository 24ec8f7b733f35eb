"""Gives a whole file its name, if no file has it, where hard links are refused (exFAT, some network file systems)."""

import ctypes
import errno
import os
from functools import cache
from typing import Any

_HERE = -100  # AT_FDCWD: paths are as the process sees them
_NO_REPLACE = 1  # RENAME_NOREPLACE
_UNKNOWN = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


def rename_new(source: str, target: str) -> None:
    """Renames a file if the other name is free; where the file system cannot, creates the other one with ``O_EXCL``.

    Only in the second case can a process that dies leave a file that is cut.

    Args:
        source: the whole file.
        target: its name. The folder exists.

    Raises:
        FileExistsError: there is a file of this name.
        OSError: the disk fails; there is no file of this name then.
    """
    rename = _find_renameat2()
    if rename is not None:
        if not rename(_HERE, os.fsencode(source), _HERE, os.fsencode(target), _NO_REPLACE):
            return
        code = ctypes.get_errno()
        if code not in _UNKNOWN:
            raise OSError(code, os.strerror(code), target)
    _copy_new(source, target)


@cache
def _find_renameat2() -> Any:
    """Linux's ``renameat2``; None where the C library has none."""
    try:
        found = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None
    found.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return found


def _copy_new(source: str, target: str) -> None:
    with open(source, "rb") as file:
        data = file.read()
    descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(target)
        raise
