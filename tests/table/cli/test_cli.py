"""The command line itself: what goes where, exit codes, help, options of the storage, programs that read it."""

import argparse
import json
import logging
import os
import re
import shlex
import subprocess
import sys

import pytest
import structlog
from command_line import said
from engine import Engine, rows
from tiers import quick, slow

from hudistream import HudiTable
from streaming.cli.main import MORE, build_parser, main
from table.cli.main import GROUPS
from table.inspect.overview import load_overview
from table.version import VERSION

RUN = "import sys; from streaming.cli.main import main; sys.exit(main(sys.argv[1:]))"
UPSERT = {"hoodie.datasource.write.operation": "upsert"}
RETAIN = ("--set", "hoodie.clean.commits.retained=1", "--set", "hudistream.clean.grace.ms=0")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Three commits: nine rows are added; six of them change; three of those change and nine are added."""
    path = str(tmp_path_factory.mktemp("cli") / "t")
    engine = Engine(path, UPSERT)
    engine.write(0, rows(range(9)))
    engine.write(1, rows(range(6), ts=1))
    engine.write(2, rows([*range(3), *range(100, 109)], ts=2))
    return path


def answered(capsys, *arguments, code=0):
    """What a command says on standard output; on standard error it says nothing."""
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def ran(*arguments, stdout=subprocess.PIPE):
    return subprocess.run([sys.executable, "-c", RUN, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True,
                          check=False)  # fmt: skip


def all_commands(parser, name=""):
    """Every command that takes a PATH, by its full name."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield name.strip(), parser
    for action in below:
        for word, command in action.choices.items():
            yield from all_commands(command, f"{name} {word}")


COMMANDS = dict(all_commands(build_parser()))
MORE_WORDS = {"rollback": ["20260102030405678"], "query": ["select 1"]}
MORE_WORDS |= {
    "upgrade": ["--to", "8"],
    "downgrade": ["--to", "6"],
    "ddl": ["--for", "hive"],
    "manifest": ["--for", "bigquery"],
    "delete": ["--where", "user=1"],
    "erase": ["--where", "user=1"],
    "replay": ["--rows", "rows.parquet"],
}


def test_these_are_all_the_commands():
    assert sorted(COMMANDS) == [
        "accept-loss", "archive", "bad-rows", "changes",
        "check", "checkpoint", "clean", "cluster", "compact", "ddl", "delete", "doctor",
        "downgrade", "erase", "explain", "files",
        "health", "history",
        "lock break", "lock show", "manifest", "options", "query", "replay", "report", "rollback", "savepoint create",
        "savepoint delete",
        "savepoint list", "savepoint restore", "schema", "show", "sync", "upgrade", "watch", "why",
    ]  # fmt: skip


def test_the_help_of_every_command_has_an_example_that_parses():
    parser = build_parser()
    for name, command in COMMANDS.items():
        text = command.format_help()
        examples = [line.strip() for line in text.split("example", 1)[1].splitlines()[1:] if line.strip()]
        assert examples, name
        for example in examples:
            assert example.startswith(f"hudistream {name} ")
            parser.parse_args(shlex.split(example)[1:])


def test_every_command_of_a_table_takes_storage_options_and_verbose():
    parser = build_parser()
    for name in sorted(COMMANDS.keys() - {"options", "why"}):
        words = [*name.split(), "s3://bucket/t", *MORE_WORDS.get(name, [])]
        given = parser.parse_args([*words, "--storage-option", "key=a=b", "--storage-option", "anon=true", "-v"])
        assert given.storage_options == [("key", "a=b"), ("anon", "true")], name
        assert given.verbose, name
        assert parser.parse_args(["-v", *words]).verbose, name
        assert not parser.parse_args(words).verbose, name


def test_without_the_extra_the_command_says_how_to_get_it():
    hidden = "import sys; sys.modules['rich'] = None; "
    program = hidden + "from streaming.cli.main import main; sys.exit(main(['show', 'x']))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("hudistream: the command hudistream needs the extra 'cli'"), done.stderr


