"""Merge-on-read tables that real Hudi writes, read here to the rows that Hudi's own snapshot query gives."""

import random
from pathlib import Path

import pyarrow as pa
import pytest
from every_type import EVERY_TYPE, random_row
from oracles.hudi import CANNOT_COMPARE, HudiError
from random_tables import by_key, log_options, random_batch
from tiers import quick, slow
from values import rows_of, shown

from table import CorruptFileError, read_table
from table.hudi_table import HudiTable
from table.scan.plan import plan_scan

pytestmark = pytest.mark.hudi

PAYLOADS = ["DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload", "PartialUpdateAvroPayload"]
BLOCKS = ("parquet", "avro", "parquet")
WRITES = 7


@pytest.mark.parametrize(("payload", "blocks"), [
    *map(slow, ((PAYLOADS[2], "avro"), (PAYLOADS[1], "parquet"), (PAYLOADS[0], "avro"))),
    *map(slow, zip(PAYLOADS, BLOCKS, strict=True)),
])  # fmt: skip
def test_random_histories_read_as_hudi_reads_them(hudi, tmp_path, payload, blocks):
    rng = random.Random(f"{payload} {blocks}")
    path = tmp_path / "t"
    options = log_options(rng, payload, blocks)
    hudi.write(path, random_batch(rng, 40, 15), options, "overwrite")
    with_logs = 0
    for step in range(WRITES):
        rows, what = (
            random_batch(rng, 40, 15),
            rng.choice(["upsert", "upsert", "upsert", "delete", "rollback", "compact"]),
        )
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
        ours, theirs = by_key(read_table(path, meta_columns=True).to_pylist()), by_key(hudi.read_by_either(path))
        differing = [row for row in ours if row not in theirs], [row for row in theirs if row not in ours]
        assert (len(ours), differing) == (len(theirs), ([], [])), (step, what)
        with_logs += any(found.log_files for found in plan_scan(HudiTable.open(path)).slices)
    assert with_logs


@pytest.mark.parametrize("blocks", quick(1, ["avro", "parquet"]))
def test_every_type_is_read_from_blocks_as_hudi_reads_it(hudi, tmp_path, blocks):
    rng = random.Random(blocks)
    path = tmp_path / "t"
    options = log_options(rng, PAYLOADS[0], blocks)
    for ts in range(3):
        rows = [{**random_row(rng, number), "ts": ts} for number in range(30)]
        for row in rows:  # lists of the older form of base files hold no nulls
            row["tags"] = [tag or "" for tag in row["tags"] or []]
        hudi.write(path, pa.Table.from_pylist(rows, EVERY_TYPE), options, "append" if ts else "overwrite")
        assert shown(rows_of(read_table(path, meta_columns=True))) == shown(hudi.read(path))
    assert all(found.log_files for found in plan_scan(HudiTable.open(path)).slices)


def damaged(rng, data):
    """A log file that was cut, or in which a frame was changed."""
    kind = rng.choice(["cut", "size", "pointer", "stray", "magic"])
    changed = bytearray(data)
    if kind == "cut":
        return data[: rng.randrange(1, len(data))]
    if kind == "stray":
        return data + bytes(rng.randrange(1, 30))
    at = {"size": 6 + rng.randrange(8), "pointer": len(data) - 1 - rng.randrange(8), "magic": rng.randrange(6)}[kind]
    changed[at] ^= 1 << rng.randrange(7)
    return bytes(changed)


@pytest.mark.parametrize("seed", range(8))
def test_damaged_log_files_have_hudis_outcome(hudi, golden, seed):
    rng = random.Random(seed)
    path, _ = golden("mor_avro_logs")
    file = rng.choice(sorted(Path(path).glob("*/.*.log.*")))
    file.write_bytes(damaged(rng, file.read_bytes()))
    try:
        theirs = shown(hudi.read(path))
    except HudiError as error:
        if "CorruptedLogFileException" not in str(error):
            raise
        with pytest.raises(CorruptFileError):
            read_table(path, meta_columns=True)
    else:
        assert shown(rows_of(read_table(path, meta_columns=True))) == theirs
