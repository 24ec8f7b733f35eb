"""Builds a release into ``dist`` and checks it away from this checkout; nothing is uploaded and nothing is tagged.

1. Wheel and source distribution are built, and ``twine check`` reads them.
2. The wheel has what it needs, and nothing else.
3. On each Python that is found, the wheel is installed into an environment of its own: without an extra, then with one
   extra after the other. Each time a program writes and reads a table, and uses the extra.
4. A list of all components with their licences is written (CycloneDX), of the environment with all extras.

``make release`` runs it. PYTHONS=3.11,3.12 chooses. At the end it says what a person has to do.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
UNTOLD = "NOT TOLD"
DIST, BUILD = ROOT / "dist", ROOT / "build" / "release"
ROOMS = ("hudistream", "pyspark_hudistream", "streaming", "table")
TOLD = ("3.10", "3.11", "3.12", "3.13", "3.14")

PLAIN = """
import os, hudistream, pyarrow as pa
from hudistream import HudiTable, write_hudi
assert "site-packages" in hudistream.__file__, hudistream.__file__
rows = pa.table({"id": ["a", "b"], "day": ["x", "y"], "ts": [1, 1]})
write_hudi("t", rows, key="id", partition_by="day", order_by="ts")
write_hudi("t", rows.slice(0, 1))
table = HudiTable.open("t")
assert table.scan().to_arrow().num_rows == 2 and table.check().is_sound
print(hudistream.__version__)
"""
STREAM = """
import pyspark
from pyspark.sql import SparkSession
from hudistream import HudiSink, read_hudi
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load().selectExpr("value AS id")
sink = HudiSink("s", key="id", operation="upsert")
query = rows.writeStream.foreachBatch(sink).option("checkpointLocation", "c").trigger(availableNow=True).start()
query.awaitTermination()
sink.stop()
assert read_hudi(spark, "s").count() == 10
print("PySpark", pyspark.__version__)
"""
SCAN = "from hudistream import HudiTable, scan_hudi; scan = HudiTable.open('t').scan(); "
STORE = "from table.storage.opening import open_storage; open_storage"
# extra -> a program that uses it; the table `t` is there
USES = {
    "cli": "from streaming.cli.main import main; assert main(['show', 't']) == 0",
    "metrics": "from hudistream import PrometheusMetrics; PrometheusMetrics()",
    "s3": f"{STORE}('s3://bucket/t', {{'key': 'k', 'secret': 's'}})",
    "gcs": f"{STORE}('gs://bucket/t', {{'token': 'anon'}})",
    "azure": f"{STORE}('abfss://container/t', {{'account_name': 'a', 'account_key': 'aw=='}})",
    "pandas": SCAN + "assert len(scan.to_pandas()) == 2",
    "polars": SCAN + "assert scan_hudi(scan).collect().height == 2",
    "duckdb": SCAN + "assert len(scan.to_duckdb(name='t').table('t').fetchall()) == 2",
    "zookeeper": "from table.transaction.locks.zookeeper_session import check_kazoo; check_kazoo()",
    "dynamodb": "import boto3, table.transaction.locks.dynamodb_table",
    "glue": "import boto3, table.catalog.glue",
    "hms": "import table.catalog.hive_metastore; from pymetastore.hive_metastore import ttypes",
    "kafka": "import confluent_kafka, streaming.kafka",
    "spark": STREAM,
}


def say(line: str) -> None:
    """Writes a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def run(*command: str | Path, cwd: Path = ROOT, **more: str) -> str:
    """Runs a command; its output is shown where it fails."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
    done = subprocess.run(  # noqa: S603
        [str(word) for word in command], cwd=cwd, env={**env, **more}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))[:300]}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout.strip()


def build() -> Path:
    """The wheel, built from nothing but what git has."""
    shutil.rmtree(DIST, ignore_errors=True)
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)  # setuptools takes files of an earlier build along
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    run(sys.executable, "-m", "twine", "check", "--strict", *DIST.iterdir())
    [wheel] = DIST.glob("*.whl")
    return wheel


def check_contents(wheel: Path) -> str:
    """The version of a wheel that has all files of the packages, and no other."""
    names = zipfile.ZipFile(wheel).namelist()
    wanted = {str(path.relative_to(ROOT)) for room in ROOMS for path in (ROOT / room).rglob("*") if path.is_file()}
    wanted = {name for name in wanted if not name.endswith(".pyc")}
    given = {name for name in names if ".dist-info/" not in name}
    assert given == wanted, f"missing {sorted(wanted - given)}, too many {sorted(given - wanted)}"
    assert any(name.endswith("licenses/LICENSE") for name in names)
    version = re.search(r'^VERSION = "(.*)"', (ROOT / "table" / "version.py").read_text(), re.MULTILINE)
    assert version
    assert wheel.name == f"hudistream-{version[1]}-py3-none-any.whl", wheel.name
    return version[1]


def found_pythons() -> dict[str, str]:
    """Version -> a Python of this machine that has it: on the path, or of pyenv."""
    found = {}
    for version in TOLD:
        pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        for python in filter(None, (*map(str, pyenv), shutil.which(f"python{version}"))):
            said = subprocess.run([python, "-c", "import ensurepip, sys; print(sys.version[:4])"], capture_output=True,  # noqa: S603
                                  text=True, check=False)  # fmt: skip
            if said.returncode == 0 and said.stdout.strip() == version:
                found[version] = python
                break
    return found


def check_on(version: str, python: str, wheel: Path, java: str) -> Path:
    """The Python of an environment in which the wheel was tried without extras, and with each."""
    home = BUILD / version
    shutil.rmtree(home, ignore_errors=True)
    run(python, "-m", "venv", home)
    own, work = home / "bin" / "python", home / "work"
    work.mkdir()
    install = (own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    begun = time.perf_counter()
    run(*install, wheel, cwd=work)
    told = run(own, "-c", PLAIN, cwd=work)
    for extra, program in USES.items():
        run(*install, f"{wheel}[{extra}]", cwd=work)
        spark = {"JAVA_HOME": java, "PYSPARK_PYTHON": str(own), "SPARK_LOCAL_IP": "127.0.0.1"}
        told = run(own, "-c", program, cwd=work, **spark)
    say(
        f"  Python {version}: without an extra, and with each of {len(USES)}; {told}; "
        f"{time.perf_counter() - begun:.0f} s"
    )
    return own


def licences_of(component: dict[str, Any]) -> list[str]:
    """The licences of a component of CycloneDX, each by its first line: some packages give the whole text as a name."""
    told = [one.get("expression") or one["license"].get("id") or one["license"].get("name", "")
            for one in component.get("licenses", ())]  # fmt: skip
    return sorted({text.splitlines()[0] for text in told if text})


def write_components(python: Path, version: str) -> None:
    """The list of components as CycloneDX, and the licences as text."""
    target = DIST / f"hudistream-{version}.cdx.json"
    run(
        sys.executable,
        "-m",
        "cyclonedx_py",
        "environment",
        python,
        "--mc-type",
        "library",
        "--spec-version",
        "1.6",
        "-o",
        target,
    )
    document = json.loads(target.read_text())
    for one in document["components"]:  # the address of the wheel is a path of this machine
        one["externalReferences"] = [each for each in one.get("externalReferences", ()) if "file:" not in each["url"]]
    target.write_text(json.dumps(document, indent=1) + "\n")
    components = sorted(document["components"], key=lambda one: one["name"].lower())
    lines = [f"{one['name']} {one.get('version', '')}: {'; '.join(licences_of(one)) or UNTOLD}" for one in components]
    (DIST / f"hudistream-{version}.licences.txt").write_text("\n".join(lines) + "\n")
    untold = [line for line in lines if line.endswith(UNTOLD)]
    say(f"  {len(lines)} components; without a licence in their metadata: {', '.join(untold) or 'none'}")


def by_hand(version: str) -> str:
    """What a person has to do."""
    urls = "[project.urls]\n" in (ROOT / "pyproject.toml").read_text()
    steps = [
        f"read CHANGELOG.md: the section {version} has everything that users notice, and the day",
        *(
            []
            if urls
            else ["add [project.urls] to pyproject.toml when the repository has a public address, and run this again"]
        ),
        "look at dist/*.licences.txt, and at what is new in it",
        f"git tag --sign v{version} && git push origin v{version}",
        "keep the wheel, the source distribution and the .cdx.json where users get them",
        "upload to an index only if the name hudistream is ours there: python -m twine upload dist/*.whl dist/*.tar.gz",
        "then change the install commands of README.md, docs/ and table/extras.py",
    ]
    return "\n".join(f"  {number}. {step}" for number, step in enumerate(steps, 1))


def main() -> None:
    """Builds, checks, and says what is left."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pythons", default="", help="such as 3.11,3.12; all that are found, by default")
    parser.add_argument("--java", default=os.environ.get("JAVA_HOME", ""))
    given = parser.parse_args()
    wheel = build()
    version = check_contents(wheel)
    say(f"built and read by twine: {', '.join(sorted(path.name for path in DIST.iterdir()))}")
    pythons = found_pythons()
    wanted = [one for one in given.pythons.split(",") if one] or list(pythons)
    last = None
    for one in wanted:
        last = check_on(one, pythons[one], wheel, given.java)
    if last is None:
        sys.exit("no Python was found to try the wheel on")
    write_components(last, version)
    say(f"\nBy hand, for {version}:\n{by_hand(version)}")


if __name__ == "__main__":
    main()