def test_the_help_groups_all_commands_within_80_columns(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 80
    grouped = [name for names in (*GROUPS.values(), *(more.names for more in MORE)) for name in names]
    assert sorted(grouped) == sorted({name.split()[0] for name in COMMANDS})
    for name in grouped:
        assert re.search(rf"^  {name} +\w", told, re.MULTILINE), name
    assert re.search(r"^keep up:$", told, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "code", "said_words"),
    [
        (["small.file", "clustering"], 0, ["hoodie.clustering.plan.strategy.small.file.limit", "default:", "300"]),
        (["hoodie.datasource.write.precombine.field"], 0, ["hoodie.datasource.write.precombine.field", "class:"]),
        (["partition.ttl.inline"], 0, ["class:    refused", "accepted: false"]),
        (["curve.build"], 0, ["without effect"]),
        (["no.such.word"], 1, ["no option holds no.such.word"]),
        (["hoodie"], 0, ["more: give another word"]),
    ],
)
def test_an_option_is_explained_by_a_word_of_it(capsys, words, code, said_words):
    told = said(capsys, "options", *words, code=code)
    for word in said_words:
        assert word in told
    assert all(len(line) <= 80 or " " not in line.strip() for line in told.splitlines())


def test_options_as_json(capsys):
    told = json.loads(said(capsys, "options", "clustering.inline.max", "--format", "json"))
    (row,) = told["options"]
    assert (row["key"], row["default"], row["option_class"]) == (
        "hoodie.clustering.inline.max.commits",
        "4",
        "honoured",
    )


def test_storage_options_reach_the_storage(capsys, monkeypatch):
    seen = []

    def opens(path, options=None):
        seen.append(options)
        raise OSError("no network")

    monkeypatch.setattr("table.hudi_table.open_storage", opens)
    nested = 'client_kwargs={"endpoint_url": "http://localhost:9000"}'
    options = ("--storage-option", nested, "--storage-option", "anon=true", "--storage-option", "key=0123")
    for command in (["show"], ["explain"], ["savepoint", "list"], ["check"]):
        assert main([*command, "s3://bucket/t", *options]) == 1
        assert "no network" in capsys.readouterr().err
    expected = {"client_kwargs": {"endpoint_url": "http://localhost:9000"}, "anon": True, "key": "0123"}
    assert seen == [expected] * 4
    assert main(["show", "s3://bucket/t", "--storage-option", "client_kwargs={no"]) == 1
    assert "client_kwargs" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--storage-option", "--set"])
def test_what_is_no_pair_is_named(option, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["clean", "t", option, "anon"])
    assert ended.value.code == 2
    assert "'anon' is not KEY=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize(("word", "meant"), [("helth", "; did you mean health?"), ("xyzzy", "")])
