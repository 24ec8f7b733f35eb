"""A trial: what it costs to keep Iceberg's or Delta's metadata over the same base files, after each commit.

    python benchmarks/other_formats.py OUTPUT.json

It needs pyiceberg (``pyiceberg[pyarrow,sql-sqlite]``) and deltalake beside the package. Decision 0060 has the result.
"""

import json
import shutil
import sys
import tempfile
import time
import uuid
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import parquet_files_to_data_files
from pyiceberg.table import ALWAYS_TRUE

from hudistream import ArrowSink, HudiTable

BATCHES = 30
WORKLOADS = {
    # (rows of a batch, partition paths, keys that there can be)
    "2,000 new rows into 8 paths": (2_000, 8, None),
    "50,000 upserts into 16 paths": (50_000, 16, 500_000),
    "200 upserts into 64 paths": (200, 64, 5_000),
}


def make_rows(number: int, rows: int, paths: int, keys: int | None) -> pa.Table:
    random = np.random.default_rng(number)
    ids = np.arange(number * rows, (number + 1) * rows) if keys is None else random.choice(keys, rows, replace=False)
    columns = {
        "id": pa.array([f"key-{one:09d}" for one in ids]),
        "path": pa.array([f"p{one % paths}" for one in ids]),
        "ts": pa.array(np.full(len(ids), number, np.int64)),
        **{f"n{column}": pa.array(random.random(len(ids))) for column in range(6)},
        "text": pa.array([f"a text of a row, {one}" for one in ids]),
    }
    return pa.table(columns)


class Iceberg:
    """A table of Iceberg over the files, in a catalog in SQLite."""

    def __init__(self, folder: Path, _: str) -> None:
        uri = f"sqlite:///{folder}/catalog.db"
        self.catalog = SqlCatalog("trial", uri=uri, warehouse=f"file://{folder}/warehouse")
        self.catalog.create_namespace("trial")
        self.table: Any = None
        self.known: dict[str, Any] = {}

    def bring_up_to_date(self, files: dict[str, int], root: Path) -> None:
        paths = {f"file://{root}/{path}" for path in files}
        if self.table is None:
            schema = pq.read_schema(next(iter(paths)).removeprefix("file://"))
            self.table = self.catalog.create_table("trial.t", schema.remove_metadata())
            with self.table.transaction() as first:
                mapping = self.table.schema().name_mapping.model_dump_json()
                first.set_properties({"schema.name-mapping.default": mapping})
        new, gone = paths - self.known.keys(), self.known.keys() - paths
        added = list(parquet_files_to_data_files(self.table.io, self.table.metadata, iter(new)))
        with self.table.transaction() as change, change.update_snapshot().overwrite() as snapshot:
            for path in gone:
                snapshot.delete_data_file(self.known.pop(path))
            for data_file in added:
                data_file.spec_id = self.table.spec().spec_id  # a removal asks for it
                snapshot.append_data_file(data_file)
                self.known[data_file.file_path] = data_file

    def count(self) -> int:
        return self.table.scan(ALWAYS_TRUE).to_arrow().num_rows


class Delta:
    """A table of Delta over the files: its log, written by hand, because deltalake cannot remove single files."""

    def __init__(self, _: Path, table: str) -> None:
        self.root = Path(table)
        self.log = self.root / "_delta_log"
        self.known: dict[str, int] = {}
        self.version = 0

    def bring_up_to_date(self, files: dict[str, int], root: Path) -> None:
        self.log.mkdir(exist_ok=True)
        now = int(time.time() * 1000)
        actions: list[dict[str, Any]] = [{"commitInfo": {"timestamp": now, "operation": "WRITE"}}]
        if not self.version:
            kinds = {"string": "string", "int64": "long", "double": "double"}
            schema = pq.read_schema(root / next(iter(files)))
            fields = [
                {"name": one.name, "type": kinds[str(one.type)], "nullable": True, "metadata": {}} for one in schema
            ]
            actions += [
                {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
                {
                    "metaData": {
                        "id": str(uuid.uuid4()), "format": {"provider": "parquet", "options": {}},
                        "schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": [],
                        "configuration": {}, "createdTime": now,
                    }
                },
            ]  # fmt: skip
        for path in self.known.keys() - files.keys():
            actions.append({"remove": {"path": path, "deletionTimestamp": now, "dataChange": True}})
            del self.known[path]
        for path in files.keys() - self.known.keys():
            stats = json.dumps({"numRecords": pq.read_metadata(root / path).num_rows})
            added = {"path": path, "partitionValues": {}, "size": files[path], "modificationTime": now,
                     "dataChange": True, "stats": stats}  # fmt: skip
            actions.append({"add": added})
            self.known[path] = files[path]
        lines = "\n".join(json.dumps(action) for action in actions)
        (self.log / f"{self.version:020d}.json").write_text(lines)
        self.version += 1
        if self.version % 10 == 0:
            DeltaTable(str(self.root)).create_checkpoint()

    def count(self) -> int:
        return DeltaTable(str(self.root)).to_pyarrow_table().num_rows


def run(rows: int, paths: int, keys: int | None) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp())
    seconds: dict[str, list[float]] = {"batch": [], "iceberg": [], "delta": [], "listing": []}
    table = str(folder / "t")
    others = {"iceberg": Iceberg(folder, table), "delta": Delta(folder, table)}
    with ArrowSink(table, key="id", partition_by="path", order_by="ts") as sink:
        for number in range(BATCHES):
            batch = make_rows(number, rows, paths, keys)
            began = time.perf_counter()
            sink.write(batch)
            seconds["batch"].append(time.perf_counter() - began)
            began = time.perf_counter()
            files = HudiTable.open(table).files()
            listed = dict(zip(files["path"].to_pylist(), files["size_bytes"].to_pylist(), strict=True))
            seconds["listing"].append(time.perf_counter() - began)
            for name, other in others.items():
                began = time.perf_counter()
                other.bring_up_to_date(listed, Path(table))
                seconds[name].append(time.perf_counter() - began)
    wanted = HudiTable.open(table).count()
    steady = {name: median(took[BATCHES // 2 :]) for name, took in seconds.items()}
    found = {name: other.count() for name, other in others.items()}
    metadata = sum(path.stat().st_size for path in (folder / "warehouse").rglob("*") if path.is_file())
    shutil.rmtree(folder)
    return {
        "seconds": {name: round(took, 4) for name, took in steady.items()},
        "share_of_a_batch": {name: round(steady[name] / steady["batch"], 3) for name in others},
        "files": len(listed),
        "rows": wanted,
        "equal": {name: count == wanted for name, count in found.items()},
        "iceberg_metadata_bytes": metadata,
    }


def main() -> int:
    results = {name: run(*workload) for name, workload in WORKLOADS.items()}
    text = json.dumps(results, indent=1)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text + "\n")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
