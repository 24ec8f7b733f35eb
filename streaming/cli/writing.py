"""The commands that write rows, without Spark: delete, erase and replay."""

import argparse
import json
import shlex
from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from streaming.arrow_sink import ArrowSink
from streaming.batch.summary import BatchSummary
from streaming.erasure import Erasure, erase
from table.cli.arguments import (
    add_command,
    add_options,
    at_least_zero,
    load_options,
    load_storage_options,
    load_table_options,
    open_table,
    parse_pair,
)
from table.cli.output import UsageError, plural, say
from table.quarantine.place import FILE, ROW
from table.scan.rows_beside import check_no_rows_beside, identity_of
from table.scan.scan import make_scan
from table.schema.avro_schema import META_COLUMNS, RECORD_KEY
from table.snapshot import Snapshot

# where a bad row came from: columns of files of corrected rows
_ORIGIN = {FILE: pa.string(), ROW: pa.int64()}


def _read_csv(path: str, types: dict[str, pa.DataType]) -> pa.Table:
    """An empty field is null, and "" an empty text; no other text is null."""
    convert = pyarrow.csv.ConvertOptions(
        column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    return pyarrow.csv.read_csv(path, convert_options=convert)


def _read_json(path: str, types: dict[str, pa.DataType]) -> pa.Table:
    """A line is a row; values as `hudistream bad-rows --format json` spells them."""
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line, parse_float=Decimal) for line in file if line.strip()]
    if not all(isinstance(row, dict) for row in rows):
        raise pa.ArrowInvalid("each line has to be an object")
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {}
    for name in names:
        kind = types.get(name)
        try:
            values = [row.get(name) for row in rows]
            columns[name] = pa.array(values) if kind is None else pa.array([_of_json(v, kind) for v in values], kind)
        except (ValueError, TypeError, AttributeError, ArithmeticError, pa.ArrowException) as error:
            raise pa.ArrowInvalid(f"column {name!r} of the type {kind}: {error}") from error
    return pa.table(columns)


def _of_json(value: Any, kind: pa.DataType) -> Any:
    """A value of JSON as Arrow takes it for a type."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        known = {field.name: field.type for field in kind}
        if not isinstance(value, dict) or value.keys() - known:
            raise ValueError(f"{value} is no object with the fields {', '.join(known)}")
        return {name: _of_json(value.get(name), inner) for name, inner in known.items()}
    if pa.types.is_map(kind) and isinstance(value, dict):
        return [(_of_json(key, kind.key_type), _of_json(item, kind.item_type)) for key, item in value.items()]
    if not pa.types.is_nested(kind):
        return _leaf_of_json(value, kind)
    if not isinstance(value, list):
        raise TypeError(f"{value} is no list")
    if pa.types.is_map(kind):
        return [(_of_json(key, kind.key_type), _of_json(item, kind.item_type)) for key, item in value]
    return [_of_json(item, kind.value_type) for item in value]


def _leaf_of_json(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, bool) and not pa.types.is_boolean(kind):
        raise ValueError(f"{value} is no value of it")  # Python counts with it
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return b64decode(value, validate=True)
    if isinstance(value, Decimal) or (pa.types.is_temporal(kind) and not isinstance(value, str)):
        raise ValueError(f"{value} is no value of it")  # Arrow would cut the fraction, and count days or ticks
    is_spelled = isinstance(value, str) and not (pa.types.is_string(kind) or pa.types.is_large_string(kind))
    return pa.scalar(value).cast(kind).as_py() if is_spelled else value


_READERS: dict[str, Callable[[str, dict[str, pa.DataType]], pa.Table]] = {
    ".parquet": lambda path, _: pq.read_table(path),
    ".jsonl": _read_json,
    ".json": _read_json,
    ".csv": _read_csv,
}


def _read_rows(path: str, schema: pa.Schema) -> pa.Table:
    """The rows of a file. A text file does not say the types of its columns: they are those of the table.

    Args:
        path: of the file.
        schema: columns of the table without meta columns (Arrow).

    Raises:
        UsageError: the file has another form, or a value that its column cannot hold.
    """
    reader = _READERS.get(Path(path).suffix.lower())
    if reader is None:
        raise UsageError(f"--rows {path}: the name has to end in {', '.join(_READERS)}")
    types = {**dict(zip(schema.names, schema.types, strict=True)), **_ORIGIN}
    try:
        return reader(path, types)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise UsageError(f"--rows {path}: {error}; a .parquet file has the types of its columns in it") from error


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
    _add_erase(commands)
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


def _add_erase(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    erasing = add_command(
        commands,
        "erase",
        "delete rows for good: clean past them, and say which files still hold them",
        [
            "hudistream erase /data/lake/events --where user=4711 --wait 30",
            "hudistream erase /data/lake/events --keys e17 e18 --set hudistream.clean.grace.ms=0",
        ],
        _erase,
    )
    erasing.add_argument(
        "--keys",
        action="extend",
        nargs="+",
        default=[],
        metavar="KEY",
        help="record keys, one after another, each as _hoodie_record_key has it",
    )
    erasing.add_argument(
        "--where",
        action="append",
        default=[],
        type=parse_pair,
        metavar="COLUMN=VALUE",
        help="also the rows that have this value now; may be repeated: all must hold",
    )
    erasing.add_argument(
        "--wait",
        type=at_least_zero,
        default=0.0,
        metavar="MINUTES",
        help="wait so long for readers to let go",
    )
    add_options(erasing)


def _sink(given: argparse.Namespace) -> ArrowSink:
    """A sink that only writes: a clean by the default policy could delete what the table's stream retains."""
    given.set = [("hoodie.table.services.enabled", "false"), *given.set]
    return ArrowSink(given.path, load_options(given), load_storage_options(given))


