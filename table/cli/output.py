"""Output of commands: results on standard output, log and errors on standard error."""

import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from table.cli.patience import clear_elapsed


class UsageError(Exception):
    """An argument of a command is missing, or two contradict each other."""


class OutputClosedError(Exception):
    """The reader of standard output has closed it, as ``| head`` does."""


def say(lines: Iterable[str]) -> None:
    """Writes lines to standard output.

    Raises:
        OutputClosedError: the reader has closed standard output.
    """
    clear_elapsed()
    try:
        for line in lines:
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise OutputClosedError from error


def say_json(value: Mapping[str, Any]) -> None:
    """Writes one JSON object to standard output, for a program.

    Raises:
        OutputClosedError: as `say`.
    """
    say([json.dumps(value, indent=1)])


def complain(text: str) -> None:
    """Writes one line to standard error."""
    clear_elapsed()
    print(f"hudistream: {text}", file=sys.stderr)  # noqa: T201


def drop_output() -> None:
    """Discards the buffered standard output: the interpreter would flush it, and fail, when it ends."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # standard output is not a file: there is nothing to do
        return


def plural(number: int, one: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"
