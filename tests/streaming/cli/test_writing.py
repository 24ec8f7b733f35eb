"""`hudistream delete` and `hudistream replay`, as a person calls them."""

import datetime
import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from hudistream import ArrowSink, read_bad_rows, read_table
from streaming.cli.main import main
from table.hudi_table import HudiTable
from table.timeline.instant import Action

DAY = datetime.date(2026, 1, 2)


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "t")
    sink = ArrowSink(path, {"hudistream.bad.rows": "quarantine"}, key="id", order_by="ts", partition_by="day")
    days = [DAY, DAY, datetime.date(2026, 1, 3), DAY]
    sink.write(pa.table({"id": ["a", "b", "c", None], "ts": [1, 2, 3, 4], "day": days}), batch_id=0)
    sink.stop()
    return path


def said(capsys, *words, code=0):
    """What the command prints on both outputs; asserts its exit code."""
    assert main(words) == code
    told = capsys.readouterr()
    return told.out + told.err


def ids(path):
    return sorted(read_table(path)["id"].to_pylist())


def test_rows_are_deleted_by_the_values_of_columns(path, capsys):
    assert said(capsys, "delete", path, "--where", "day=2026-01-02", "--dry-run") == "rows that would be deleted: 2\n"
    assert ids(path) == ["a", "b", "c"]
    told = said(capsys, "delete", path, "--where", "day=2026-01-02", "--where", "ts=2")
    newest = HudiTable.open(path).load_timeline().completed_writes[-1].time
    assert told == f"deleted rows: 1 (commit {newest})\n"
    assert ids(path) == ["a", "c"]
    assert said(capsys, "delete", path, "--where", "id=nobody") == "nothing to write\n"


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("colour=red", "no column 'colour'; it has id, ts, day"),
        ("ts=soon", "ts=soon: the column has the type int64"),
    ],
)
def test_a_condition_that_cannot_be_is_refused_and_nothing_is_deleted(path, capsys, where, told):
    assert told in said(capsys, "delete", path, "--where", where, code=2)
    assert ids(path) == ["a", "b", "c"]


def test_a_delete_without_a_condition_is_refused(path):
    with pytest.raises(SystemExit):
        main(["delete", path])
    assert ids(path) == ["a", "b", "c"]


def test_bad_rows_go_out_are_corrected_and_come_back_once(path, capsys, tmp_path):
    file = str(tmp_path / "bad.parquet")
    told = said(capsys, "bad-rows", path, "--output", file)
    assert told.startswith(f"1 bad rows written to {file}: ")
    assert told.endswith(f"`hudistream replay {path} --rows {file}`\n")
    rows = pq.read_table(file)
    pq.write_table(rows.set_column(rows.column_names.index("id"), "id", [["d"]]), file)
    assert "written rows: 1; bad still, and put aside anew: 0" in said(capsys, "replay", path, "--rows", file)
    assert ids(path) == ["a", "b", "c", "d"]
    assert said(capsys, "replay", path, "--rows", file) == "nothing to write\n"
    assert len(read_bad_rows(path)) == 0


def test_corrected_rows_may_be_text(path, capsys, tmp_path):
    rows, file = read_bad_rows(path), str(tmp_path / "rows.csv")
    rows = rows.set_column(rows.column_names.index("id"), "id", [["d"]])
    told = [name for name in rows.column_names if name.startswith("_hudistream")]
    keep = [name for name in rows.column_names if name not in told or name.endswith(("_file", "_row"))]
    pa.csv.write_csv(rows.select(keep), file)
    assert "written rows: 1" in said(capsys, "replay", path, "--rows", file)
    assert ids(path) == ["a", "b", "c", "d"]


TEXTS = ["01069", "1e5", "NA", "nan", "2026-01-02 00:00:00", "12345678901234567890123", "", "true"]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_texts_of_a_file_stay_texts(tmp_path, capsys, ending):
    path, file = str(tmp_path / "u"), tmp_path / f"rows.{ending}"
    with ArrowSink(path, {"hudistream.bad.rows": "quarantine"}, key="id") as sink:
        numbers = pa.array([1, *[None] * len(TEXTS)], pa.decimal128(9, 2))
        sink.write(pa.table({"id": ["a", *[None] * len(TEXTS)], "v": ["x", *TEXTS], "n": numbers}))
    rows = read_bad_rows(path)
    rows = rows.set_column(rows.column_names.index("id"), "id", [[f"k{n}" for n in range(len(TEXTS))]])
    rows = rows.drop_columns([name for name in rows.column_names if name.endswith(("_reason", "_time", "_replayed"))])
    if ending == "csv":
        pa.csv.write_csv(rows, file)
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows.drop_columns(["n"]).to_pylist()))
    more = ("--set", "hudistream.schema.mode=reconcile") if ending == "jsonl" else ()
    assert f"written rows: {len(TEXTS)}" in said(capsys, "replay", path, "--rows", str(file), *more)
    assert read_table(path).sort_by("id")["v"].to_pylist() == ["x", *TEXTS]


def test_a_value_that_its_column_cannot_hold_names_the_file(path, capsys, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("id,ts\na,soon\n")
    assert "rows.csv: In CSV column #1" in said(capsys, "replay", path, "--rows", str(file), code=2)


def test_rows_of_another_kind_of_file_are_refused(path, capsys):
    assert "the name has to end in .parquet, .jsonl, .json, .csv" in said(
        capsys, "replay", path, "--rows", "rows.xlsx", code=2
    )


def test_the_commands_need_no_pyspark(path):
    run = f"sys.exit(main(['delete', {path!r}, '--where', 'id=a']))"
    code = f"import sys; sys.modules['pyspark'] = None; from streaming.cli.main import main; {run}"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.startswith(
        b"deleted rows: 1"
    )
    assert ids(path) == ["b", "c"]


def test_a_delete_cleans_nothing_that_the_stream_retains(path):
    for number in range(12):  # more commits than a clean retains by default
        with ArrowSink(path, {"hoodie.clean.automatic": "false"}, key="id", order_by="ts") as sink:
            sink.write(pa.table({"id": ["a"], "ts": [10 + number], "day": [DAY]}))
    assert main(["delete", path, "--where", "id=b"]) == 0
    actions = {instant.action for instant in HudiTable.open(path).load_timeline()}
    assert Action.CLEAN not in actions
    assert main(["delete", path, "--where", "id=c", "--set", "hoodie.table.services.enabled=true"]) == 0
    assert Action.CLEAN in {instant.action for instant in HudiTable.open(path).load_timeline()}


@pytest.mark.parametrize("command", ["delete", "erase"])
def test_a_command_beside_a_stream_is_refused_once(tmp_path, capfd, command):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id") as sink:
        sink.write(pa.table({"id": ["a", "b"]}))
        capfd.readouterr()
        assert main([command, path, "--where", "id=a"]) == 1
    assert capfd.readouterr().err.count("is being written by a live writer") == 1
    assert read_table(path).num_rows == 2
