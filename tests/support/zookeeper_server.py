"""A real ZooKeeper in a process of its own, from the JARs that Spark brings."""

import os
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

TICK_MS = 200  # sessions last at least two of them


@contextmanager
def serve_zookeeper(folder):
    """Yields the address of a server without nodes, and the process.

    Args:
        folder: for its data.
    """
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"
    command = [
        java,
        "-Dzookeeper.admin.enableServer=false",
        "-cp",
        str(Path(pyspark.__file__).with_name("jars") / "*"),
        "org.apache.zookeeper.server.ZooKeeperServerMain",
        str(port),
        str(folder),
        str(TICK_MS),
    ]
    with open(Path(folder) / "server.log", "wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert server.poll() is None, (Path(folder) / "server.log").read_text()[-2000:]
                time.sleep(0.1)
        yield f"127.0.0.1:{port}", server
    finally:
        server.kill()
        server.wait()
