"""Commands that describe a table and check a path: show, doctor."""

import argparse
from collections.abc import Collection, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from table.cli.arguments import add_command, add_format, at_least_one, load_storage_options
from table.cli.grid import escaped, new_grid, rendered, timeline_grid
from table.cli.output import plural, say, say_json
from table.config.properties import parse_properties
from table.inspect.doctor import examine
from table.inspect.overview import TableOverview, load_overview, mark_savepoints
from table.inspect.words import size_text
from table.options.write_options import parse_options
from table.timeline.instant import WRITE_ACTIONS, Instant
from table.view.file_group import FileGroup, LogFile

if TYPE_CHECKING:
    from table.cli.grid import Grid

SHOWN = 20


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the commands."""
    shower = add_command(
        commands,
        "show",
        "show timeline, partition paths, file groups, and what each commit did",
        ["hudistream show /data/lake/events", "hudistream show s3://lake/events --limit 5 --format json"],
        show,
    )
    shower.add_argument(
        "--limit", type=at_least_one, default=SHOWN, metavar="N", help="most rows of each list (default %(default)s)"
    )
    add_format(shower)
    examiner = add_command(
        commands,
        "doctor",
        "say whether a sink may write here, and what would have to change",
        ["hudistream doctor /data/lake/events", "hudistream doctor /data/lake/events --options sink.properties"],
        doctor,
    )
    examiner.add_argument("--options", metavar="FILE", help="a file of hoodie.* options, key=value on each line")


def show(given: argparse.Namespace) -> int:
    """Prints the contents of a table."""
    overview = load_overview(given.path, load_storage_options(given), given.limit)
    groups = [(path, group) for path, groups in overview.partitions.items() for group in groups]
    marked, savepoints = mark_savepoints(overview.instants)
    instants = marked[::-1][: given.limit]
    if given.format == "json":
        say_json(_as_json(overview, instants, groups[: given.limit], savepoints))
        return 0
    parts: list[Any] = [
        _headline(overview),
        "",
        timeline_grid([_row(overview, found, savepoints) for found in instants]),
    ]
    if len(marked) > given.limit:
        parts.append(f"… and {len(marked) - given.limit} older ones")
    parts += ["", _files_grid(groups[: given.limit])]
    if len(groups) > given.limit:
        parts.append(f"… and {len(groups) - given.limit} more")
    say(rendered(parts))
    return 0


def _headline(overview: TableOverview) -> str:
    return (
        f"[bold]{escaped(overview.name)}[/bold]  version {overview.version}, {overview.table_type}, "
        f"{plural(len(overview.partitions), 'partition path')}, {plural(overview.live_files, 'live file')} "
        f"({size_text(overview.live_bytes)}), {overview.total_files} with older versions "
        f"({size_text(overview.total_bytes)}){_told_of_logs(overview)}"
    )


def _told_of_logs(overview: TableOverview) -> str:
    logs = [log for groups in overview.partitions.values() for group in groups for log in group.log_files]
    return f", {plural(len(logs), 'log file')} ({size_text(sum(log.size_bytes for log in logs))})" if logs else ""


def _row(overview: TableOverview, instant: Instant, savepoints: Collection[str]) -> dict[str, Any]:
    figures = overview.commits.get(instant.time) if instant.action in WRITE_ACTIONS else None
    facts = {"instant": instant.time, "action": instant.action.value, "state": instant.state.value}
    return {**facts, "savepoint": instant.time in savepoints, **(figures.as_history if figures is not None else {})}


def _count_logs(group: FileGroup) -> int:
    return sum(isinstance(file, LogFile) and not file.suffix for file in group.current_files)


def _files_grid(groups: Iterable[tuple[str, FileGroup]]) -> "Grid":
    numbers = ("versions", "logs", "size")
    grid = new_grid(
        "file groups", "partition path", "file group", "newest", *numbers, numbers=numbers, whole=("newest",)
    )
    for path, group in groups:
        current = group.current_files
        logs = _count_logs(group)
        size = size_text(sum(file.size_bytes for file in current))
        newest = group.latest_slice.base_instant_time
        grid.add_row(escaped(path) or "(none)", group.file_id, newest, str(len(group.slices)), str(logs), size)
    return grid


def _as_json(
    overview: TableOverview,
    instants: Iterable[Instant],
    groups: Iterable[tuple[str, FileGroup]],
    savepoints: Collection[str],
) -> dict[str, Any]:
    shown = []
    for instant in instants:
        figures = overview.commits.get(instant.time)
        state = {
            "instant": instant.time,
            "action": instant.action.value,
            "state": instant.state.value,
            "savepoint": instant.time in savepoints,
        }
        shown.append({**state, **(asdict(figures) if figures is not None else {})})
    files = [
        {
            "partition_path": path,
            "file_id": group.file_id,
            "versions": len(group.slices),
            "newest": group.latest_slice.base_instant_time,
            "size_bytes": sum(file.size_bytes for file in group.current_files),
            "log_files": _count_logs(group),
            "slices": [
                {
                    "base_instant": found.base_instant_time,
                    "base_file": found.base_file.name if found.base_file is not None else None,
                    "log_files": [log.name for log in found.log_files],
                }
                for found in group.slices
            ],
        }
        for path, group in groups
    ]
    return {
        "name": overview.name,
        "version": overview.version,
        "table_type": overview.table_type,
        "partition_paths": len(overview.partitions),
        "live_files": overview.live_files,
        "live_bytes": overview.live_bytes,
        "total_files": overview.total_files,
        "total_bytes": overview.total_bytes,
        "instants": shown,
        "file_groups": files,
    }


def doctor(given: argparse.Namespace) -> int:
    """Prints what a sink would find at a path. Returns 1 if the sink would not write there."""
    options = None
    if given.options is not None:
        with open(given.options, "rb") as file:
            options = parse_options(parse_properties(file.read()), given.path).options
    diagnosis = examine(given.path, options, load_storage_options(given))
    marks = {"ok": "[green]ok[/green]  ", "note": "[yellow]note[/yellow]", "stop": "[red]stop[/red]"}
    verdict = "hudistream may write here" if diagnosis.may_write else "hudistream will not write here"
    lines = [f"{marks[finding.level]} {escaped(finding.text)}" for finding in diagnosis.findings]
    say(rendered([*lines, f"[bold]{verdict}[/bold]"]))
    return 0 if diagnosis.may_write else 1
