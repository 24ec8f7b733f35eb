"""Common parts of the commands: a path, options, the form of their help."""

import argparse
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from table.config.properties import parse_properties
from table.hudi_table import HudiTable
from table.options.choices import IndexType
from table.options.write_options import WriteOptions, parse_options
from table.services.kept_settings import KeptSettings, load_settings, settings_of

Run = Callable[[argparse.Namespace], int]

_SWITCHES = {"true": True, "false": False}


def add_command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    summary: str,
    examples: Sequence[str],
    run: Run,
) -> argparse.ArgumentParser:
    """Declares a command that takes the PATH of a table.

    Args:
        commands: the group that the command joins.
        name: name of the command.
        summary: purpose of the command, for the help.
        examples: whole command lines, for its help.
        run: carries it out and returns the exit code.
    """
    command = add_example(commands, name, summary, examples)
    command.add_argument("path", metavar="PATH", help="the table: a folder or an address (s3://bucket/table)")
    command.add_argument(
        "--storage-option",
        action="append",
        default=[],
        type=parse_pair,
        metavar="KEY=VALUE",
        dest="storage_options",
        help="one argument of the fsspec file system, as endpoint_url=http://localhost:9000; may be repeated; a VALUE "
        "that begins with { or [ is read as JSON, true and false as switches",
    )
    add_verbose(command, default=argparse.SUPPRESS)  # another default would undo a -v before the command
    command.set_defaults(run=run)
    return command


def add_example(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, summary: str, examples: Sequence[str]
) -> argparse.ArgumentParser:
    """Declares a command without arguments; as `add_command`."""
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog="\n  ".join(["examples:" if len(examples) > 1 else "example:", *examples]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_verbose(parser: argparse.ArgumentParser, default: Any = False) -> None:  # noqa: FBT002 argparse's own word
    """Declares ``-v``."""
    parser.add_argument(
        "-v", "--verbose", action="store_true", default=default, help="write the whole log to standard error"
    )


def add_options(command: argparse.ArgumentParser) -> None:
    """Declares the arguments that give a command ``hoodie.*`` options."""
    command.add_argument("--options", metavar="FILE", help="a file of hoodie.* options, key=value on each line")
    command.add_argument(
        "--set", action="append", default=[], type=parse_pair, metavar="KEY=VALUE", help="one option; may be repeated"
    )


def add_format(command: argparse.ArgumentParser) -> None:
    """Declares ``--format``."""
    command.add_argument("--format", choices=("text", "json"), default="text", help="default %(default)s")


def at_least_one(text: str) -> int:
    """A whole number, 1 or more.

    Raises:
        argparse.ArgumentTypeError: it is another text.
    """
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number, 1 or more")
    return int(text)


def at_least_zero(text: str) -> float:
    """A number, 0 or more.

    Raises:
        argparse.ArgumentTypeError: it is another text.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise argparse.ArgumentTypeError(f"{text!r}: give a number, 0 or more")
    return number


def parse_pair(text: str) -> tuple[str, str]:
    """``KEY=VALUE``.

    Raises:
        argparse.ArgumentTypeError: there is no key or no equals sign.
    """
    key, equals, value = text.partition("=")
    if not key.strip() or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key.strip(), value


def load_storage_options(given: argparse.Namespace) -> dict[str, Any]:
    """The arguments of the fsspec file system.

    Raises:
        ValueError: a value that begins with { or [ is not JSON.
    """
    return {key: _storage_value(key, value) for key, value in given.storage_options}


def _storage_value(key: str, text: str) -> Any:
    if not text.startswith(("{", "[")):
        return _SWITCHES.get(text, text)
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"--storage-option {key}: {text!r} begins as JSON does, but is none: {error}") from error


def load_options(given: argparse.Namespace) -> WriteOptions:
    """Options of the options file and of the command line; the command line wins.

    Raises:
        InvalidConfigError: as a sink would raise it.
    """
    found: dict[str, Any] = {}
    if given.options is not None:
        with open(given.options, "rb") as opened:
            found.update(parse_properties(opened.read()))
    found.update(given.set)
    return parse_options(found, given.path).options


def load_table_options(given: argparse.Namespace, table: HudiTable) -> WriteOptions:
    """The options of a command; those of the stream that started last, where none is given on the command line.

    Raises:
        InvalidConfigError: as `load_options`.
        StorageError: the store fails.
    """
    options = load_options(given)
    if given.set or given.options is not None:
        return options
    kept = load_settings(table.storage)
    # the settings do not name the index: with rows that join logs it is the only one that finds them
    index = replace(options.index, type=IndexType.RECORD_INDEX) if kept.sizes.joins_logs else options.index
    return replace(
        options, index=index, sizes=kept.sizes, clean=kept.clean, archive=kept.archive, compaction=kept.compaction
    )


def load_given_settings(given: argparse.Namespace) -> KeptSettings | None:
    """The settings that options of the command say; None where no option is given."""
    return settings_of(load_options(given), "") if given.set or given.options is not None else None


def open_table(given: argparse.Namespace) -> HudiTable:
    """The table at PATH.

    Raises:
        TableNotFoundError: when there is none.
    """
    return HudiTable.open(given.path, load_storage_options(given))
