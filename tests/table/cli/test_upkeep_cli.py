"""The commands that keep a table, as a cron job would run them."""

import subprocess
import sys

import pyarrow as pa
import pytest
from command_line import said
from engine import Engine, key_set, rows
from snapshots import base_files

from hudistream import HudiTable
from streaming.arrow_sink import ArrowSink
from table import read_table
from table.cli.main import main
from table.errors import BatchOrderError
from table.inspect.explain import explain_batch, explain_files, explain_packing
from table.options.write_options import parse_options
from table.view.file_group import BaseFile

NO_GRACE = ("--set", "hudistream.clean.grace.ms=0")


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path)
    for number in range(6):
        engine.write(number, rows(range(10 * number, 10 * number + 10)))
    return path


def test_clean_says_what_it_would_do_and_does_it(path, capsys):
    before = base_files(path)
    text = said(capsys, "clean", path, "--dry-run", "--set", "hoodie.cleaner.commits.retained=2", *NO_GRACE)
    assert base_files(path) == before
    named = sorted(line.split()[3] for line in text.splitlines() if line.startswith("  delete"))
    assert "9 of 18 files would be deleted" in text.splitlines()[-1]
    assert "it is the newest version" not in text
    assert "it is the newest version" in said(
        capsys, "clean", path, "--dry-run", "--all", "--set", "clean.retain_commits=2", *NO_GRACE
    )
    assert "9 files deleted, 0 could not be" in said(
        capsys, "clean", path, "--set", "clean.retain_commits=2", *NO_GRACE
    )
    assert sorted(set(before) - set(base_files(path))) == named
    assert "nothing to clean" in said(capsys, "clean", path, "--set", "clean.retain_commits=2", *NO_GRACE)


def test_all_without_a_dry_run_is_refused_and_nothing_is_deleted(path, capsys):
    before = base_files(path)
    assert "--dry-run" in said(capsys, "clean", path, "--all", *NO_GRACE, code=2)
    assert base_files(path) == before


