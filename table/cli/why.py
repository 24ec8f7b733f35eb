"""The command `why`: what an error means, and what to do about it."""

import argparse
import textwrap
from collections.abc import Iterator, Mapping
from importlib import resources

from table.cli.arguments import add_example, add_verbose
from table.cli.output import UsageError, say
from table.columns.near_name import did_you_mean

_WIDTH = 80
_HEADING = "## "


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the command."""
    asking = add_example(
        commands,
        "why",
        "explain an error by the name of its class, and the ways out",
        ["hudistream why TableHeldError"],
    )
    asking.add_argument("error", metavar="CLASS", nargs="?", help="the error's class; without it, all are explained")
    add_verbose(asking, default=argparse.SUPPRESS)
    asking.set_defaults(run=_show)


def load_page() -> str:
    """The page of all errors, as Markdown."""
    return resources.files("table.cli").joinpath("why.md").read_text("utf-8")


def sections_of(page: str) -> Mapping[str, str]:
    """Class of an error -> its section of the page, without the heading (pure)."""
    parts = page.split(f"\n{_HEADING}")[1:]
    return {title: text.strip() for title, _, text in (part.partition("\n") for part in parts)}


def _show(given: argparse.Namespace) -> int:
    sections = sections_of(load_page())
    wanted = [given.error.rpartition(".")[2].strip(":")] if given.error else list(sections)
    if wanted[0] not in sections:
        raise UsageError(f"no error is called {wanted[0]!r}{did_you_mean(wanted[0], sections)}")
    for name in wanted:
        say([name, "", *_plain(sections[name]), ""])
    return 0


def _plain(text: str) -> Iterator[str]:
    """A section in lines for a terminal: paragraphs and points are wrapped, and marks of Markdown left out (pure)."""
    for paragraph in text.replace("\n- ", "\n\n- ").split("\n\n"):
        joined = " ".join(paragraph.split()).replace("**", "").replace("`", "")
        indent = "  " if joined.startswith("- ") else ""
        yield from textwrap.wrap(
            joined, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
