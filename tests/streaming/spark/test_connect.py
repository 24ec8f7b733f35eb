"""The sink unchanged under Spark Connect: a local Spark 4 Connect server, in an environment of its own."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from stream import write_batches

from table import read_table

ROOT = Path(__file__).parents[3]
PACKAGES = ["pyspark[connect]>=4.0,<4.1", "pyarrow", "pandas", "fastavro", "fsspec", "structlog", "numpy"]


@pytest.fixture(scope="module")
def python():
    """A Python with Spark 4 and Connect; made once beside this one."""
    home = Path(sys.prefix).parent / ".venv-connect"
    stamp = home / ".ready"
    if not stamp.exists():
        venv.create(home, with_pip=True, clear=True)
        made = subprocess.run(
            [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            if os.environ.get("CI"):
                pytest.fail(f"no environment for Spark Connect: {made.stderr[-2000:]}")
            pytest.skip(f"no environment for Spark Connect can be had here: {made.stderr[-300:]}")
        stamp.touch()
    return str(home / "bin" / "python")


@pytest.mark.spark
def test_the_sink_unchanged_under_spark_connect(python, tmp_path):
    folder, table, checkpoint = (str(tmp_path / name) for name in ("in", "t", "c"))
    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYSPARK"))},
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }

    def run():
        done = subprocess.run(
            [python, str(ROOT / "tests" / "support" / "connect_stream.py"), folder, table, checkpoint],
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return dict(line.split(" ", 1) for line in done.stdout.splitlines() if line.split(" ", 1)[0].isupper())

    write_batches(folder, 3)
    said = run()
    assert said["SESSION"].startswith("pyspark.sql.connect")
    assert said["QUERY"].endswith("None")
    assert (said["WRITE"], said["COUNT"]) == ("10", "160")
    # ten of the twenty move to another partition path: two exchanges
    assert said["UPSERT"] == "20 10"
    assert said["FAILED"] == "p9 True PythonException"
    assert "checkpoint.location is empty" in said["EMPTY"]
    assert "hudistream.checkpoint.location" in said["WITHOUT"]
    # the last batch is replayed, two new ones follow: exactly once
    for name in ("2", ".2.crc"):
        os.remove(os.path.join(checkpoint, "commits", name))
    write_batches(folder, 2, first=3)
    assert run()["COUNT"] == str(5 * 50 + 20 + 10)
    keys = read_table(table).column("id").to_pylist()
    assert sorted(key for key in keys if int(key[1:]) < 1000) == sorted(f"k{n}" for n in range(250))
