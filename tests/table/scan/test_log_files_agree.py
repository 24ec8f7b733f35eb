"""Merge-on-read tables that real Hudi writes, read here to the rows that Hudi's own snapshot query gives."""

import random

import pyarrow as pa
import pytest
from oracles.hudi import JVM, HudiError

from table import read_table
from table.hudi_table import HudiTable
from table.scan.plan import plan_scan

pytestmark = pytest.mark.hudi

PAYLOADS = ["DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload", "PartialUpdateAvroPayload"]
SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("w", pa.float64()),
     ("_hoodie_is_deleted", pa.bool_())]
)  # fmt: skip
WRITES = 7
CANNOT_COMPARE = "java.lang.ClassCastException: class java.lang.Integer cannot be cast to class java.lang.Long"


def batch(rng):
    keys = rng.sample(range(40), rng.randint(1, 15))
    return pa.Table.from_pylist(
        [
            {"id": f"k{key:02}", "p": f"p{key % 2}", "ts": rng.randint(1, 4), "v": rng.choice([None, "a", "b", "c"]),
             "w": rng.choice([None, 0.5, 1.5]), "_hoodie_is_deleted": rng.random() < 0.15}
            for key in keys
        ],
        SCHEMA,
    )  # fmt: skip


def options_of(rng, payload, blocks):
    return {
        **JVM,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}",
        "hoodie.compaction.payload.class": f"org.apache.hudi.common.model.{payload}",
        "hoodie.logfile.data.block.format": blocks,
        "hoodie.compact.inline": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.upsert.shuffle.parallelism": "1",
        "hoodie.delete.shuffle.parallelism": "1",
        # new keys go into log files, too, where the index finds keys in those
        "hoodie.index.type": rng.choice(["BLOOM", "INMEMORY"]),
    }


def by_key(rows):
    return sorted(rows, key=lambda row: (row["id"], row["p"]))


def shown_by(hudi, path):
    """Rows by Hudi's reader of file groups; by the older one where that one fails.

    1.0.2 compares the long of a record with the int 0 of a delete that has no ordering value, and fails.
    """
    try:
        return hudi.read(path)
    except HudiError as error:
        if "java.lang.ClassCastException: class java.lang.Integer cannot be cast to class java.lang.Long" not in str(
            error
        ):
            raise
        return hudi.read(path, {"hoodie.file.group.reader.enabled": "false"})


@pytest.mark.parametrize("blocks", ["avro", "parquet"])
@pytest.mark.parametrize("payload", PAYLOADS)
def test_random_histories_read_as_hudi_reads_them(hudi, tmp_path, payload, blocks):
    rng = random.Random(f"{payload} {blocks}")
    path = tmp_path / "t"
    options = options_of(rng, payload, blocks)
    hudi.write(path, batch(rng), options, "overwrite")
    with_logs = 0
    for step in range(WRITES):
        rows, what = batch(rng), rng.choice(["upsert", "upsert", "upsert", "delete", "rollback", "compact"])
        if what in {"upsert", "delete"}:
            hudi.write(path, rows, {**options, "hoodie.datasource.write.operation": what})
        elif what == "rollback":
            last = HudiTable.open(path).load_timeline().completed_writes[-1]
            if len(HudiTable.open(path).load_timeline().completed_writes) > 1:
                hudi.client(path, "rollback", last.time)
        else:
            compacts = {**options, "hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
            try:
                hudi.write(path, rows, compacts)
            except HudiError as error:
                if CANNOT_COMPARE not in str(error):
                    raise
                break
        ours, theirs = by_key(read_table(path).to_pylist()), by_key(shown_by(hudi, path))
        differing = [row for row in ours if row not in theirs], [row for row in theirs if row not in ours]
        assert (len(ours), differing) == (len(theirs), ([], [])), (step, what)
        with_logs += any(found.log_files for found in plan_scan(HudiTable.open(path)).slices)
    assert with_logs
