"""The `hudistream` command, with the commands that write rows."""

import argparse
from collections.abc import Sequence

from streaming.cli import writing
from table.cli import main as table_main
from table.cli.main import MoreCommands

MORE = (MoreCommands("write rows", ("delete", "erase", "replay"), writing.add_commands),)


def build_parser() -> argparse.ArgumentParser:
    """Every command and its arguments."""
    return table_main.build_parser(MORE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; see `table.cli.main.main`."""
    return table_main.main(arguments, MORE)
