"""Servers in Java that tests start: free ports, and waiting for one."""

import os
import shutil
import socket
import time
from pathlib import Path

PATIENCE_S = 120


def free_port():
    """A port of this machine that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def java():
    """The Java that `make` chose, or the one on the path."""
    return str(Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else shutil.which("java"))


def wait_for(port, process, log):
    """Waits until a server answers.

    Raises:
        RuntimeError: it ended, or did not answer in time; with the end of its log.
    """
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}: {Path(log).read_text()[-2000:]}")
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise RuntimeError(f"the server did not answer within {PATIENCE_S} s: {Path(log).read_text()[-2000:]}")
