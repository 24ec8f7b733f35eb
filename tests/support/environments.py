"""Other environments of Python, in which tests run programs. Each is made once, beside the one that runs the tests."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# name of the environment, and its Spark; both know Connect, so that no test needs a third
SPARK_4 = {
    "4.0": (".venv-connect", "pyspark[connect]>=4.0,<4.1"),
    "4.1": (".venv-spark41", "pyspark[connect]>=4.1,<4.2"),
    "4.2": (".venv-spark4", "pyspark[connect]>=4.2,<4.3"),
}
_WITHOUT_SPARK = ["pyarrow", "pandas<3", "fastavro", "fsspec", "structlog", "numpy"]


def make_environment(name, *packages):
    """The Python of an environment with these packages and those of hudistream.

    HUDISTREAM_ENVIRONMENTS may name another folder for all of them. Under CI an environment that cannot be made is a
    failure, elsewhere a reason to skip.
    """
    python, failure = _make(name, packages)
    if failure is not None:
        if os.environ.get("CI"):
            pytest.fail(f"no environment with {packages}: {failure[-2000:]}")
        pytest.skip(f"no environment with {packages} can be had here: {failure[-300:]}")
    return python


def _make(name, packages):
    """The Python, and why it could not be made; the latter is None where it was."""
    home = Path(os.environ.get("HUDISTREAM_ENVIRONMENTS", Path(sys.prefix).parent)) / name
    python = str(home / "bin" / "python")
    stamp = home / ".ready"
    if stamp.exists():
        return python, None
    venv.create(home, with_pip=True, clear=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages, *_WITHOUT_SPARK]
    made = subprocess.run(install, capture_output=True, text=True, check=False)
    if made.returncode:
        return python, made.stderr
    stamp.touch()
    return python, None


def surroundings(python, *paths):
    """The environment variables of a program that runs Spark with this Python and finds the packages of this tree."""
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYSPARK"))},
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, *paths))),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def run_program(python, program, *arguments, **variables):
    """What a program of tests/support, or one by its whole path, writes to standard output; it has to end well."""
    done = subprocess.run(
        [python, str(ROOT / "tests" / "support" / program), *map(str, arguments)],
        env={**surroundings(python, ROOT / "tests" / "support"), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


if __name__ == "__main__":  # `make test` makes them before the tests, which say so where one cannot be made
    for spark in sys.argv[1:]:
        _make(SPARK_4[spark][0], SPARK_4[spark][1:])