def test_an_unknown_command_is_named_in_one_line(word, meant, capsys):
    with pytest.raises(SystemExit) as ended:
        main([word, "t"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"hudistream: there is no command '{word}'{meant}; hudistream --help lists all\n"


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"hudistream {VERSION}\n"


def test_show_says_what_each_commit_did(path, capsys):
    lines = answered(capsys, "show", path).splitlines()
    assert "3 live files" in lines[0]
    commits = [re.split(r"\s{2,}", line) for line in lines if " commit " in line]
    figures = [commit[2:7] for commit in commits]
    assert figures == [["UPSERT", "9", "3", "0", "3"], ["UPSERT", "0", "6", "0", "3"], ["UPSERT", "9", "0", "0", "3"]]
    assert all(commit[7].endswith("KiB") for commit in commits)


@pytest.mark.parametrize("command", ["show", "history", "files", "schema", "changes"])
@pytest.mark.parametrize("columns", [80, 100])
def test_a_terminal_is_wide_enough_for_every_table(path, capsys, monkeypatch, command, columns):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: os.terminal_size((columns, 24)))
    said = re.sub(r"\x1b\[[0-9;]*m", "", answered(capsys, command, path))
    grids = [line for line in said.splitlines() if not line.startswith("t  version")]  # the headline is a sentence
    assert max(map(len, grids)) <= columns
    if command in ("show", "files"):
        ids = [group.file_id for groups in load_overview(path).partitions.values() for group in groups]
        assert all(file_id[:8] in said for file_id in ids)


def test_a_savepoint_is_a_mark_at_its_commit(path, capsys):
    time = HudiTable.open(path).create_savepoint()
    for command in ("history", "show"):
        said = answered(capsys, command, path)
        assert [line.split()[:3] for line in said.splitlines() if time in line and "commit" in line] == [
            [time, "commit", "⚑"]
        ]
        assert "savepoint   " not in said
    rows = HudiTable.open(path).history(3).to_pylist()  # for programs it is an instant, as in the timeline
    assert {(row["instant"] == time, row["action"], row["savepoint"]) for row in rows} == {
        (True, "commit", True),
        (True, "savepoint", False),
        (False, "commit", False),
    }
    HudiTable.open(path).delete_savepoint(time)
    assert "⚑" not in answered(capsys, "history", path)


@pytest.mark.parametrize("columns", quick(1, ["40", "80"]))
def test_show_cuts_no_file_id_off(path, columns):
    names = [group.file_id for groups in load_overview(path).partitions.values() for group in groups]
    done = subprocess.run([sys.executable, "-c", RUN, "show", path], capture_output=True, text=True, check=True,
                          env={**os.environ, "COLUMNS": columns})  # fmt: skip
    assert len(names) == 3
    assert all(name in done.stdout for name in names)


def test_show_as_json(path, capsys):
    told = json.loads(answered(capsys, "show", path, "--format", "json", "--limit", "2"))
    assert (told["live_files"], told["total_files"], told["partition_paths"]) == (3, 9, 3)
    assert [(i["rows_added"], i["rows_updated"], i["operation"]) for i in told["instants"]] == [
        (9, 3, "UPSERT"),
        (0, 6, "UPSERT"),
    ]
    assert len(told["file_groups"]) == 2
    assert sum(i["bytes_written"] for i in told["instants"]) > 1000


def test_show_reads_the_metadata_of_no_more_commits_than_it_shows(path, monkeypatch):
    from table.timeline import commit_cache

    read = []
    inner = commit_cache.find_instant
    monkeypatch.setattr(
        commit_cache, "find_instant", lambda storage, instant: read.append(instant) or inner(storage, instant)
    )
    assert main(["show", path, "--limit", "1"]) == 0
    assert len(read) == 1


def test_a_damaged_commit_does_not_keep_show_from_the_rest(tmp_path, capsys):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(3)))
    Engine(path).write(1, rows(range(3, 6)))
    first = HudiTable.open(path).load_timeline().completed_writes[0]
    with open(os.path.join(path, ".hoodie", first.file_name), "w") as file:
        file.write("{")
    assert sum("INSERT" in line for line in answered(capsys, "show", path).splitlines()) == 2  # by its end record
    os.remove(os.path.join(path, ".hoodie/.hudistream/ends", f"{first.time}.commit"))
    lines = answered(capsys, "show", path).splitlines()
    (damaged,) = [line for line in lines if first.time in line and "commit" in line]
    assert "INSERT" not in damaged
    assert sum("INSERT" in line for line in lines) == 1


