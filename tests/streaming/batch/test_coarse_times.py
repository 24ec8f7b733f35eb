"""Tables with milliseconds, as Flink makes them, go on with milliseconds."""

import datetime as dt

import pyarrow as pa
import pytest
from engine import Engine, form_of
from structlog.testing import capture_logs

from hudistream import HudiTable

KINDS = {"BLOOM": {}, "BUCKET": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}}
MILLIS, MICROS = pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")
SOME = 1_709_296_200_123_456


def batch(ids, at, ts, kind):
    unit = 1000 if kind == MILLIS else 1
    times = pa.array([at // unit] * len(ids), kind)
    return pa.table(
        {"id": list(ids), "p": ["p"] * len(ids), "ts": pa.array([ts // unit] * len(ids), kind), "at": times,
         "s": pa.StructArray.from_arrays([times], ["at"])}
    )  # fmt: skip


def moments(path):
    found = HudiTable.open(path).scan().to_arrow()
    assert [found.schema.field(name).type for name in ("ts", "at")] == [MILLIS, MILLIS]
    return {
        row["id"]: (row["at"] - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)) // dt.timedelta(microseconds=1)
        for row in found.to_pylist()
        if row["at"] == row["s"]["at"]
    }


@pytest.mark.parametrize("version", [6, 8])
@pytest.mark.parametrize(("table_type", "index"), [("COPY_ON_WRITE", "BLOOM"), ("MERGE_ON_READ", "BUCKET")])
def test_a_table_of_milliseconds_goes_on_with_them(tmp_path, version, table_type, index):
    path = str(tmp_path / "t")
    options = {**form_of(version, table_type), **KINDS[index], "hoodie.datasource.compaction.async.enable": "false"}
    Engine(path, options).write(0, batch("abcd", 1_000_000, 5_000_000, MILLIS))  # as Flink writes: nobody else is asked
    engine = Engine(path, options)
    with capture_logs() as logs:
        engine.write(1, batch("ae", SOME, 6_000_999, MICROS))
        engine.write(2, batch("bf", -1, 6_000_000, MICROS))  # before 1970
        engine.write(3, batch("ac", 1_000_000, 4_999_999, MICROS))  # late
        deleted = batch("d", 0, 7_000_000, MICROS).append_column("_hoodie_is_deleted", pa.array([True]))
        engine.write(4, deleted)
    [told] = [entry for entry in logs if entry["event"] == "times_rounded_down"]
    assert (told["log_level"], told["columns"]) == ("warning", ["ts", "at", "s.at"])
    down = SOME // 1000 * 1000
    wanted = {"a": down, "b": -1000, "c": 1_000_000, "e": down, "f": -1000}
    assert moments(path) == wanted
    if table_type == "MERGE_ON_READ":
        HudiTable.open(path).compact()
        assert moments(path) == wanted
    assert HudiTable.open(path).scan(where=[("at", "<", "1970-01-01T00:00:00Z")]).to_arrow().num_rows == 2
