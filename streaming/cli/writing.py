"""The commands that write rows, without Spark: delete and replay."""

import argparse
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from streaming.arrow_sink import ArrowSink
from streaming.batch.summary import BatchSummary
from table.cli.arguments import add_command, add_options, load_options, load_storage_options, open_table, parse_pair
from table.cli.output import UsageError, say
from table.scan.scan import make_scan
from table.snapshot import Snapshot

_READERS: dict[str, Any] = {
    ".parquet": pq.read_table,
    ".jsonl": pa.json.read_json,
    ".json": pa.json.read_json,
    ".csv": pa.csv.read_csv,
}


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the commands."""
    deleting = add_command(
        commands,
        "delete",
        "delete the rows in which columns have certain values, as one commit",
        [
            "hudistream delete /data/lake/events --where user=4711 --dry-run",
            "hudistream delete /data/lake/events --where user=4711",
        ],
        _delete,
    )
    deleting.add_argument(
        "--where",
        action="append",
        required=True,
        type=parse_pair,
        metavar="COLUMN=VALUE",
        help="rows with this value; may be repeated: all must hold",
    )
    deleting.add_argument("--dry-run", action="store_true", help="only say how many rows would be deleted")
    add_options(deleting)
    replaying = add_command(
        commands,
        "replay",
        "write bad rows that were corrected, each once, as one commit",
        [
            "hudistream replay /data/lake/events --rows corrected.parquet",
        ],
        _replay,
    )
    replaying.add_argument(
        "--rows",
        required=True,
        metavar="FILE",
        help="the corrected rows, with their columns _hudistream_file and _hudistream_row: .parquet, .csv, or .jsonl",
    )
    add_options(replaying)


def _sink(given: argparse.Namespace) -> ArrowSink:
    """A sink that only writes: a clean by the default policy could delete what the table's stream retains."""
    given.set = [("hoodie.table.services.enabled", "false"), *given.set]
    return ArrowSink(given.path, load_options(given), load_storage_options(given))


def _delete(given: argparse.Namespace) -> int:
    snapshot = Snapshot.load(open_table(given))
    schema = snapshot.load_schema() or pa.schema([])
    where = [(name, "=", _value(schema, name, text)) for name, text in given.where]
    if given.dry_run:
        say([f"rows that would be deleted: {make_scan(snapshot.table, None, where).count()}"])
        return 0
    sink = _sink(given)
    try:
        summary = sink.delete(where=where)
    finally:
        sink.stop()
    _tell(summary, f"deleted rows: {summary.rows_deleted}")
    return 0


def _value(schema: pa.Schema, name: str, text: str) -> Any:
    """A value of a column, from its text.

    Raises:
        UsageError: the table has no such column, or the text is none of its values.
    """
    if name not in schema.names:
        raise UsageError(f"the table has no column {name!r}; it has {', '.join(schema.names) or 'none yet'}")
    wanted = schema.field(name).type
    try:
        return pa.scalar(text).cast(wanted).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UsageError(f"{name}={text}: the column has the type {wanted}: {error}") from error


def _replay(given: argparse.Namespace) -> int:
    reader = _READERS.get(Path(given.rows).suffix.lower())
    if reader is None:
        raise UsageError(f"--rows {given.rows}: the name has to end in {', '.join(_READERS)}")
    sink = _sink(given)
    try:
        summary = sink.replay(reader(given.rows))
    finally:
        sink.stop()
    _tell(summary, f"written rows: {summary.rows}; bad still, and put aside anew: {summary.bad_rows}")
    return 0


def _tell(summary: BatchSummary, done: str) -> None:
    if summary.skipped or summary.instant_time is None:
        say(["nothing to write"])
    else:
        say([f"{done} (commit {summary.instant_time})"])
