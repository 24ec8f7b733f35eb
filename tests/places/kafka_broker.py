"""A Kafka broker with an address of its own: one process that is broker and controller, from its Maven artifacts."""

import subprocess
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

import pyspark
from servers import free_port, java, wait_for

VERSION = "4.1.1"


def fetch_jars(folder, group, artifact, version):
    """The class path of a Maven artifact and of what it needs, by the Ivy that the PySpark wheel brings."""
    (ivy,) = Path(pyspark.__file__).parent.glob("jars/ivy-*.jar")
    what = ["-dependency", group, artifact, version, "-confs", "default", "-types", "jar", "bundle"]
    command = [java(), "-cp", ivy, "org.apache.ivy.Main", *what, "-retrieve", f"{folder}/[artifact]-[revision].[ext]"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not list(Path(folder).glob("*.jar")):
        raise RuntimeError(f"{group}:{artifact}:{version} cannot be had: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return f"{folder}/*"


class Broker:
    """A broker that can be stopped and started again on the same address, with what it held.

    Args:
        folder: for its configuration, its data and its log.

    Attributes:
        address: for ``kafka.bootstrap.servers``.
    """

    def __init__(self, folder):
        folder = Path(folder)
        folder.mkdir(parents=True)
        self._port, control = free_port(), free_port()
        self.address = f"127.0.0.1:{self._port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{control}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{control}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": folder / "data",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
        }
        self._settings, self._log, self._process = folder / "server.properties", folder / "broker.log", None
        self._settings.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        jars = fetch_jars(folder / "jars", "org.apache.kafka", "kafka_2.13", VERSION)
        self._java = [java(), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", jars]
        ident = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        subprocess.run(
            [*self._java, "kafka.tools.StorageTool", "format", "-t", ident, "-c", self._settings], check=True
        )

    def start(self):
        """Starts it and waits until it answers."""
        with open(self._log, "ab") as told:
            self._process = subprocess.Popen([*self._java, "kafka.Kafka", self._settings], stdout=told, stderr=told)
        wait_for(self._port, self._process, self._log)

    def stop(self):
        """Kills it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *told):
        self.stop()
