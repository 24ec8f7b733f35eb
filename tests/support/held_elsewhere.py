"""A lock that another process holds, which can be stopped and killed."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Holder:
    """That process."""

    def __init__(self, process):
        self._process = process

    def stand_still(self):
        os.kill(self._process.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self._process.pid, signal.SIGCONT)

    def die(self):
        self._process.kill()
        self._process.wait()

    def ask(self):
        """What it says when it looks whether it still holds the lock; it releases it then."""
        said, _ = self._process.communicate("\n", timeout=60)
        return said.strip()


@contextmanager
def held_elsewhere(address, settings, storage_options=None):
    """Yields the process once it holds the lock.

    Args:
        address: the table's.
        settings: fields of `LockSettings`.
        storage_options: what fsspec gets.
    """
    program = str(Path(__file__).with_name("lock_holder.py"))
    process = subprocess.Popen(
        [sys.executable, program, str(address), json.dumps(settings), json.dumps(storage_options or {})],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])},
    )
    try:
        assert process.stdout.readline() == "held\n"
        yield Holder(process)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
