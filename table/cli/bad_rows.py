"""The command that shows which rows were put aside, and why."""

import argparse
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from table.cli.arguments import add_command, add_format, at_least_one, load_storage_options
from table.cli.grid import grid_lines
from table.cli.output import UsageError, plural, say, say_json
from table.cli.query import json_value
from table.quarantine.place import BATCH_ID, FILE, REASON, REPLAYED, ROW, TOLD
from table.quarantine.read import read_bad_rows

_SHOWN = 5


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the command."""
    listing = add_command(
        commands,
        "bad-rows",
        "list the rows that a sink has put aside, by reason",
        ["hudistream bad-rows /data/lake/events", "hudistream bad-rows /data/lake/events --all --format json"],
        _bad_rows,
    )
    listing.add_argument(
        "--folder", help="hudistream.bad.rows.path of the sink (default: the table's path and _bad_rows)"
    )
    listing.add_argument("--all", action="store_true", help="with the rows that were replayed")
    listing.add_argument(
        "--limit", type=at_least_one, default=_SHOWN, metavar="N", help="most of a reason (default: 5)"
    )
    listing.add_argument(
        "--output", metavar="FILE", help="write them all into a Parquet file, to correct and replay them"
    )
    add_format(listing)


def _bad_rows(given: argparse.Namespace) -> int:
    rows = read_bad_rows(given.path, load_storage_options(given), folder=given.folder, replayed=given.all)
    if given.output is not None:
        if not given.output.endswith(".parquet"):
            raise UsageError(
                f"--output {given.output}: the rows are written as Parquet, so name a file that ends in .parquet"
            )
        pq.write_table(rows, given.output)
        how = f"hudistream replay {given.path} --rows {given.output}"
        say([f"{len(rows)} bad rows written to {given.output}: correct them there, and write them by `{how}`"])
        return 0
    counts = Counter(rows.column(REASON).to_pylist())
    shown = {reason: _shown(rows, reason, given.limit) for reason, _ in counts.most_common()}
    if given.format == "json":
        reasons = [{"reason": reason, "rows": count, "shown": shown[reason]} for reason, count in counts.most_common()]
        say_json({"rows": len(rows), "reasons": reasons})
        return 0
    if not len(rows):
        say(["no bad rows" if given.all else "no bad rows; --all lists those that were replayed, too"])
        return 0
    for reason, count in counts.most_common():
        lines = [[one[BATCH_ID], f"{one[FILE]}:{one[ROW]}", _in_words(one)] for one in shown[reason]]
        say(grid_lines(f"{plural(count, 'row')}: {reason}", ["batch", "place", "row"], lines))
    say(["--output FILE writes them all; `hudistream replay` takes corrected rows back"])
    return 0


def _in_words(row: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in row.items() if name not in TOLD)


def _shown(rows: pa.Table, reason: str, most: int) -> list[dict[str, Any]]:
    found = rows.filter(pc.equal(rows.column(REASON), reason)).slice(0, most)
    return [{name: json_value(value) for name, value in row.items() if name != REPLAYED} for row in found.to_pylist()]
