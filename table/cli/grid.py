"""Tables of text, by rich: as wide as a terminal, or as wide as they need to be in a file."""

import io
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from table.inspect.words import size_text
from table.timeline.instant import State

try:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as Grid
except ImportError as error:  # the extra `cli`
    missing: ImportError | None = error
else:
    missing = None

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["SAVED", "Grid", "escaped", "grid_lines", "missing", "new_grid", "rendered", "timeline_grid"]

SAVED = "⚑"
"""The mark of a commit that has a savepoint."""
_UNBOUND = 4096  # columns: nothing is cut off for the program that reads
_LEAST = 20


def escaped(text: str) -> str:
    """A text in which nothing counts as markup."""
    return escape(text)


def new_grid(title: str, *columns: str, numbers: Iterable[str] = (), whole: Iterable[str] = ()) -> "Grid":
    """A grid of texts with headings.

    Args:
        title: a line above it.
        columns: its headings. A long text goes on in the next line.
        numbers: those of them that hold numbers.
        whole: those of them whose text stays in one line.
    """
    grid = Grid(
        title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0)
    )
    numbers, whole = set(numbers), set(whole)
    for name in columns:
        is_number = name in numbers
        grid.add_column(
            name, justify="right" if is_number else "left", no_wrap=is_number or name in whole, overflow="fold"
        )
    return grid


def timeline_grid(rows: Sequence[Mapping[str, Any]]) -> "Grid":
    """Instants with what they did.

    Args:
        rows: newest first, with the columns of `HudiTable.history`.
    """
    counts = ("added", "updated", "deleted", "files", "size")
    grid = new_grid(
        "timeline, newest first", "instant", "action", "operation", *counts, numbers=counts, whole=("instant",)
    )
    for row in rows:
        state = "" if row["state"] == State.COMPLETED.value else f" {row['state']}"
        mark = f" {SAVED}" if row["savepoint"] else ""
        grid.add_row(row["instant"], f"{row['action']}{state}{mark}", *_figures(row))
    if any(row["savepoint"] for row in rows):
        grid.caption, grid.caption_justify = f"{SAVED} has a savepoint: its files are kept", "left"
    return grid


def _figures(row: Mapping[str, Any]) -> tuple[str, ...]:
    if row.get("operation") is None:
        return ()
    counts = (row["rows_added"], row["rows_updated"], row["rows_deleted"], row["files_written"])
    return (escape(row["operation"]), *(f"{count:,}" for count in counts), size_text(row["bytes_written"]))


def grid_lines(
    title: str | None, names: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Iterable[str] = ()
) -> list[str]:
    """A table of text: its lines. Values are strangers' text: nothing in them is taken for markup."""
    grid = new_grid(title or "", *map(escape, names), numbers=map(escape, numbers))
    for row in rows:
        grid.add_row(*("" if value is None else escape(str(value)) for value in row))
    return rendered([grid])


def rendered(parts: "Iterable[RenderableType]") -> list[str]:
    """Texts and grids rendered by `rich`. Nothing is cut off.

    On a terminal there are colours, and grids are as wide as it. Elsewhere a grid is as wide as it needs to be.
    """
    is_terminal = sys.stdout.isatty()
    width = max(_LEAST, shutil.get_terminal_size().columns) if is_terminal else _UNBOUND
    written = io.StringIO()
    console = Console(file=written, force_terminal=is_terminal, width=width)
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, str), highlight=False)
    return [line.rstrip() for line in written.getvalue().splitlines()]
