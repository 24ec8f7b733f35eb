"""Rows that were erased lie in no file of the table, or the report names the file and the reason."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudistream import ArrowSink, HudiTable, InvalidConfigError, erase, read_table
from streaming.cli.main import main

FORMS = [("cow", 6), ("mor", 6), ("cow", 8), ("mor", 9)]
AT_ONCE = {"hudistream.clean.grace.ms": "0"}
SECRET = "the secret of 4711"


def fill(path, table_type, version, **more):
    options = {"hoodie.write.table.version": str(version), "hoodie.table.services.enabled": "false", **more}
    with ArrowSink(path, options, key="id", order_by="ts", table_type=table_type) as sink:
        for batch in range(4):
            users = [f"u{n}" for n in range(12)] + ["4711"]
            told = [f"v{batch}"] * 12 + [f"{SECRET} {batch}"]
            sink.write(pa.table({"id": users, "ts": [batch] * 13, "v": told}))
    assert holds_secret(path)


def holds_secret(path):
    """Files whose rows hold the secret, visible or not: Parquet files are read whole, other files by their bytes."""
    found = []
    for file in Path(path).rglob("*"):
        if file.is_file() and file.suffix == ".parquet":
            found += [file] if any(SECRET in str(v) for v in pq.read_table(file).to_pylist()) else []
        elif file.is_file() and SECRET.encode() in file.read_bytes():
            found.append(file)
    return found


@pytest.mark.parametrize(("table_type", "version"), FORMS)
def test_no_file_holds_the_rows(tmp_path, table_type, version):
    path = str(tmp_path / "t")
    fill(path, table_type, version)
    done = erase(path, where=[("id", "=", "4711")], options=AT_ONCE)
    assert (done.keys, done.deleted, done.is_final, done.traces) == (1, 1, True, ())
    assert not holds_secret(path)
    assert sorted(read_table(path).column("id").to_pylist()) == sorted(f"u{n}" for n in range(12))
    again = erase(path, ["4711"], options=AT_ONCE)
    assert (again.deleted, again.instant_time, again.is_final) == (0, None, True)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_what_holds_a_file_is_named(tmp_path, table_type):
    path = str(tmp_path / "t")
    fill(path, table_type, 6)
    savepoint = HudiTable.open(path).create_savepoint()
    done = erase(path, ["4711"], options=AT_ONCE)
    assert (done.deleted, done.is_final) == (1, False)
    assert {trace.why for trace in done.traces} == {"stays: a savepoint holds it"}
    assert all(trace.rows == 1 for trace in done.traces if trace.path.endswith(".parquet"))
    assert holds_secret(path)
    HudiTable.open(path).delete_savepoint(savepoint)
    assert erase(path, ["4711"], options=AT_ONCE).is_final
    assert not holds_secret(path)


def test_readers_have_their_time(tmp_path):
    path = str(tmp_path / "t")
    fill(path, "cow", 6)
    done = erase(path, ["4711"], options={"hudistream.clean.readers.max.share": "1000"})
    assert not done.is_final
    assert all("grace" in trace.why for trace in done.traces), done.traces
    assert len(done.traces) == len(holds_secret(path))


def test_bad_rows_are_counted(tmp_path):
    path = str(tmp_path / "t")
    fill(path, "cow", 6)
    options = {"hudistream.bad.rows": "quarantine"}
    with ArrowSink(path, options, key="id", order_by="ts") as sink:
        rows = pa.table({"id": ["4711", "u1"], "ts": pa.array([None, 9], pa.int64()), "v": ["x", "y"]})
        assert sink.write(rows).bad_rows == 1
    done = erase(path, ["4711"], options=AT_ONCE)
    assert (done.traces, done.bad_rows, done.is_final) == ((), 1, False)


def test_the_command(tmp_path, capsys):
    path = str(tmp_path / "t")
    fill(path, "cow", 6)
    assert main(["erase", path]) == 2
    waits = ["--set", "hudistream.clean.readers.max.share=1000"]
    assert main(["erase", path, "--where", "id=4711", *waits]) == 1
    assert "not final yet" in capsys.readouterr().out
    assert main(["erase", path, "--keys", "4711,unknown", "--set", "hudistream.clean.grace.ms=0"]) == 0
    assert "no file of the table holds these rows" in capsys.readouterr().out
    assert not holds_secret(path)
    with pytest.raises(InvalidConfigError, match="keys, or where"):
        erase(path)
