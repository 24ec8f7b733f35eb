"""The `hudistream` command; needs no Spark."""

import argparse
import logging
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import NamedTuple, NoReturn

from table.cli import (
    bad_rows,
    catalogs,
    checkpoint,
    grid,
    health,
    lock,
    losses,
    options,
    query,
    report,
    show,
    upkeep,
    versions,
    watch,
    why,
)
from table.cli.arguments import add_verbose
from table.cli.output import OutputClosedError, UsageError, complain, drop_output
from table.cli.patience import elapsed_shown
from table.columns.near_name import did_you_mean
from table.errors import HudiError
from table.extras import needs_extra
from table.log import logging_to_stderr
from table.version import VERSION

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "look": ("show", "health", "watch", "history", "files", "schema", "explain", "report", "doctor", "check"),
        "query": ("query", "changes", "bad-rows", "checkpoint"),
        "keep up": ("clean", "compact", "cluster", "archive"),
        "undo, protect": ("rollback", "savepoint", "lock", "accept-loss"),
        "share": ("sync", "ddl", "manifest", "upgrade", "downgrade"),
        "help": ("options", "why"),
    }
)
_PURPOSE = (
    "Examine and maintain Hudi tables, without Spark. Results go to standard output,\n"
    "warnings and errors to standard error."
)
_NAME_WIDTH = 12
USAGE = 2
OUTPUT_CLOSED = 141  # exit code that a shell reports for a program ended by SIGPIPE


class MoreCommands(NamedTuple):
    """Commands of a layer above: what a person wants with them, their names, and what declares them."""

    purpose: str
    names: tuple[str, ...]
    add: "Callable[[argparse._SubParsersAction[argparse.ArgumentParser]], None]"


class _Parser(argparse.ArgumentParser):
    """Says in one line that there is no such command, and which one was probably meant."""

    commands: Iterable[str] = ()

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"argument COMMAND: invalid choice: '(.*?)' ", message)
        if unknown:
            known = f"there is no command {unknown[1]!r}{did_you_mean(unknown[1], self.commands)}"
            self.exit(USAGE, f"{self.prog}: {known}; hudistream --help lists all\n")
        super().error(message)


def build_parser(more: Sequence[MoreCommands] = ()) -> argparse.ArgumentParser:
    """Every command and its arguments.

    Args:
        more: commands besides those of this package.
    """
    parser = _Parser(
        prog="hudistream",
        usage="hudistream [-h] [--version] [-v] COMMAND ...",
        epilog="hudistream COMMAND --help shows examples",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"hudistream {VERSION}")
    add_verbose(parser)
    commands = parser.add_subparsers(
        dest="command",
        metavar="COMMAND",
        required=True,
        prog="hudistream",
        help=argparse.SUPPRESS,
        parser_class=argparse.ArgumentParser,
    )
    show.add_commands(commands)
    health.add_commands(commands)
    watch.add_commands(commands)
    query.add_commands(commands)
    upkeep.add_commands(commands)
    versions.add_commands(commands)
    catalogs.add_commands(commands)
    checkpoint.add_commands(commands)
    report.add_commands(commands)
    bad_rows.add_commands(commands)
    lock.add_commands(commands)
    losses.add_commands(commands)
    options.add_commands(commands)
    why.add_commands(commands)
    for further in more:
        further.add(commands)
    summaries = {name: command.description or "" for name, command in commands.choices.items()}
    parser.commands = tuple(summaries)
    groups = {**{further.purpose: further.names for further in more}, **GROUPS}
    parser.description = f"{_PURPOSE}\n\n{describe_groups(summaries, groups)}"
    return parser


def describe_groups(summaries: Mapping[str, str], groups: Mapping[str, tuple[str, ...]]) -> str:
    """The commands by what a person wants, each with its purpose, in 80 columns (pure).

    Args:
        summaries: command -> its purpose, as a sentence.
        groups: what a person wants -> names of commands.
    """
    lines = []
    for purpose, names in groups.items():
        lines.append(f"{purpose}:")
        for name in names:
            head = f"  {name:<{_NAME_WIDTH}}"
            lines += textwrap.wrap(summaries[name], 80, initial_indent=head, subsequent_indent=" " * len(head))
    return "\n".join(lines)


def run_patiently(given: argparse.Namespace) -> int:
    """Runs a command; a person who waits for it sees for how long. `watch` shows itself."""
    waits = nullcontext() if given.command == "watch" else elapsed_shown(f"hudistream {given.command}")
    with waits:
        code: int = given.run(given)
    return code


def main(arguments: Sequence[str] | None = None, more: Sequence[MoreCommands] = ()) -> int:
    """Entry point.

    Args:
        arguments: arguments of the command line; None: the arguments of this process.
        more: commands besides those of this package.

    Returns:
        The exit code. 0: success. 1: an error, with the reason on standard error, or a finding of `doctor`, `check` or
        `health`. 2: an argument is missing, or `health` found the table broken. 141: the reader of standard output has
        closed it.

    Raises:
        SystemExit: 2 if the command line is invalid, 0 after ``--help`` and ``--version``.
    """
    given = build_parser(more).parse_args(arguments)
    if grid.missing is not None:
        complain(needs_extra("the command hudistream", "cli"))
        return 1
    try:
        # the error is the command's own, and is printed below
        with logging_to_stderr(logging.DEBUG if given.verbose else logging.WARNING, frozenset({"batch_failed"})):
            code = run_patiently(given)
    except OutputClosedError:
        drop_output()
        return OUTPUT_CLOSED
    except UsageError as error:
        complain(str(error))
        return USAGE
    except (HudiError, OSError) as error:
        code_of_error = f" [hudistream why {type(error).__name__}]" if isinstance(error, HudiError) else ""
        complain(f"{error}{code_of_error}")
        return 1
    except Exception as error:  # noqa: BLE001 errors of stores (no credentials) have no common base class
        complain(f"{type(error).__name__}: {error}")
        return 1
    return code
