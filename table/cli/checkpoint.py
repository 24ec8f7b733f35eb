"""The command that shows how far each stream is: checkpoint."""

import argparse

from table.cli.arguments import add_command, add_format, open_table
from table.cli.output import say, say_json
from table.inspect.checkpoints import load_checkpoints


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the command."""
    shown = add_command(
        commands,
        "checkpoint",
        "show the last batch of each stream that writes the table, and where its sources stood after it",
        ["hudistream checkpoint /data/lake/orders", "hudistream checkpoint s3://lake/orders --format json"],
        _checkpoint,
    )
    add_format(shown)


def _checkpoint(given: argparse.Namespace) -> int:
    found = load_checkpoints(open_table(given)).to_pylist()
    if given.format == "json":
        say_json({"sinks": found})
        return 0
    if not found:
        say(["no stream has written this table"])
    for row in found:
        batch = "" if row["batch_id"] is None else f": batch {row['batch_id']} of query {row['query_id'] or 'unknown'}"
        say([f"{row['sink']}{batch}"])
        positions = row["positions"]
        say([f"  source {number}: {position or 'nothing yet'}" for number, position in enumerate(positions)])
        if not positions:
            say(["  where its sources stood was not recorded (hudistream.checkpoint.location)"])
    return 0
