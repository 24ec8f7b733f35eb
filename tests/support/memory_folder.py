"""A folder in memory for what tests write: thousands of small files, which a disk takes its time for."""

import os
import shutil
import tempfile

_MEMORY = "/dev/shm"
_LEAST_BYTES = 6 * 2**30  # more than all tests together leave before they are told to clean up


def make_memory_folder():
    """A new folder in memory; None where there is no room for one."""
    if not os.access(_MEMORY, os.W_OK) or shutil.disk_usage(_MEMORY).free < _LEAST_BYTES:
        return None
    return tempfile.mkdtemp(prefix="hudistream-tests-", dir=_MEMORY)
