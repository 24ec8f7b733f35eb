"""Client of the process in which real Hudi runs."""

import json
import os
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SERVER = Path(__file__).with_name("hudi_server.py")
# options with which real Hudi writes into a table of tests/support/engine.py
JVM = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.index.type": "BLOOM",
}


CANNOT_COMPARE = "java.lang.ClassCastException: class java.lang.Integer cannot be cast to class java.lang.Long"


class HudiError(Exception):
    """What real Hudi raised."""


def _is_listed(row):
    return row["is_present_in_fs"] and row["is_present_in_metadata"] and row["fs_size"] == row["metadata_size"]


class Hudi:
    """Real Hudi, 1.0.2 unless told otherwise, behind a pipe. Start-up is lazy and takes some 25 s the first time."""

    def __init__(self, version="1.0.2", packages=()):
        self._version, self._packages = version, packages
        self._process = None
        self._log = None

    def _start(self):
        self._log = tempfile.NamedTemporaryFile("w+", suffix=".hudi.log", delete=False)
        env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "TZ": "UTC"}
        self._process = subprocess.Popen(
            [sys.executable, str(SERVER), self._version, *self._packages],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=env,
        )
        if not self._process.stdout.readline():
            said = Path(self._log.name).read_text()[-2000:]
            raise HudiError(f"real Hudi did not start; see {self._log.name}: {said}")

    def start(self):
        """Starts the process unless it runs."""
        if self._process is None:
            self._start()

    def _call(self, **command):
        self.start()
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise HudiError("real Hudi died: " + Path(self._log.name).read_text()[-3000:])
        answer = json.loads(line)
        if "error" in answer:
            # a JVM that went away says why in its log alone
            gone = "Answer from Java side is empty" in answer["error"]
            raise HudiError(answer["error"] + (Path(self._log.name).read_text()[-3000:] if gone else ""))
        return answer["ok"]

    def read(self, path, options=None, columns=None, where=None):
        """Rows of a table as dictionaries, values as the golden files spell them. Columns are names or expressions."""
        return self._call(do="read", path=str(path), options=options, columns=columns, where=where)

    def read_by_either(self, path, options=None):
        """As `read`: by Hudi's reader of file groups; by the older one where that one fails.

        1.0.2 compares the long of a record with the int 0 of a delete that has no ordering value, and fails.
        """
        try:
            return self.read(path, options)
        except HudiError as error:
            if CANNOT_COMPARE not in str(error):
                raise
            return self.read(path, {**(options or {}), "hoodie.file.group.reader.enabled": "false"})

    def read_incremental(self, path, begin, end=None):
        """Rows whose commit lies in (begin, end]."""
        options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": begin}
        if end:
            options["hoodie.datasource.read.end.instanttime"] = end
        return self.read(path, options)

    def write(self, path, rows, options, mode="append"):
        """Writes an Arrow table through Hudi's data source."""
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "rows.parquet")
            pq.write_table(rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows), file)
            return self._call(do="write", path=str(path), parquet=file, options=options, mode=mode)

    def client(self, path, method, *arguments, options=None):
        """Calls a method of Hudi's write client on a table."""
        return self._call(do="client", path=str(path), method=method, arguments=arguments, options=options or {})

    def make_lock(self, name, options):
        """Makes one of Hudi's lock providers, which goes by a name from now on."""
        return self._call(do="lock", name=name, method="make", options=options)

    def try_lock(self, name, wait_ms=1):
        """Whether the provider got the lock within that time."""
        return self._call(do="lock", name=name, method="try", wait_ms=wait_ms)

    def unlock(self, name):
        """Releases it."""
        return self._call(do="lock", name=name, method="unlock")

    def close_lock(self, name):
        """Closes the provider."""
        return self._call(do="lock", name=name, method="close")

    def held_lock(self, name):
        """Owner and validity of the storage-based lock that the provider believes to hold; None: none."""
        return self._call(do="lock", name=name, method="held")

    def aws_lock(self, name, method, **given):
        """A method of the client of DynamoDB's locks: make, try, unlock, is_expired, close."""
        return self._call(do="aws_lock", name=name, method=method, **given)

    def jars(self):
        """Paths of the JARs that were fetched."""
        return self._call(do="jars")

    def add_jar(self, path):
        """Lets it find classes of a JAR."""
        return self._call(do="add_jar", path=str(path))

    def options(self, classes=None):
        """Its options: key, default, other spellings with a blank between two, and class, by key.

        Args:
            classes: names of the classes that are asked, without `org.apache.hudi.`; None: all of the bundle.
        """
        return self._call(do="options", classes=classes)

    def set_hadoop(self, settings):
        """Settings of Hadoop, of its file systems for example."""
        return self._call(do="set_hadoop", settings=settings)

    def lock_base_path(self, address):
        """Node of a table's lock in ZooKeeper, where it follows from the address."""
        return self._call(do="address_hash", address=address)

    def buckets(self, keys, fields, buckets):
        """The bucket of each key."""
        return self._call(do="buckets", keys=keys, fields=fields, buckets=buckets)

    def sql(self, *statements):
        """Runs SQL statements; a list of rows each."""
        return self._call(do="sql", statements=list(statements))

    def unequal_lists(self, path):
        """By Hudi's own validation: the files about which its metadata table and the store disagree (dictionaries)."""
        named = "listed_" + uuid.uuid4().hex
        made = f"create table {named} using hudi location '{path}'"
        _, rows, _ = self.sql(
            made, f"call validate_metadata_table_files(table => '{named}', verbose => true)", f"drop table {named}"
        )
        assert rows
        return [row for row in rows if not _is_listed(row)]

    def stop(self):
        """Ends the process. The next call starts another one."""
        if self._process is not None:
            self._process.stdin.close()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
            self._process = None
