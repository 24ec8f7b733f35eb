"""The contents of a table as Arrow tables: its history, its partitions, its files. Reads no rows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from table import clock
from table.hudi_table import HudiTable
from table.inspect.overview import CommitFigures, mark_savepoints, read_figures
from table.scan.as_of import AsOf, load_snapshot
from table.schema.avro_schema import from_avro, without_meta_columns
from table.schema.changes import describe_changes
from table.snapshot import Snapshot
from table.timeline.instant import WRITE_ACTIONS, Action, Instant
from table.view.file_group import DataFile, FileSlice, LogFile

HISTORY = pa.schema(
    [
        ("instant", pa.string()),
        ("requested_at", pa.timestamp("ms", "UTC")),
        ("completed_at", pa.timestamp("ms", "UTC")),
        ("action", pa.string()),
        ("state", pa.string()),
        ("operation", pa.string()),
        ("rows_added", pa.int64()),
        ("rows_updated", pa.int64()),
        ("rows_deleted", pa.int64()),
        ("files_written", pa.int64()),
        ("bytes_written", pa.int64()),
        ("schema_changes", pa.list_(pa.string())),
        ("savepoint", pa.bool_()),
        ("seconds", pa.float64()),
    ]
)
PARTITIONS = pa.schema(
    [
        ("partition_path", pa.string()),
        ("file_groups", pa.int64()),
        ("log_files", pa.int64()),
        ("size_bytes", pa.int64()),
        ("newest_instant", pa.string()),
    ]
)
FILES = pa.schema(
    [
        ("partition_path", pa.string()),
        ("file_id", pa.string()),
        ("base_instant", pa.string()),
        ("path", pa.string()),
        ("kind", pa.string()),
        ("size_bytes", pa.int64()),
    ]
)


def load_history(table: HudiTable, limit: int | None = None, *, folds_savepoints: bool = False) -> pa.Table:
    """The active timeline, newest instant first, with the columns `HISTORY`.

    Args:
        limit: most instants; None means all.
        folds_savepoints: whether a savepoint is only a mark at its commit, and no row of its own.
    """
    snapshot = Snapshot.load(table)
    folded, savepoints = mark_savepoints(snapshot.timeline.instants)
    newest = (folded if folds_savepoints else snapshot.timeline.instants)[::-1][:limit]
    figures = read_figures(snapshot, newest)
    changes = _schema_changes(newest, figures)
    spans = _seconds(table, newest)
    rows = []
    for instant in newest:
        row: dict[str, Any] = {"instant": instant.time, "requested_at": _time_ms(table, instant.time)}
        row["completed_at"] = _time_ms(table, instant.completion_time)
        row.update(action=instant.action.value, state=instant.state.value)
        is_savepoint = instant.action is Action.SAVEPOINT  # it has the time of its commit
        row["savepoint"] = instant.time in savepoints and not is_savepoint
        row["seconds"] = None if is_savepoint else spans.get(instant.time)
        done = figures.get(instant.time)
        if done is not None and instant.is_completed and instant.action in WRITE_ACTIONS:
            row.update(done.as_history, schema_changes=changes.get(instant.time))
        rows.append(row)
    return pa.Table.from_pylist(rows, HISTORY)


def _schema_changes(newest: Sequence[Instant], figures: Mapping[str, CommitFigures]) -> dict[str, tuple[str, ...]]:
    """Write -> its changes of the table's columns. The oldest shown write has no predecessor to compare with."""
    found: dict[str, tuple[str, ...]] = {}
    before: str | None = None
    for instant in reversed(newest):
        done = figures.get(instant.time)
        if done is None or not instant.is_completed or not done.schema:
            continue
        if before is not None and before != done.schema:
            old, new = (without_meta_columns(from_avro(text)) for text in (before, done.schema))
            found[instant.time] = describe_changes(old, new)
        before = done.schema
    return found


def _seconds(table: HudiTable, instants: Sequence[Instant]) -> dict[str, float]:
    """Time of a completed instant -> seconds from its request to its completion.

    Layout 2 names both times. In layout 1 the store says when it got the two files; copied files may have lost that.
    """
    asks = any(instant.is_completed and instant.completion_time is None for instant in instants)
    entries = table.storage.list_dir(instants[0].names.folder) if asks else []
    got = {entry.name: entry.modified_ms for entry in entries}
    requested = {name.partition(".")[0]: ms for name, ms in got.items() if name.endswith(".requested")}
    spans = {}
    for instant in instants:
        begin, end = _time_ms(table, instant.time), _time_ms(table, instant.completion_time)
        if end is None:
            begin, end = requested.get(instant.time), got.get(instant.file_name)
        if instant.is_completed and begin is not None and end is not None and end >= begin:
            spans[instant.time] = (end - begin) / 1000
    return spans


def _time_ms(table: HudiTable, time: str | None) -> int | None:
    try:
        return clock.parse_instant_time(time, table.config.timezone) if time is not None else None
    except ValueError:
        return None  # an instant time such as 00000000000001 is no date


def load_partitions(table: HudiTable, as_of: AsOf | None = None) -> pa.Table:
    """The partitions that hold a file, by path, with the columns `PARTITIONS`.

    Args:
        as_of: as `table.scan.as_of.load_snapshot`.
    """
    rows = []
    for path, found in _slices_by_partition(table, as_of):
        files = [file for one in found for file in one.all_files]
        rows.append(
            {
                "partition_path": path,
                "file_groups": len(found),
                "log_files": sum(len(one.log_files) for one in found),
                "size_bytes": sum(file.size_bytes for file in files),
                "newest_instant": max(one.base_instant_time for one in found),
            }
        )
    return pa.Table.from_pylist(rows, PARTITIONS)


def load_files(table: HudiTable, as_of: AsOf | None = None) -> pa.Table:
    """The files that a snapshot shows, with the columns `FILES`: by partition path and file group, base file first.

    Args:
        as_of: as `table.scan.as_of.load_snapshot`.
    """
    rows = [
        {
            "partition_path": path,
            "file_id": one.file_id,
            "base_instant": one.base_instant_time,
            "path": file.path,
            "kind": _kind_of(file),
            "size_bytes": file.size_bytes,
        }
        for path, found in _slices_by_partition(table, as_of)
        for one in found
        for file in one.all_files
    ]
    return pa.Table.from_pylist(rows, FILES)


def _kind_of(file: DataFile) -> str:
    if isinstance(file, LogFile):
        return "change" if file.suffix else "log"
    return "base"


def _slices_by_partition(table: HudiTable, as_of: AsOf | None) -> Iterable[tuple[str, list[FileSlice]]]:
    walked = sorted(load_snapshot(table, as_of).walk_file_groups(), key=lambda found: found[0])
    return [(path, [group.merged_slice for group in groups]) for path, groups in walked if groups]