def test_a_dry_run_has_a_layout_a_summary_and_json(path, capsys):
    lines = answered(capsys, "clean", path, "--dry-run", "--all", *RETAIN).splitlines()
    headings = [line for line in lines[:-1] if not line.startswith("  ")]
    assert [heading.split(":")[0] for heading in headings] == ["p0", "p1", "p2"]
    assert all("3 files" in heading and "1 would be deleted" in heading for heading in headings)
    files = [line.split(maxsplit=4) for line in lines if line.startswith("  ")]
    assert [verdict for verdict, *_ in files].count("delete") == 3
    assert len(files) == 9
    told = json.loads(answered(capsys, "clean", path, "--dry-run", "--all", "--format", "json", *RETAIN))
    assert [(f["path"], f["deleted"]) for f in told["files"]] == [(f[3], f[0] == "delete") for f in files]
    assert {os.path.getsize(os.path.join(path, f["path"])) == f["size_bytes"] for f in told["files"]} == {True}
    summary = told["summary"]
    assert (summary["files"], summary["files_deleted"]) == (9, 3)
    assert summary["bytes_deleted"] == sum(f["size_bytes"] for f in told["files"] if f["deleted"])
    assert lines[-1].startswith("3 of 9 files would be deleted: ")
    short = answered(capsys, "clean", path, "--dry-run", *RETAIN).splitlines()
    assert short == [line for line in lines if not line.startswith("  keep")]
    told = json.loads(answered(capsys, "clean", path, "--dry-run", "--format", "json", *RETAIN))
    assert ([f["deleted"] for f in told["files"]], told["summary"]) == ([True] * 3, summary)


def test_explain_as_json(path, capsys):
    told = json.loads(answered(capsys, "explain", path, "--format", "json", *RETAIN))
    assert told["summary"]["files_that_take_rows"] == 3
    assert told["summary"]["files_deleted"] == 3
    newest = [f for f in told["files"] if f["takes_rows"]]
    assert {f["instant_time"] for f in newest} == {HudiTable.open(path).load_timeline().completed_writes[-1].time}
    assert all(f["packing"].startswith("small: ") and not f["deleted"] and f["rule"] for f in newest)
    assert all(f["packing"] is None for f in told["files"] if not f["takes_rows"])
    told = json.loads(answered(capsys, "explain", path, "--batch", "2", "--format", "json"))
    assert (told["verdict"], told["table"]) == ("skip", path)


def test_explain_of_an_empty_list_is_no_error(tmp_path, capsys):
    from hudistream import create_table
    from table.config.table_config import load_table_config
    from table.storage.local import LocalStorage

    full = str(tmp_path / "full")
    Engine(full).write(0, rows([1]))
    create_table(LocalStorage(str(tmp_path / "t")), load_table_config(LocalStorage(full)))
    assert answered(capsys, "explain", str(tmp_path / "t")).startswith("0 files, 0 B")
    assert answered(capsys, "clean", str(tmp_path / "t"), "--dry-run").startswith("0 of 0 files")


@pytest.mark.parametrize(
    "arguments", [("show",), *map(slow, [["explain"], ["clean", "--dry-run"], ["check", "--format", "json"]])]
)
def test_a_reader_that_has_left_is_no_error(path, arguments):
    command, *rest = arguments
    reader, writer = os.pipe()
    os.close(reader)
    done = ran(command, path, *rest, stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.slow
def test_the_log_is_on_standard_error_and_only_for_whoever_wants_it(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(3)))
    done = ran("savepoint", "create", path)
    assert done.stderr == ""
    (line,) = done.stdout.splitlines()
    time = line.removeprefix("savepoint ")
    done = ran("savepoint", "delete", path, time, "-v")
    assert done.stdout == f"deleted savepoint {time}\n"
    assert f"savepoint_deleted table={path} instant_time={time}" in done.stderr
    done = ran("-v", "check", path, "--format", "json")
    assert json.loads(done.stdout)["table"] == path
    assert "table_checked" in done.stderr


def test_a_command_leaves_logging_as_it_was(path, capsys):
    structlog.reset_defaults()
    logger = logging.getLogger("hudistream")
    before = (logger.level, list(logger.handlers), logger.propagate)
    assert main(["show", path, "-v"]) == 0
    assert main(["show", path + "x", "-v"]) == 1
    assert (logger.level, list(logger.handlers), logger.propagate) == before
