"""Commands that list and query: history, files, query."""

import argparse
import base64
import math
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from table.cli.arguments import add_command, add_format, at_least_one, open_table
from table.cli.grid import grid_lines, rendered, timeline_grid
from table.cli.output import UsageError, complain, say, say_json
from table.errors import InvalidConfigError
from table.extras import needs_extra
from table.hudi_table import HudiTable
from table.inspect.contents import load_files, load_history
from table.inspect.words import size_text
from table.scan.change_range import EARLIEST, range_of_commit
from table.scan.feed.choices import FeedChoices
from table.scan.feed.feed import ChangeFeed
from table.scan.plan import load_read_schema
from table.scan.scan import make_range, make_scan
from table.schema.avro_schema import META_COLUMNS
from table.snapshot import Snapshot

TABLE_NAME = "t"  # name of the table in a query
_ROWS = 20
_HIDDEN = ("_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name")


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the commands."""
    changes = add_command(
        commands,
        "history",
        "list the instants of the active timeline, newest first, with what each commit did",
        ["hudistream history /data/lake/events", "hudistream history /data/lake/events --limit 5 --format json"],
        _history,
    )
    changes.add_argument("--limit", type=at_least_one, metavar="N", help="most instants (default: all)")
    add_format(changes)
    listed = add_command(
        commands,
        "files",
        "list the files that readers see, now or as of an earlier time",
        ["hudistream files /data/lake/events", "hudistream files /data/lake/events --as-of 2024-02-29T12:00:00"],
        _files,
    )
    _add_as_of(listed)
    add_format(listed)
    asked = add_command(
        commands,
        "query",
        f"answer an SQL query through DuckDB; the table is called {TABLE_NAME}",
        [
            'hudistream query /data/lake/events "select day, count(*) from t group by day"',
            'hudistream query /data/lake/events "select * from t limit 5" --format json',
        ],
        _query,
    )
    asked.add_argument(
        "sql",
        metavar="SQL",
        help=f"the query; the table is called {TABLE_NAME}. It has the meta columns that the query names",
    )
    _add_as_of(asked)
    add_format(asked)
    _add_rows(commands)


def _add_rows(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    columns = add_command(
        commands,
        "schema",
        "list the columns of the table, with their Arrow types",
        ["hudistream schema /data/lake/events", "hudistream schema /data/lake/events --format json"],
        _schema,
    )
    add_format(columns)
    changed = add_command(
        commands,
        "changes",
        "show the latest row of each key that the commits of a range wrote; with --deletes what became of each key",
        [
            "hudistream changes /data/lake/events --since 20240229120000000",
            "hudistream changes /data/lake/events --since 20240229120000000 --before",
            "hudistream changes /data/lake/events --commit 20240229120000000 --deletes",
            "hudistream changes /data/lake/events --since 2024-02-29 --until 2024-03-01 --limit 100 --format json",
        ],
        _changes,
    )
    changed.add_argument(
        "--since", metavar="TIME", help="exclusive: an instant time or an ISO time (default: all commits)"
    )
    changed.add_argument("--until", metavar="TIME", help="inclusive (default: the newest commit)")
    changed.add_argument("--commit", metavar="INSTANT", help="what one commit of `hudistream history` changed")
    changed.add_argument("--limit", type=at_least_one, default=_ROWS, metavar="N", help=f"most rows (default: {_ROWS})")
    changed.add_argument("--deletes", action="store_true", help="inserts, updates and deletes, one row a key")
    changed.add_argument("--before", action="store_true", help="the same, with the row before each change")
    changed.add_argument("--each-commit", action="store_true", help="the same, each commit's change of a row")
    add_format(changed)


def _add_as_of(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--as-of", metavar="TIME", help="an instant time, or an ISO time in the zone of the table (default: now)"
    )


def _history(given: argparse.Namespace) -> int:
    found = load_history(open_table(given), given.limit, folds_savepoints=given.format != "json")
    if given.format == "json":
        _say_rows("instants", found)
        return 0
    rows = found.to_pylist()
    say(rendered([timeline_grid(rows)]))
    changes = [(row["instant"], change) for row in rows for change in row["schema_changes"] or ()]
    if changes:
        say([""])
        say(grid_lines("schema changes", ["instant", "change"], changes))
    return 0


def _files(given: argparse.Namespace) -> int:
    found = load_files(open_table(given), given.as_of)
    if given.format == "json":
        _say_rows("files", found)
        return 0
    rows = ((row["path"], row["kind"], size_text(row["size_bytes"])) for row in found.to_pylist())
    say(grid_lines("files", ["path", "kind", "size"], rows, numbers=["size"]))
    return 0


def _schema(given: argparse.Namespace) -> int:
    found = [
        (field.name, str(field.type), field.nullable) for field in load_read_schema(Snapshot.load(open_table(given)))[1]
    ]
    names = ("column", "type", "nullable")
    if given.format == "json":
        say_json({"columns": [dict(zip(names, row, strict=True)) for row in found]})
        return 0
    say(grid_lines("columns", names, found))
    return 0


def _changes(given: argparse.Namespace) -> int:
    table, most = open_table(given), given.limit + 1
    since, until = given.since or EARLIEST, given.until
    if given.commit is not None:
        if given.since or given.until:
            raise UsageError("--commit names one commit, --since and --until a range: give one of the two")
        since, until = _range_of_commit(table, given.commit)
    if given.deletes or given.before or given.each_commit:
        choices = FeedChoices(before=given.before, each_commit=given.each_commit)
        found = ChangeFeed(table, since, until, limit=most, choices=choices).to_arrow()
    else:
        found = make_range(table, since, until, limit=most).to_arrow()
    rows = found.slice(0, given.limit)
    if given.format == "json":
        changes = [{name: json_value(value) for name, value in row.items()} for row in rows.to_pylist()]
        say_json({"rows": changes, "is_cut": len(found) > len(rows)})
        return 0
    names = [name for name in rows.column_names if name not in _HIDDEN]
    say(grid_lines("changes", names, (row.values() for row in rows.select(names).to_pylist())))
    if len(found) > len(rows):
        say([f"the first {len(rows)} rows; --limit shows more"])
    return 0


def _range_of_commit(table: HudiTable, time: str) -> tuple[str, str]:
    """As `range_of_commit`, of a commit that the user names."""
    found = range_of_commit(table.load_timeline(), time)
    if found is None:
        raise InvalidConfigError(
            f"--commit {time}: no completed write of the active timeline has this instant time; `hudistream history` "
            "lists them"
        )
    return found


def _query(given: argparse.Namespace) -> int:
    try:
        import duckdb  # noqa: PLC0415 an extra
    except ImportError:
        complain(needs_extra("query", "duckdb"))
        return 1
    with duckdb.connect() as connection:
        scan = make_scan(
            open_table(given), as_of=given.as_of, meta_columns=any(name in given.sql.lower() for name in META_COLUMNS)
        )
        with scan.held_for_duckdb() as rows_of_table:
            connection.register(TABLE_NAME, rows_of_table)
            try:
                answer = connection.execute(given.sql)
            except duckdb.CatalogException as error:
                unknown = re.search(r"Table with name (\S+) does not exist", str(error))
                if unknown is None:
                    raise
                why = f"there is no table {unknown[1]!r} in this query: write {TABLE_NAME}, which is the table at PATH"
                raise UsageError(why) from error
            names = [column[0] for column in (answer.description if answer is not None else None) or ()]
            rows = answer.fetchall() if names else []
    if given.format == "json":
        say_json({"columns": names, "rows": [[json_value(value) for value in row] for row in rows]})
    else:
        say(grid_lines(None, names, rows))
    return 0


def _say_rows(key: str, found: pa.Table) -> None:
    say_json({key: [{name: json_value(value) for name, value in row.items()} for row in found.to_pylist()]})


def json_value(value: Any) -> Any:
    """A value of a row as JSON has it: numbers that it does not have are text, and so are bytes (Base64)."""
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): json_value(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(inner) for inner in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
