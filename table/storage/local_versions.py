"""Versions of files on a local disk: a digest of the content, and a kernel lock around the replacement.

If a process dies, the kernel gives its lock to the next process. The locked file lies beside the versioned file and is
never deleted: otherwise two processes could each lock a file of that name.
"""

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

from table import clock
from table.errors import InvalidConfigError, StorageError
from table.storage.versions import VersionedFile

_GUARD_SUFFIX = ".guard"
_LOOKS_AGAIN_S = 0.005
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


def read_version(full: str) -> VersionedFile | None:
    """A file with its version; None if the file does not exist.

    Raises:
        OSError: when the disk fails.
    """
    try:
        with open(full, "rb") as file:
            data = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return VersionedFile(data, hashlib.sha256(data).hexdigest())


@contextmanager
def guarded_exchange(full: str, timeout_s: float) -> Iterator[None]:
    """Excludes other processes, and other threads of this process, from replacing the same file.

    Args:
        full: full path of the versioned file.
        timeout_s: seconds to wait for other processes and threads.

    Raises:
        StorageError: another process or thread holds the lock for longer.
        InvalidConfigError: the system, or the file system, has no such locks.
        OSError: when the disk fails.
    """
    try:
        import fcntl  # noqa: PLC0415 Windows has none
    except ImportError as error:
        raise _no_locks(full) from error
    os.makedirs(os.path.dirname(full), exist_ok=True)
    descriptor = os.open(full + _GUARD_SUFFIX, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    until_s = clock.monotonic_s() + timeout_s
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if clock.monotonic_s() > until_s:
                    raise StorageError(f"another process has been replacing {full!r} for {timeout_s:g} s") from error
                clock.sleep_s(_LOOKS_AGAIN_S)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
                raise _no_locks(full) from error
        try:
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child process may have a copy of the descriptor
    finally:
        os.close(descriptor)


def _no_locks(full: str) -> InvalidConfigError:
    return InvalidConfigError(f"{full!r} cannot be guarded: there is no flock here; use another lock provider")
