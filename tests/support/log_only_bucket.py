"""A merge-on-read table with a bucket index as Flink's writer leaves it: file groups of log files alone.

Made from the bytes, with `struct`, `json` and fastavro's record encoder; nothing of hudistream takes part.
"""

import io
import json
import struct
from pathlib import Path

import fastavro

FIRST, SECOND = "20260101000000001", "20260101000000002"
PROPERTIES = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.table.base.file.format": "PARQUET",
    "hoodie.table.log.file.format": "HOODIE_LOG",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.partition.fields": "p",
    "hoodie.table.precombine.field": "ts",
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleAvroKeyGenerator",
    "hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.datasource.write.hive_style_partitioning": "false",
    "hoodie.archivelog.folder": "archived",
    "hoodie.table.checksum": "498511606",  # CRC-32 of ".t": database, a dot, the name
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.bucket.index.num.buckets": "2",
}
META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path")
META = (*META, "_hoodie_file_name")
COLUMNS = [{"name": "id", "type": "string"}, {"name": "p", "type": "string"}, {"name": "ts", "type": "long"}]
COLUMNS += [{"name": "v", "type": ["null", "string"], "default": None}]


def _schema(meta):
    of_meta = [{"name": name, "type": ["null", "string"], "default": None} for name in META] if meta else []
    return {"type": "record", "name": "t_record", "namespace": "hoodie.t", "fields": [*of_meta, *COLUMNS]}


def _block(time, rows, path, file_id):
    schema, content = fastavro.parse_schema(_schema(meta=True)), io.BytesIO()
    content.write(struct.pack(">ii", 3, len(rows)))
    for number, (key, ts, value) in enumerate(rows):
        meta = dict(zip(META, (time, f"{time}_0_{number}", key, path, file_id), strict=True))
        record = io.BytesIO()
        fastavro.schemaless_writer(record, schema, {**meta, "id": key, "p": path, "ts": ts, "v": value})
        content.write(struct.pack(">i", len(record.getvalue())) + record.getvalue())
    header = struct.pack(">i", 2)
    for ordinal, text in ((0, time.encode()), (2, json.dumps(_schema(meta=True)).encode())):  # INSTANT_TIME, SCHEMA
        header += struct.pack(">ii", ordinal, len(text)) + text
    body = struct.pack(">ii", 1, 3) + header + struct.pack(">q", len(content.getvalue())) + content.getvalue()
    body += struct.pack(">i", 0)  # no footer
    size = len(body) + 8
    return b"#HUDI#" + struct.pack(">q", size) + body + struct.pack(">q", size + 6)


def write_table(folder):
    """Writes the table: two buckets of the partition path p, each with two log files, and no base file.

    Args:
        folder: a new folder.

    Returns:
        id -> (ts, v) of its rows.
    """
    root = Path(folder)
    timeline, partition = root / ".hoodie", root / "p"
    (timeline / "archived").mkdir(parents=True)
    partition.mkdir()
    lines = "".join(f"{key}={value}\n" for key, value in PROPERTIES.items())
    (timeline / "hoodie.properties").write_text(lines)
    (partition / ".hoodie_partition_metadata").write_text(f"commitTime={FIRST}\npartitionDepth=1\n")
    # "a" and "c" hash to bucket 0, "b" and "d" to bucket 1 (Java's hash of a list of one string)
    ids = {bucket: f"{bucket:08d}-1111-2222-3333-444444444444" for bucket in (0, 1)}
    written = {
        FIRST: {0: [("a", 1, "a1"), ("c", 1, "c1")], 1: [("b", 1, "b1"), ("d", 1, "d1")]},
        SECOND: {0: [("a", 2, "a2")], 1: [("d", 0, "late")]},
    }
    for version, (time, buckets) in enumerate(written.items(), 1):
        stats = []
        for bucket, rows in buckets.items():
            name = f".{ids[bucket]}_{FIRST}.log.{version}_{bucket}-1-0"
            data = _block(time, rows, "p", ids[bucket])
            (partition / name).write_bytes(data)
            stats.append(_stat(ids[bucket], f"p/{name}", version, len(rows), len(data)))
        commit = {
            "partitionToWriteStats": {"p": stats},
            "compacted": False,
            "extraMetadata": {"schema": json.dumps(_schema(meta=False))},
            "operationType": "UPSERT",
        }
        for state in ("requested", "inflight"):
            (timeline / f"{time}.deltacommit.{state}").write_text("")
        (timeline / f"{time}.deltacommit").write_text(json.dumps(commit))
    return {"a": (2, "a2"), "b": (1, "b1"), "c": (1, "c1"), "d": (1, "d1")}


def _stat(file_id, path, version, records, size):
    return {
        "fileId": file_id,
        "path": path,
        "prevCommit": FIRST,
        "numWrites": records,
        "numDeletes": 0,
        "numUpdateWrites": 0 if version == 1 else records,
        "numInserts": records if version == 1 else 0,
        "totalWriteBytes": size,
        "totalWriteErrors": 0,
        "partitionPath": "p",
        "fileSizeInBytes": size,
        "logVersion": version,
        "logOffset": 0,
        "baseFile": "",
        "logFiles": [path.rpartition("/")[2]],
    }
