"""The monkey: starts the processes of a world, kills and stops them, and lets them end."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from chaos.draw import GUEST, WRITERS

SUPPORT = Path(__file__).resolve().parents[1]
PATIENCE_S = 90


class Actor:
    """One process of a world, and when it could not run.

    Args:
        folder: of the world.
        module: ``writer``, ``guest``, ``upkeep``, ``read``, ``verify`` or ``vandal``.
        name: of its journal.
    """

    def __init__(self, folder, module, name):
        self.name, self._command = name, _command(folder, module, name)
        self._errors = os.path.join(folder, f"{name}.stderr")
        self.down = []  # (since, until) while it was dead or stopped
        self.start()

    def start(self):
        """Starts the process, anew where it was killed."""
        with open(self._errors, "ab") as errors:
            self._process = subprocess.Popen(self._command, env=_environment(), stderr=errors)

    def kill_for(self, seconds):
        """SIGKILL, and another process after a while."""
        since = time.time()
        self._process.kill()
        self._process.wait()
        time.sleep(seconds)
        self.start()
        self.down.append((since, time.time() + 1.5))  # Python and its imports take a while

    def stop_for(self, seconds):
        """SIGSTOP for a while."""
        since = time.time()
        self._process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._process.send_signal(signal.SIGCONT)
        self.down.append((since, time.time()))

    def wait(self, patience_s=PATIENCE_S):
        """Waits for its end. Returns whether it came to one by itself."""
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return False
        return True


def run_processes(drawn, folder):
    """Runs a world to its end.

    Args:
        drawn: the world.
        folder: its files; `drawn.journals` is one of them.

    Returns:
        (findings, writer -> (since, until) while its process could not run).
    """
    with open(os.path.join(folder, "world.json"), "w") as file:
        json.dump(drawn.to_json(), file)
    _run(folder, "writer", "first")
    writers = [Actor(folder, "writer", name) for name in WRITERS]
    guest = Actor(folder, "guest", GUEST)
    operators = [Actor(folder, "upkeep", f"operator-{number}") for number in range(drawn.operators)]
    readers = [Actor(folder, "read", f"reader-{number}") for number in range(drawn.readers)]
    readers.append(Actor(folder, "verify", "verifier"))
    vandals = [Actor(folder, "vandal", "vandal")] if drawn.vandal else []
    luck, until = random.Random(f"monkey {drawn.seed}"), time.time() + drawn.seconds
    while time.time() < until:
        time.sleep(luck.uniform(0.2, 1.2))
        victim = luck.choice([*writers, *writers, guest, *operators])
        if luck.random() < 0.5:
            victim.kill_for(luck.choice([0, 0, 0.5, 1.5]))
        else:
            victim.stop_for(luck.choice([0.5, 1.5, 3.0, 5.0]))
    over = time.time()
    Path(drawn.journals, "over").touch()
    actors = [*vandals, *writers, guest, *operators, *readers]
    findings = [f"{actor.name} did not end" for actor in actors if not actor.wait()]
    for writer in writers:
        writer.down.append((over, time.time() + 1.5))  # an operator may take its time, and the writers have ended
    last = [subprocess.Popen([*_command(folder, "writer", name), "last"], env=_environment()) for name in WRITERS]
    deadline = time.time() + PATIENCE_S
    for name, process in zip(WRITERS, last, strict=True):
        try:
            process.wait(max(1.0, deadline - time.time()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            findings.append(f"the last batch of {name} was not acknowledged within {PATIENCE_S} s")
    _run(folder, "read", "judge", "last")
    return findings, {writer.name: writer.down for writer in writers}


def _run(folder, module, name, *more):
    with open(os.path.join(folder, f"{name}.stderr"), "ab") as errors:
        subprocess.run([*_command(folder, module, name), *more], env=_environment(), stderr=errors, check=False)


def _command(folder, module, name):
    return [sys.executable, "-m", f"chaos.{module}", os.path.join(folder, "world.json"), name]


def _environment():
    paths = [str(SUPPORT), str(SUPPORT.parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
