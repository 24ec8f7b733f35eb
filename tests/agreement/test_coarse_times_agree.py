"""Tables with milliseconds, as Flink makes them: Hudi and hudi-rs read what is written into them."""

from datetime import datetime, timezone

import pyarrow as pa
import pytest
from engine import Engine, form_of
from oracles import hudi_rs
from tiers import quick

from hudistream import HudiTable
from streaming import ArrowSink

pytestmark = pytest.mark.hudi

MILLIS, MICROS = pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")
LOGGED = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
NOON = 1_709_294_400_000_000
DELETED = "_hoodie_is_deleted"


def batch(ids, ts, v, kind=MICROS, *, deleted=False):
    times = pa.array([ts // (1 if kind == MICROS else 1000)] * len(ids), kind)
    return pa.table(
        {"id": list(ids), "p": ["p"] * len(ids), "ts": times, "v": [v] * len(ids), DELETED: [deleted] * len(ids)}
    )


def rows_of(found):
    """Of each row its text, and milliseconds after noon."""
    return {row["id"]: (row["v"], round(row["ts"].timestamp() * 1000) - NOON // 1000) for row in found}


@pytest.mark.slow
@pytest.mark.parametrize("version", quick(1, [6, 8, 9]))
@pytest.mark.parametrize("table_type", quick(1, ["COPY_ON_WRITE", "MERGE_ON_READ"]))
def test_other_readers_read_times_that_were_rounded_down(partners, tmp_path, version, table_type):
    path = str(tmp_path / "t")
    options = {**form_of(version, table_type), "hoodie.datasource.compaction.async.enable": "false"}
    options |= LOGGED if table_type == "MERGE_ON_READ" else {}
    Engine(path, options).write(0, batch("abcdef", NOON, "old", MILLIS))
    with ArrowSink(path, options) as sink:
        sink.write(batch("ag", NOON + 5_999, "new"))
        sink.write(batch("b", NOON - 1, "late"))
        sink.write(batch("c", NOON - 1, "late", deleted=True))
        sink.write(batch("d", NOON + 7_000, "gone", deleted=True))
    wanted = dict.fromkeys("bcef", ("old", 0)) | dict.fromkeys("ag", ("new", 5))
    assert rows_of(HudiTable.open(path).scan().to_arrow().to_pylist()) == wanted
    assert rows_of(hudi_rs.read(path).to_pylist()) == wanted
    # Hudi 1.0.2 reads no version 9, and takes milliseconds in logs for microseconds
    is_read = version < 9 and table_type == "COPY_ON_WRITE"
    for hudi in [partners[9], partners[6]] if is_read else [partners[9]]:
        found = hudi.read(path, columns=["id", "v", "ts"])
        assert (
            rows_of({**row, "ts": datetime.fromisoformat(row["ts"]).replace(tzinfo=timezone.utc)} for row in found)
            == wanted
        )
