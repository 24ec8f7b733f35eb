"""A Spark standalone cluster from the PySpark wheel: a master, and workers that each have their own Python."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyspark
from servers import free_port, java, wait_for

SPARK_HOME = Path(pyspark.__file__).parent
# each node has its own Python under the same path
PYTHON_OF_NODE = """#!/bin/sh
exec "$(cat "{folder}/python-of-$NODE")" "$@"
"""


class Cluster:
    """A master and its workers, which can be killed and started again.

    Args:
        folder: for logs and work.
        pythons: name of a worker -> its Python.
        environments: name of a worker -> more variables of its environment.
    """

    def __init__(self, folder, pythons, environments=None):
        self.folder, self._port, self._processes = Path(folder), free_port(), {}
        self._environments = environments or {}
        self.address = f"spark://127.0.0.1:{self._port}"
        self.python = self.folder / "python"
        self.folder.mkdir()
        self.python.write_text(PYTHON_OF_NODE.format(folder=self.folder))
        self.python.chmod(0o755)
        options = "-Dspark.deploy.maxExecutorRetries=-1 -Dspark.worker.timeout=60"
        self._start("master", "org.apache.spark.deploy.master.Master", "-p", self._port, SPARK_MASTER_OPTS=options)
        wait_for(self._port, self._processes["master"], self.folder / "master.log")
        for name, python in pythons.items():
            self.start_worker(name, python)

    def start_worker(self, name, python=None):
        """Starts a worker and waits until the master knows it. If no Python is given, it keeps the one it had."""
        if python is not None:
            (self.folder / f"python-of-{name}").write_text(str(python))
        known = self._registered()
        where = ["-c", "1", "-m", "2g", "-d", self.folder / f"work-{name}", self.address]
        self._start(
            name, "org.apache.spark.deploy.worker.Worker", *where, NODE=name, **self._environments.get(name, {})
        )
        deadline = time.monotonic() + 60
        while self._registered() <= known:
            assert time.monotonic() < deadline, f"worker {name} did not come"
            time.sleep(0.1)

    def _registered(self):
        return (self.folder / "master.log").read_text().count("Registering worker")

    def _start(self, name, main, *arguments, **environment):
        command = [SPARK_HOME / "bin" / "spark-class", main, "-h", "127.0.0.1", "--webui-port", "0", *arguments]
        known = {
            **os.environ,
            "SPARK_DAEMON_MEMORY": "384m",
            "SPARK_NO_DAEMONIZE": "1",
            "JAVA_HOME": str(Path(java()).parents[1]),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        known.pop("PYTHONPATH", None)  # a node has what its Python has
        with open(self.folder / f"{name}.log", "ab") as told:
            self._processes[name] = subprocess.Popen(
                [str(part) for part in command], stdout=told, stderr=told, env={**known, **environment}
            )

    def victims(self, name):
        """Processes below a worker, by kind: its executors, and the daemons of their Pythons."""
        try:
            below = psutil.Process(self._processes[name].pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return {"executor": [], "python": []}
        lines = {}
        for process in below:
            try:
                lines[process] = " ".join(process.cmdline())
            except psutil.Error:
                continue
        kinds = {"executor": "CoarseGrainedExecutorBackend", "python": "pyspark.daemon"}
        return {kind: [p for p, line in lines.items() if text in line] for kind, text in kinds.items()}

    def kill_worker(self, name):
        """Kills a worker and its executors."""
        for process in [*self.victims(name)["executor"], self._processes[name]]:
            process.kill()
        self._processes[name].wait()

    def submit(self, script, *arguments, python=None, archives=None, conf=(), log):
        """Starts a job with the driver on this machine.

        Args:
            script: the script of the job.
            arguments: the arguments of the script.
            python: path of the Python on the nodes; None: each node's own.
            archives: for ``spark-submit --archives``.
            conf: settings, ``key=value``.
            log: the file for the output of the job.
        """
        settings = [
            "spark.ui.enabled=false", "spark.driver.bindAddress=127.0.0.1", "spark.driver.host=127.0.0.1",
            "spark.executor.memory=1g", "spark.executor.cores=1", *conf,
        ]  # fmt: skip
        command = [
            SPARK_HOME / "bin" / "spark-submit", "--master", self.address, "--driver-memory", "1g",
            *(["--archives", archives] if archives else []),
            *(part for setting in settings for part in ("--conf", setting)), script, *arguments,
        ]  # fmt: skip
        environment = {
            **os.environ,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_PYTHON": str(python or self.python),
            "JAVA_HOME": str(Path(java()).parents[1]),
        }
        with open(log, "ab") as told:
            return subprocess.Popen(
                [str(part) for part in command], stdout=told, stderr=told, env=environment, start_new_session=True
            )

    def stop(self):
        """Kills everything."""
        for name in list(self._processes):
            if name != "master":
                self.kill_worker(name)
        self._processes["master"].kill()
        self._processes["master"].wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def make_environment(folder, *packages, constrained=True):
    """Makes a virtual environment with these packages and returns its Python.

    Args:
        folder: the folder of the environment. If it holds one already, that one is used.
        packages: for pip; none: a bare Python.
        constrained: whether the versions are those of the tests.
    """
    python = Path(folder) / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        if packages:
            quiet = ["--quiet", "--disable-pip-version-check"]
            constraints = Path(__file__).parents[2] / "constraints.txt"
            try:
                bounds = ["--constraint", constraints] if constrained else []
                pip = [python, "-m", "pip", "install", *quiet, *bounds, *packages]
                subprocess.run(list(map(str, pip)), check=True)
            except BaseException:
                shutil.rmtree(folder)
                raise
    return python
