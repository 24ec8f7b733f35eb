"""The command that looks at a table again and again: at its health, or at each new commit."""

import argparse
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass, field

from table import clock
from table.cli.arguments import add_command, add_format, add_options, at_least_one, load_given_settings, open_table
from table.cli.health import lines
from table.cli.output import UsageError, complain, plural, say
from table.errors import HudiError
from table.inspect.health import load_health
from table.inspect.health_facts import Health
from table.services.check.check import DEFAULT_SAMPLE
from table.services.check.commits import CommitChecks, CommitReport
from table.services.check.finding import Severity


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the command."""
    watch = add_command(
        commands,
        "watch",
        "show the health of a table live, or verify each new commit (--verify), until Ctrl-C",
        [
            "hudistream watch /data/lake/events",
            "hudistream watch /data/lake/events --every 30",
            "hudistream watch s3://lake/events --verify --metrics /var/lib/node_exporter/events.prom",
        ],
        _watch,
    )
    add_options(watch)
    watch.add_argument(
        "--every", type=at_least_one, default=5, metavar="SECONDS", help="between two looks (default %(default)s)"
    )
    watch.add_argument(
        "--verify",
        action="store_true",
        help="a line for each new commit: its files are there and whole, its keys once, the indexes know it; exit code "
        "1 once something was wrong",
    )
    watch.add_argument(
        "--sample",
        type=_files,
        default=DEFAULT_SAMPLE,
        metavar="N|all",
        help="with --verify: how many files of a commit are read (default %(default)s)",
    )
    watch.add_argument(
        "--commits", type=at_least_one, metavar="N", help="with --verify: end after so many commits, not by Ctrl-C"
    )
    watch.add_argument(
        "--metrics", metavar="FILE", help="with --verify: write counters for Prometheus' node exporter after each look"
    )
    add_format(watch)


def _files(text: str) -> int | None:
    return None if text == "all" else at_least_one(text)


def _watch(given: argparse.Namespace) -> int:
    if given.verify:
        return _verify(given)
    asked = [name for name in ("commits", "metrics") if getattr(given, name) is not None]
    if asked:
        raise UsageError(f"--{asked[0]} goes with --verify: without it, watch shows the health of the table")
    return _show(given)


def _show(given: argparse.Namespace) -> int:
    from rich.live import Live  # noqa: PLC0415 of the extra `cli`, as `table.cli.show` needs it
    from rich.text import Text  # noqa: PLC0415

    found = _look(given)
    if not sys.stdout.isatty():
        return _say_each(given, found)
    with Live(Text("\n".join(lines(found))), auto_refresh=False) as live:
        try:
            while True:
                live.update(Text("\n".join(lines(found))), refresh=True)
                clock.sleep_s(given.every)
                found = _look(given)
        except KeyboardInterrupt:
            return int(found.verdict)


def _say_each(given: argparse.Namespace, found: Health) -> int:
    """Writes the health of each look, for a file or a pipe."""
    try:
        while True:
            say([*lines(found), ""])
            clock.sleep_s(given.every)
            found = _look(given)
    except KeyboardInterrupt:
        return int(found.verdict)


def _look(given: argparse.Namespace) -> Health:
    return load_health(open_table(given), load_given_settings(given))


@dataclass
class Totals:
    """What was verified so far.

    Attributes:
        table: its address.
        commits: commits that were looked at.
        unsound: those in which something was wrong.
        failed: looks that failed, because the store did or the table could not be read.
        kinds: findings by kind, notes apart.
        looked_s: when a look succeeded last, in seconds since 1970; 0: none has.
    """

    table: str
    commits: int = 0
    unsound: int = 0
    failed: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    looked_s: float = 0.0

    def add(self, report: CommitReport) -> None:
        """Counts one commit."""
        self.commits += 1
        self.unsound += not report.is_sound
        self.kinds.update(one.kind.value for one in report.findings if one.severity is not Severity.NOTE)

    def as_metrics(self) -> str:
        """The counters as Prometheus reads them from a file (text exposition format)."""
        escaped = self.table.replace("\\", "\\\\").replace('"', '\\"')
        label = f'table="{escaped}"'
        counters = {
            "hudistream_commits_verified_total": ("Commits that were verified.", {label: self.commits}),
            "hudistream_commits_unsound_total": ("Commits in which something was wrong.", {label: self.unsound}),
            "hudistream_looks_failed_total": ("Looks at the table that failed.", {label: self.failed}),
            "hudistream_findings_total": (
                "What was wrong, by kind.",
                {f'{label},kind="{kind}"': count for kind, count in sorted(self.kinds.items())},
            ),
        }
        age = "# TYPE hudistream_last_look_timestamp_seconds gauge\n"
        age += f"hudistream_last_look_timestamp_seconds{{{label}}} {self.looked_s:.0f}\n"
        return age + "".join(
            f"# HELP {name} {text}\n# TYPE {name} counter\n"
            + "".join(f"{name}{{{labels}}} {count}\n" for labels, count in values.items())
            for name, (text, values) in counters.items()
        )


def _verify(given: argparse.Namespace) -> int:
    storage = open_table(given).storage
    checks, totals = CommitChecks(storage, given.sample), Totals(storage.base_uri)
    try:
        while True:
            _look_at_commits(checks, totals, as_json=given.format == "json")
            if given.metrics is not None:
                _replace(given.metrics, totals.as_metrics())
            if given.commits is not None and totals.commits >= given.commits:
                break
            clock.sleep_s(given.every)
    except KeyboardInterrupt:
        pass
    if given.format != "json":
        failed = f"; {plural(totals.failed, 'look')} failed" if totals.failed else ""
        say([f"{plural(totals.commits, 'commit')} verified, {totals.unsound} of them not sound{failed}"])
    return int(totals.unsound > 0)


def _look_at_commits(checks: CommitChecks, totals: Totals, *, as_json: bool) -> None:
    try:
        new = checks.look()
    except HudiError as error:  # the next look may succeed, and verifies the same commits
        totals.failed += 1
        complain(str(error))
        return
    totals.looked_s = clock.now_ms() / 1000
    if new.may_lack:
        complain("commits may have come and been archived since the last look: look more often (--every)")
    for report in new.reports:
        totals.add(report)
        say([json.dumps(report.to_json())] if as_json else report_lines(report))


def report_lines(report: CommitReport) -> list[str]:
    """A line for a commit, and one for each finding."""
    chunks = (
        f"{report.chunks_summed / report.chunks_read:.0%} of the chunks with checksums" if report.chunks_read else ""
    )
    gone = f"{report.files_gone} superseded and gone" if report.files_gone else ""
    read = f"{plural(report.files, 'file')}, {report.files_read} read"
    facts = [report.operation.lower() or "commit", read, plural(report.rows, "row"), gone, chunks]
    verdict = "sound" if report.is_sound else "NOT SOUND"
    first = f"{report.time}  {verdict}: {', '.join(fact for fact in facts if fact)}"
    return [first, *(f"  {one.severity.value} {one.kind.value}: {one.where}: {one.text}" for one in report.findings)]


def _replace(path: str, text: str) -> None:
    """Writes a file as a whole: who reads it sees the old one or the new one."""
    waiting = f"{path}.tmp"
    with open(waiting, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(waiting, path)
