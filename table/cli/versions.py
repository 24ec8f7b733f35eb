"""Commands that change the version of a table. They need no Spark."""

import argparse

from table.cli.arguments import add_command, open_table
from table.cli.output import UsageError, say
from table.services.conversion.convert import convert_table


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the commands."""
    for name, versions, summary in (
        ("upgrade", (8, 9), "give a table a later version; engines that read version 6 alone read it no more"),
        ("downgrade", (6, 8, 9), "give a table an earlier version"),
    ):
        command = add_command(
            commands, name, summary, [f"hudistream {name} /data/lake/events --to {versions[0]}"], _convert
        )
        command.add_argument(
            "--to", type=int, choices=versions, required=True, help="hoodie.table.version; no other engine may write"
        )


def _convert(given: argparse.Namespace) -> int:
    table = open_table(given)
    before, rises = table.config.version, given.command == "upgrade"
    if before != given.to and (before < given.to) != rises:
        other = "downgrade" if rises else "upgrade"
        raise UsageError(f"the table has version {before}: `hudistream {other} --to {given.to}` is meant")
    convert_table(table, given.to)
    say([f"version {given.to}" + (f", before {before}" if before != given.to else ", as before")])
    return 0
