"""The command that writes an HTML page about a table, or about all below a folder: report."""

import argparse
from collections.abc import Sequence
from datetime import datetime, timezone

from table import clock
from table.cli.arguments import add_command, add_options, load_given_settings, load_storage_options, open_table
from table.cli.output import say
from table.errors import TableNotFoundError
from table.inspect.report.facts import load_report
from table.inspect.report.page import report_page, tables_page
from table.inspect.tables_below import load_glances
from table.inspect.words import size_text
from table.storage.opening import open_storage


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the command."""
    report = add_command(
        commands,
        "report",
        "write a page about a table, or about all tables below a folder: one HTML file that needs no network",
        ["hudistream report /data/lake/events -o report.html", "hudistream report s3://lake -o lake.html"],
        _report,
    )
    report.add_argument("-o", "--output", metavar="FILE", default="report.html", help="default %(default)s")
    report.add_argument("--no-check", action="store_true", help="leave out the check, which reads footers")
    add_options(report)


def _report(given: argparse.Namespace) -> int:
    made_at = datetime.fromtimestamp(clock.now_ms() / 1000, tz=timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    page, problems = _page(given, made_at)
    with open(given.output, "wb") as file:
        file.write(page.encode())
    say([f"{given.output}: {size_text(len(page.encode()))}", *problems])
    return 0


def _page(given: argparse.Namespace, made_at: str) -> tuple[str, Sequence[str]]:
    """The page, and what could not be read for it."""
    settings = load_given_settings(given)
    try:
        facts = load_report(open_table(given), settings, checks=not given.no_check)
    except TableNotFoundError:
        folder = open_storage(given.path, load_storage_options(given))
        glances = load_glances(folder, settings)
        if not glances:
            raise
        return tables_page(folder.base_uri, glances, made_at), ()
    return report_page(facts, made_at), facts.problems
