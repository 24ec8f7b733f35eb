"""The `hudistream` command; needs no Spark."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from table.cli.upkeep import add_commands, run, run_check
from table.config.properties import parse_properties
from table.errors import HudiError
from table.hudi_table import HudiTable
from table.inspect.doctor import examine
from table.options.write_options import parse_options
from table.timeline.instant import Instant
from table.view.file_group import FileGroup
from table.view.file_system_view import list_file_groups, list_partition_paths

try:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as Grid
except ImportError as error:  # the extra `cli`
    _missing: ImportError | None = error
else:
    _missing = None

SHOWN = 20


@dataclass(frozen=True)
class TableOverview:
    """What `hudistream show` shows: values first, printed second.

    Attributes:
        name: the table's.
        instants: the active timeline, oldest first.
        partitions: partition path -> its file groups.
    """

    name: str
    version: int
    table_type: str
    instants: tuple[Instant, ...]
    partitions: dict[str, tuple[FileGroup, ...]]

    @property
    def live_files(self) -> int:
        """Base files that a snapshot reader opens."""
        return sum(group.latest is not None for groups in self.partitions.values() for group in groups)

    @property
    def total_files(self) -> int:
        """Base files there are, older versions included."""
        return sum(len(group.base_files) for groups in self.partitions.values() for group in groups)

    @property
    def live_bytes(self) -> int:
        """Bytes of the live files."""
        return sum(g.latest.size_bytes for groups in self.partitions.values() for g in groups if g.latest is not None)

    @property
    def total_bytes(self) -> int:
        """Bytes of all base files."""
        return sum(f.size_bytes for groups in self.partitions.values() for g in groups for f in g.base_files)


def load_overview(path: str) -> TableOverview:
    """Looks at a table.

    Raises:
        TableNotFoundError: when there is none.
    """
    table = HudiTable.open(path)
    timeline = table.load_timeline()
    committed = table.load_committed(timeline)
    partitions = {
        partition: list_file_groups(table.storage, partition, committed)
        for partition in list_partition_paths(table.storage)
    }
    return TableOverview(
        table.config.name, table.config.version, table.config.table_type, timeline.instants, partitions
    )


def show(path: str, shown: int = SHOWN) -> None:
    """Prints timeline, partitions, file groups and sizes of a table."""
    overview = load_overview(path)
    console = Console()
    console.print(
        f"[bold]{escape(overview.name)}[/bold]  version {overview.version}, {overview.table_type}, "
        f"{len(overview.partitions)} partitions, {overview.live_files} live files ({size_text(overview.live_bytes)}), "
        f"{overview.total_files} with older versions ({size_text(overview.total_bytes)})"
    )
    timeline = Grid("instant", "action", "state", title="timeline, newest first", title_justify="left")
    for instant in overview.instants[::-1][:shown]:
        timeline.add_row(instant.time, instant.action.value, instant.state.value)
    console.print(timeline)
    if len(overview.instants) > shown:
        console.print(f"… and {len(overview.instants) - shown} older ones")
    columns = ("partition path", "file group", "versions", "newest", "size")
    files = Grid(*columns, title="file groups", title_justify="left")
    rows = [(partition, group) for partition, groups in overview.partitions.items() for group in groups]
    for partition, group in rows[:shown]:
        if group.latest is not None:
            newest, size = group.latest.instant_time, size_text(group.latest.size_bytes)
            files.add_row(escape(partition) or "(none)", group.file_id, str(len(group.base_files)), newest, size)
    console.print(files)
    if len(rows) > shown:
        console.print(f"… and {len(rows) - shown} more")


def size_text(size_bytes: int) -> str:
    """A size for people."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return ""


def doctor(path: str, options_file: str | None) -> bool:
    """Prints what a sink would find at a path. Returns whether it would write there."""
    options = None
    if options_file is not None:
        with open(options_file, "rb") as file:
            options = parse_options(parse_properties(file.read()), path).options
    diagnosis = examine(path, options)
    console = Console()
    marks = {"ok": "[green]ok[/green]  ", "note": "[yellow]note[/yellow]", "stop": "[red]stop[/red]"}
    for finding in diagnosis.findings:
        console.print(marks[finding.level], escape(finding.text), soft_wrap=True, highlight=False)
    verdict = "hudistream may write here" if diagnosis.may_write else "hudistream will not write here"
    console.print(f"[bold]{verdict}[/bold]")
    return diagnosis.may_write


def _at_least_one(text: str) -> int:
    return max(1, int(text))


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit code: 0, or 1 with the reason on standard error."""
    parser = argparse.ArgumentParser(prog="hudistream", description="Look at Hudi tables and keep them, without Spark.")
    commands = parser.add_subparsers(dest="command", required=True)
    shower = commands.add_parser("show", help="timeline, partitions, file groups, sizes")
    shower.add_argument("path", help="the table: a folder or an address")
    shower.add_argument(
        "--limit", type=_at_least_one, default=SHOWN, help="most rows of each list (default %(default)s)"
    )
    examiner = commands.add_parser("doctor", help="may we write here, and what would have to change?")
    examiner.add_argument("path", help="a table, or the place for one")
    examiner.add_argument("--options", help="a file of hoodie.* options, key=value a line")
    add_commands(commands)
    given = parser.parse_args(arguments)
    if _missing is not None:
        print("the command needs its extra: pip install 'hudistream[cli]'", file=sys.stderr)  # noqa: T201
        return 1
    try:
        if given.command == "doctor":
            return 0 if doctor(given.path, given.options) else 1
        if given.command != "show":
            lines, code = run_check(given) if given.command == "check" else (run(given), 0)
            print("\n".join(lines))  # noqa: T201
            return code
        show(given.path, given.limit)
    except (HudiError, OSError) as error:
        print(f"hudistream: {error}", file=sys.stderr)  # noqa: T201
        return 1
    except Exception as error:  # noqa: BLE001 a store's own errors (no credentials) have no common root
        print(f"hudistream: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0
