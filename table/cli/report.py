"""The command that writes an HTML page about a table: report."""

import argparse
from datetime import datetime, timezone

from table import clock
from table.cli.arguments import add_command, add_options, load_given_settings, open_table
from table.cli.output import say
from table.inspect.report.facts import load_report
from table.inspect.report.page import report_page
from table.inspect.words import size_text


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the command."""
    report = add_command(
        commands,
        "report",
        "write a page with charts about a table: one HTML file that needs no network",
        ["hudistream report /data/lake/events -o report.html"],
        _report,
    )
    report.add_argument("-o", "--output", metavar="FILE", default="report.html", help="default %(default)s")
    report.add_argument("--no-check", action="store_true", help="leave out the check, which reads footers")
    add_options(report)


def _report(given: argparse.Namespace) -> int:
    facts = load_report(open_table(given), load_given_settings(given), checks=not given.no_check)
    made_at = datetime.fromtimestamp(clock.now_ms() / 1000, tz=timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    page = report_page(facts, made_at).encode()
    with open(given.output, "wb") as file:
        file.write(page)
    say([f"{given.output}: {size_text(len(page))}", *facts.problems])
    return 0
