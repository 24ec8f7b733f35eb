"""The command that says what a table has lost, and goes on without it: accept-loss."""

import argparse
from typing import Any

from table.cli.arguments import add_command, add_format, open_table
from table.cli.output import plural, say, say_json
from table.services.accept_losses import Losses, accept_losses, find_losses


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the command."""
    accepting = add_command(
        commands,
        "accept-loss",
        "say which files of the newest snapshot are gone or damaged; with --yes, go on without their rows",
        ["hudistream accept-loss /data/lake/events", "hudistream accept-loss /data/lake/events --yes"],
        _accept,
    )
    accepting.add_argument("--yes", action="store_true", help="accept the loss: it cannot be taken back")
    accepting.add_argument(
        "--read", action="store_true", help="read the rows of all base files, too: a damaged page shows in no footer"
    )
    add_format(accepting)


def _accept(given: argparse.Namespace) -> int:
    table = open_table(given)
    found = (accept_losses if given.yes else find_losses)(table, reads_rows=given.read)
    if given.format == "json":
        say_json(as_json(found))
    else:
        say(lines(found, has_read=given.read))
    return 1 if found and not given.yes else 0


def as_json(found: Losses) -> dict[str, Any]:
    """The losses for a program."""
    lost = [{"path": one.named.path, "commit": one.named.time, "text": str(one)} for one in found.files]
    damaged = [
        {"path": one.named.path, "commit": one.named.time, "text": one.reason, "deleted": not one.kept}
        for one in found.damaged
    ]
    return {"table": found.table, "rows": found.rows, "files": lost, "damaged": damaged, "record": found.record}


def lines(found: Losses, *, has_read: bool = False) -> list[str]:
    """The losses for people."""
    if not found:
        what = "log files and base files" if has_read else "log files and footers (--read reads rows, too)"
        return [f"nothing is lost: each file that the newest commits name is there, {what} can be read"]
    count = len({lost.named.path for lost in found.files} | {one.named.path for one in found.damaged})
    shown = [f"{plural(count, 'file')}, at most {found.rows:,} rows and changes:"]
    shown += [f"  {one}" for one in found.files]
    deleted = "was deleted" if found.record is not None else "--yes deletes it"
    shown += [f"  {one.named.path}: {one.reason}{'' if one.kept else f' ({deleted})'}" for one in found.damaged]
    if found.record is not None:
        return [*shown, f"accepted, and recorded in {found.record}: batches go on without these rows"]
    return [
        *shown,
        "put the files back from a copy, or restore a savepoint (`hudistream savepoint restore`). `--yes` goes on",
        "without them: a base file that cannot be read is deleted, and damaged blocks are cut out of log files",
    ]