def _delete(given: argparse.Namespace) -> int:
    snapshot = Snapshot.load(open_table(given))
    schema = snapshot.load_schema() or pa.schema([])
    where = [(name, "=", _value(schema, name, text)) for name, text in given.where]
    if given.dry_run:
        found = make_scan(snapshot.table, identity_of(snapshot.table, by_path=True), where).to_arrow()
        check_no_rows_beside(snapshot.table, where, found)
        say([f"rows that would be deleted: {len(found)}"])
        return 0
    sink = _sink(given)
    try:
        summary = sink.delete(where=where)
    finally:
        sink.stop()
    _tell(summary, f"deleted rows: {summary.rows_deleted}")
    return 0


def _erase(given: argparse.Namespace) -> int:
    table = open_table(given)
    snapshot = Snapshot.load(table)
    schema = snapshot.load_schema() or pa.schema([])
    where = [(name, "=", _value(schema, name, text)) for name, text in given.where]
    keys = given.keys
    if not (where or keys):
        raise UsageError("erase takes --keys or --where")
    shown = make_scan(table, [RECORD_KEY], [(RECORD_KEY, "in", keys)]).to_arrow() if keys and len(schema) else None
    strangers = set(keys) - set(shown.column(RECORD_KEY).to_pylist() if shown is not None else ())
    done = erase(
        given.path,
        keys,
        where=where or None,
        options=load_table_options(given, table),
        storage_options=load_storage_options(given),
        wait_s=60 * given.wait,
    )
    commit = f" (commit {done.instant_time})" if done.instant_time else ""
    say([f"keys: {done.keys}; deleted rows: {done.deleted}{commit}"])
    say([f"no row of the newest snapshot had the key {key!r}" for key in keys if key in strangers])
    for trace in done.traces:
        counts = [plural(number, one) for number, one in ((trace.rows, "row"), (trace.deletes, "delete")) if number]
        say([f"{trace.path}: {', '.join([*counts, *trace.entries])}: {trace.why}"])
    if done.bad_rows:
        say([f"bad rows that were put aside: {done.bad_rows}; `hudistream bad-rows` shows them, delete them by hand"])
    if done.waiting_rows:
        say([f"rows that wait in a router: {done.waiting_rows}; let it write them, and run this again"])
    for partition in done.partition_traces:
        say([f"partition path without rows: {partition.partition_path}: named by {', '.join(partition.places)}"])
    say([f"not known: {reason}" for reason in done.unknown])
    say([_verdict(done)])
    lists = [key for key in keys if key in strangers and "," in key and len(table.config.record_key_fields) == 1]
    if lists:
        several = " ".join(shlex.quote(key.strip()) for key in lists[0].split(","))
        say([f"{lists[0]!r} was taken for one key: if it is a list, write --keys {several}"])
    return 0 if done.is_final and not lists else 1


_WAYS = {
    "savepoint": "delete savepoints that hold files (`hudistream savepoint delete`)",
    "grace": "wait until the grace period is over (`--wait MINUTES`, or `--set hudistream.clean.grace.ms=0`)",
    "pin": "wait until readers have let go of their snapshots (`--wait MINUTES`; a pin ends with its reader, and a "
    "DataFrame of read_hudi holds one for 15 minutes, also if its process has ended)",
}


def _verdict(done: Erasure) -> str:
    if done.is_final:
        return "no file of the table holds these rows any more"
    if done.rows_are_gone:
        return "no row and no key is left; partition paths without rows are still named, and one may be that of a row"
    whys = " ".join(trace.why for trace in done.traces)
    waits = [way for word, way in _WAYS.items() if word in whys] or ["let the next clean come"]
    return f"not final yet: {', and '.join(waits)}; then run this again"


def _value(schema: pa.Schema, name: str, text: str) -> Any:
    """A value of a column, a field of a struct or a meta column, from its text.

    Raises:
        UsageError: the table has no such column, or the text is none of its values.
    """
    wanted = _type_of(schema, name)
    if wanted is None:
        raise UsageError(f"the table has no column {name!r}; it has {', '.join(schema.names) or 'none yet'}")
    if pa.types.is_timestamp(wanted):
        return text  # a condition says in which zone it is
    try:
        return pa.scalar(text).cast(wanted).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UsageError(f"{name}={text}: the column has the type {wanted}: {error}") from error


def _type_of(schema: pa.Schema, name: str) -> pa.DataType | None:
    if name in META_COLUMNS:
        return pa.string()
    if name in schema.names:
        return schema.field(name).type
    first, _, rest = name.partition(".")
    outer = schema.field(first).type if first in schema.names else None
    inner = pa.schema(list(outer)) if outer is not None and pa.types.is_struct(outer) else None
    return _type_of(inner, rest) if inner is not None and rest else None


def _replay(given: argparse.Namespace) -> int:
    rows = _read_rows(given.rows, Snapshot.load(open_table(given)).load_schema() or pa.schema([]))
    sink = _sink(given)
    try:
        summary = sink.replay(rows)
    finally:
        sink.stop()
    _tell(
        summary,
        f"written rows: {summary.rows + summary.rows_updated}; bad still, and put aside anew: {summary.bad_rows}",
    )
    return 0


def _tell(summary: BatchSummary, done: str) -> None:
    if summary.skipped or summary.instant_time is None:
        say(["nothing to write"])
    else:
        say([f"{done} (commit {summary.instant_time})"])