def test_savepoint_rollback_restore_and_archive(path, capsys, tmp_path):
    time = said(capsys, "savepoint", "create", path, "--comment", "x").split()[1]
    listed = said(capsys, "savepoint", "list", path)
    assert listed.startswith(f"{time}  made ")
    assert listed.strip().endswith("s ago: x")
    Engine(path).write(6, rows([900]))
    last = HudiTable.open(path).load_timeline().completed_writes[-1].time
    assert "is batch 6 of the stream with sink id 'default_single_writer'" in said(
        capsys, "rollback", path, last, code=1
    )
    assert last in said(capsys, "rollback", path, last, "--force")
    Engine(path).write(6, rows([901]))
    assert "1 commit undone" in said(capsys, "savepoint", "restore", path, time, "--force")
    assert len(key_set(read_table(path))) == 60
    for what in ("delete", "restore"):
        assert main(["savepoint", what, path]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert f"savepoint {what}: the INSTANT of the savepoint is missing" in err
        assert f"hudistream savepoint list {path}" in err
    said(capsys, "savepoint", "delete", path, time)
    assert "no savepoints" in said(capsys, "savepoint", "list", path)
    options = tmp_path / "options"
    options.write_text("hoodie.keep.min.commits=3\nhoodie.keep.max.commits=4\nhoodie.clean.commits.retained=2\n")
    assert "archived 3 instants to .hoodie/" in said(capsys, "archive", path, "--options", str(options))
    assert "archived 0 instants" in said(capsys, "archive", path, "--options", str(options))
    assert "no commit 123" in said(capsys, "rollback", path, "123", code=1)


def test_explain_has_a_reason_for_every_file(path, capsys):
    options = parse_options({"hoodie.clean.commits.retained": "2", "hudistream.clean.grace.ms": "0"}).options
    explained = list(explain_files(HudiTable.open(path), options))
    assert sorted(e.file.path for e in explained) == base_files(path)
    assert sum(bool(e.packing) for e in explained) == 3
    text = said(capsys, "explain", path, "--set", "hoodie.clean.commits.retained=2", *NO_GRACE)
    assert sum(".parquet" in line for line in text.splitlines()) == 18
    assert "cleaning: deletes it: replaced before" in text
    assert "packing:  small: takes rows first" in text
    assert "18 files" in text.splitlines()[-1]
    assert "9 would be deleted" in text.splitlines()[-1]
    assert text.splitlines()[-1].endswith("3 would take rows")


def test_why_a_file_takes_rows_or_not():
    options = parse_options({"hoodie.parquet.small.file.limit": "100", "hoodie.parquet.max.file.size": "120"}).options
    off = parse_options({"hoodie.parquet.small.file.limit": "0"}).options
    file = BaseFile("p", "f", "f", "1", 99)
    takes, why = explain_packing(file, options)
    assert takes
    assert "21 bytes left" in why
    takes, why = explain_packing(BaseFile("p", "f", "f", "1", 100), options)
    assert not takes
    assert "full enough: 100 bytes" in why
    takes, why = explain_packing(file, off)
    assert not takes
    assert "packing is off" in why


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"hoodie.datasource.write.operation": "bulk_insert"}, "bulk_insert adds no rows"),
        ({"hoodie.datasource.write.operation": "insert_overwrite"}, "insert_overwrite adds no rows"),
        ({"hoodie.index.type": "BUCKET", "hoodie.datasource.write.operation": "upsert"}, "the hash of a key decides"),
    ],
)
def test_why_no_file_takes_rows(tmp_path, given, said):
    """As the batch that comes next: no file group of those that are there gets a row because it is small."""
    path, options = str(tmp_path / "t"), parse_options(given).options
    takes, why = explain_packing(BaseFile("p", "f", "f", "1", 99), options)
    assert not takes
    assert said in why
    with ArrowSink(path, given, key="id") as sink:
        sink.write(pa.table({"id": ["a"]}), operation="upsert" if "BUCKET" in str(given) else "insert")
        assert sink.write(pa.table({"id": ["b"]})).files_topped_up == 0


def test_explain_refuses_a_batch_behind_one_that_was_undone_as_the_sink_does(tmp_path):
    path = str(tmp_path / "t")

    def write(number):
        with ArrowSink(path, {"hoodie.datasource.write.streaming.checkpoint.identifier": "s"}, key="id") as sink:
            return sink.write(pa.table({"id": [str(number)]}), batch_id=number)

    write(0)
    undone = [write(1).instant_time, write(2).instant_time]
    for time in reversed(undone):
        HudiTable.open(path).roll_back(time, force=True)
    assert explain_batch(HudiTable.open(path), "s", 1).verdict == "write"
    told = explain_batch(HudiTable.open(path), "s", 2)
    assert (told.verdict, told.last.batch_id) == ("refuse", 0)
    with pytest.raises(BatchOrderError) as refused:
        write(2)
    assert told.reason == str(refused.value).split(" [", maxsplit=1)[0]
    assert explain_batch(HudiTable.open(path), "other", 2).verdict == "write"


def test_the_commands_need_no_spark(path):
    run = f"sys.exit(main(['clean', {path!r}]))"
    code = f"import sys; sys.modules['pyspark'] = None; from table.cli.main import main; {run}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_explain_says_what_becomes_of_a_batch_and_why(path, capsys):
    assert "skip: batch 5 of query q is committed" in said(capsys, "explain", path, "--batch", "5")
    assert "write: the last batch committed is 5" in said(capsys, "explain", path, "--batch", "6")
    assert "refuse: batch 4 of sink" in said(capsys, "explain", path, "--batch", "4")
    assert "came from another query (q)" in said(capsys, "explain", path, "--batch", "5", "--query", "other")
    other = "hoodie.datasource.write.streaming.checkpoint.identifier=other"
    assert "any first batch is fine" in said(capsys, "explain", path, "--batch", "5", "--set", other)
