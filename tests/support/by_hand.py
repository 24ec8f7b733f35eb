"""A table of version 8 made by hand, file by file: what no golden table shows. One partition, one file group."""

import io
import json
import os
import re
import zipfile
from functools import cache
from pathlib import Path

import fastavro
import log_files
import pyarrow as pa
import pyarrow.parquet as pq
from log_files import COLUMNS, data_block, record

from hudistream import HudiTable
from table.files.partition_metadata import PARTITION_METAFILE
from table.schema.avro_schema import to_avro

GOLDEN = Path(__file__).parents[1] / "golden"
EMPTY = {"map": {}, "array": [], "string": "", "long": 0, "int": 0}
WRITTEN = json.dumps(to_avro(COLUMNS, "t"))

PROPERTIES = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "8",
    "hoodie.timeline.layout.version": "2",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.keygenerator.type": "NON_PARTITION",
    "hoodie.table.precombine.field": "ts",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.table.timeline.timezone": "UTC",
}


def at(number):
    """An instant time."""
    return f"202601010000{number:05d}"


@cache
def schema_of(action):
    """What Hudi itself encodes completed instants in."""
    with zipfile.ZipFile(GOLDEN / "v9_mor_rolled_back.zip") as archive:
        name = next(name for name in archive.namelist() if re.fullmatch(rf"\.hoodie/timeline/\d+_\d+\.{action}", name))
        return fastavro.reader(io.BytesIO(archive.read(name))).writer_schema


def avro(value, action="deltacommit", **more):
    """A container file with one record; the fields that it does not say are empty."""
    schema = schema_of(action)
    fields = [*schema["fields"], *({"name": name, "type": kind} for name, kind in more.items())]
    empty = {field["name"]: EMPTY.get(kind_of(field["type"])) for field in fields}
    out = io.BytesIO()
    fastavro.writer(out, {**schema, "fields": fields}, [{**empty, **value}])
    return out.getvalue()


def kind_of(kind):
    """The name of a type; of a union "union", for which None will do."""
    return kind["type"] if isinstance(kind, dict) else "union" if isinstance(kind, list) else kind


def commit(operation="UPSERT", replaced=None, **extra):
    """The content of a completed write."""
    told = {"partitionToWriteStats": {}, "extraMetadata": {"schema": WRITTEN, **extra}, "operationType": operation}
    if replaced is None:
        return avro(told)
    lists = {"type": "map", "values": {"type": "array", "items": "string"}}
    return avro({**told, "partitionToReplaceFileIds": replaced}, partitionToReplaceFileIds=lists)


def rollback(*times):
    """The content of a completed rollback of these instants."""
    return avro({"commitsRollback": list(times)}, "rollback")


class TableByHand:
    """Files of a table, as they are asked for. Numbers are instant times."""

    def __init__(self, path, properties=None):
        self.path = str(path)
        os.makedirs(os.path.join(self.path, ".hoodie", "timeline", "history"))
        self._write(PARTITION_METAFILE, b"commitTime=1\npartitionDepth=0\n")
        lines = [f"{key}={value}" for key, value in {**PROPERTIES, **(properties or {})}.items()]
        self._write(".hoodie/hoodie.properties", "".join(f"{line}\n" for line in lines).encode())

    def _write(self, name, data):
        with open(os.path.join(self.path, name), "wb") as file:
            file.write(data)

    def open(self):
        return HudiTable.open(self.path)

    def rows(self, as_of=None):
        """Key and value of every row."""
        found = self.open().scan(["id", "v"], as_of=as_of and at(as_of)).to_arrow().to_pylist()
        return {row["id"]: row["v"] for row in found}

    def pending(self, asked, action="deltacommit", *, begun=True):
        """A write that is not completed."""
        self._write(f".hoodie/timeline/{at(asked)}.{action}.requested", b"")
        if begun:
            name = "inflight" if action == "commit" else f"{action}.inflight"
            self._write(f".hoodie/timeline/{at(asked)}.{name}", b"")

    def completed(self, asked, done, action="deltacommit", content=None):
        """A write that is completed; the files of its other states are there, too."""
        self.pending(asked, {"commit": "compaction", "replacecommit": "clustering"}.get(action, action))
        data = commit() if content is None else content
        self._write(f".hoodie/timeline/{at(asked)}_{at(done)}.{action}", data)

    def base(self, asked, **values):
        """A base file: values by key, of the order 0."""
        rows = [record(key, 0, value, time=at(asked)) for key, value in values.items()]
        log_files.write_base(self.path, rows, at(asked))

    def log(self, asked, blocks=None, *, ts=1, **values):
        """A log file: values by key, or blocks."""
        made = blocks or [data_block(at(asked), [record(key, ts, value) for key, value in values.items()])]
        log_files.write_log(self.path, 1, made, at(asked))

    def history(self, *files, version=None, manifests=None):
        """The archive: of each file the instants (asked, done, action, content)."""
        names = []
        for level, instants in enumerate(files):
            columns = {
                "instantTime": [at(asked) for asked, *_ in instants],
                "completionTime": [at(done) for _, done, *_ in instants],
                "action": [action for _, _, action, _ in instants],
                "metadata": [content for *_, content in instants],
                "plan": [None for _ in instants],
                "version": pa.array([1 for _ in instants], pa.int32()),
            }
            name = f"{columns['instantTime'][0]}_{columns['instantTime'][-1]}_{level}.parquet"
            pq.write_table(pa.table(columns), os.path.join(self.path, ".hoodie/timeline/history", name))
            names.append({"fileName": name, "fileLen": 1})
        for number, listed in (manifests or {1: names}).items():
            self._write(f".hoodie/timeline/history/manifest_{number}", json.dumps({"files": listed}).encode())
        newest = str(max(manifests or {1})) if version is None else version
        self._write(".hoodie/timeline/history/_version_", newest.encode())
        return names
