"""Commands that keep a table: clean, archive, rollback, savepoint, explain, check. No Spark: a cron job will do."""

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

from table.config.properties import parse_properties
from table.hudi_table import HudiTable
from table.inspect.explain import explain_batch, explain_files
from table.options.write_options import WriteOptions, parse_options
from table.services.archival.archival import archive
from table.services.check.check import DEFAULT_SAMPLE, check
from table.services.check.finding import CheckReport, Finding, Repair
from table.services.clean.clean import clean
from table.services.clean.judgement import judge_files
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint, delete_savepoint
from table.timeline.instant import Action

FORCE = "also undo batches of streams, whose checkpoints go on taking them for done"


def load_options(file: str | None, pairs: Sequence[str], path: str) -> WriteOptions:
    """Options of a file (``key=value`` a line) and of the command line, which wins.

    Raises:
        InvalidConfigError: as a sink would.
    """
    given: dict[str, Any] = {}
    if file is not None:
        with open(file, "rb") as opened:
            given.update(parse_properties(opened.read()))
    given.update((key, value) for key, _, value in (pair.partition("=") for pair in pairs))
    return parse_options(given, path).options


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the commands."""
    for name, text in (
        ("clean", "delete file versions that nobody needs any more; finishes cleans that were begun"),
        ("archive", "move old instants from the timeline to the archive"),
        ("explain", "for every file: would cleaning delete it, would a batch add to it, and why"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("path", help="the table")
        command.add_argument("--options", help="a file of hoodie.* options, key=value a line")
        command.add_argument(
            "--set", action="append", default=[], metavar="KEY=VALUE", help="one option; may be repeated"
        )
        if name == "explain":
            command.add_argument("--batch", type=int, help="instead: would this batch be written, skipped or refused?")
            command.add_argument("--query", help="id of its streaming query; without it, the one that wrote last")
        if name == "clean":
            command.add_argument("--dry-run", action="store_true", help="say what would go and why; delete nothing")
    undo = commands.add_parser("rollback", help="undo a commit: one that failed, or the newest")
    undo.add_argument("path", help="the table")
    undo.add_argument("instant", help="its instant time")
    undo.add_argument("--force", action="store_true", help=FORCE)
    savepoint = commands.add_parser("savepoint", help="hold a commit's files, let them go, go back to them")
    savepoint.add_argument("what", choices=("create", "delete", "restore", "list"))
    savepoint.add_argument("path", help="the table")
    savepoint.add_argument("instant", nargs="?", help="a commit's instant time; create: the newest without it")
    savepoint.add_argument("--comment", default="", help="why")
    savepoint.add_argument("--force", action="store_true", help=f"restore: {FORCE}")

    checker = commands.add_parser("check", help="look at the whole table; tell what does not fit, and mend it")
    checker.add_argument("path", help="the table")
    checker.add_argument("--repair", action="store_true", help="mend what is safe to mend; holds the table meanwhile")
    checker.add_argument(
        "--sample",
        type=_sample,
        default=DEFAULT_SAMPLE,
        metavar="N|all",
        help="how many files are read whole (default %(default)s)",
    )
    checker.add_argument("--format", choices=("text", "json"), default="text", help="default %(default)s")


def _sample(text: str) -> int | None:
    return None if text == "all" else max(0, int(text))


def run_check(given: argparse.Namespace) -> tuple[list[str], int]:
    """Checks a table. Returns lines to print, and the exit code: 1 where an error is left.

    Raises:
        HudiError: what `check` raises.
    """
    with redirect_stdout(sys.stderr):  # where the log goes; what is printed may be JSON for a program
        report = check(HudiTable.open(given.path), repair=given.repair, sample=given.sample)
    lines = [json.dumps(report.to_json(), indent=1)] if given.format == "json" else _told(report)
    return lines, 0 if report.is_sound else 1


def _told(report: CheckReport) -> list[str]:
    return [*(line for finding in report.findings for line in _told_of(finding)), report.verdict]


def _told_of(finding: Finding) -> list[str]:
    head = f"{finding.severity.value:8}{finding.kind.value}  {finding.where or '(the table)'}"
    lines = [head, f"        {finding.text}"]
    if finding.repair is Repair.DONE:
        return [*lines, "        mended"]
    if finding.why:
        lines.append(f"        not mended by --repair: {finding.why}")
    return [*lines, f"        what to do: {finding.advice}"] if finding.advice else lines


def run(given: argparse.Namespace) -> list[str]:
    """Carries a command out. Returns lines to print.

    Raises:
        HudiError: what the service raises.
    """
    table = HudiTable.open(given.path)
    if given.command == "rollback":
        roll_back(table, given.instant, force=given.force)
        return [f"rolled back {given.instant}"]
    if given.command == "savepoint":
        return _savepoint(table, given)
    options = load_options(given.options, given.set, given.path)
    if given.command == "clean":
        return _dry_run(table, options) if given.dry_run else _clean(table, options)
    if given.command == "archive":
        outcome = archive(table, options.archive, options.clean)
        return [f"archived {len(outcome.instants)} instants" + (f" to {outcome.path}" if outcome.path else "")]
    if given.batch is not None:
        told = explain_batch(table, options.sink.id, given.batch, given.query)
        return [f"{told.verdict}: {told.reason}"]
    return [
        f"{e.file.path}  {e.file.size_bytes} bytes  {e.cleaning}" + (f"  |  {e.packing}" if e.packing else "")
        for e in explain_files(table, options)
    ]


def _clean(table: HudiTable, options: WriteOptions) -> list[str]:
    done = clean(table, options.clean)
    return [
        f"clean {outcome.start_time}: {sum(map(len, outcome.deleted.values()))} files deleted, "
        f"{sum(map(len, outcome.failed.values()))} could not be"
        for outcome in done
    ] or ["nothing to clean"]


def _dry_run(table: HudiTable, options: WriteOptions) -> list[str]:
    lines, gone = [], 0
    for partition in judge_files(table, options.clean):
        for fate in partition.fates:
            gone += fate.deleted
            lines.append(f"{'delete' if fate.deleted else 'keep  '}  {fate.file.path}  ({fate.rule})")
    return [*lines, f"{gone} of {len(lines)} files would go"]


def _savepoint(table: HudiTable, given: argparse.Namespace) -> list[str]:
    if given.what == "list":
        found = table.load_timeline().completed_of(Action.SAVEPOINT)
        return [instant.time for instant in found] or ["no savepoints"]
    if given.what == "create":
        return [f"savepoint {create_savepoint(table, given.instant, comment=given.comment)}"]
    if given.instant is None:
        return [f"savepoint {given.what} needs an instant time: `hudistream savepoint list {given.path}` shows them"]
    if given.what == "delete":
        delete_savepoint(table, given.instant)
        return [f"deleted savepoint {given.instant}"]
    plan = restore_to_savepoint(table, given.instant, force=given.force)
    return [f"restored {given.instant}: {len(plan.instants)} commits undone"]
