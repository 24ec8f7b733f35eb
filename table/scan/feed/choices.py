"""What a change feed shows, as a value; and the columns of its rows (pure)."""

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from table.config.choice import Choice
from table.errors import InvalidConfigError
from table.options.values import OneOf

OPERATION = "_change_operation"
INSTANT = "_change_instant"
BEFORE = "_change_before"
CHANGE_COLUMNS = (OPERATION, INSTANT, BEFORE)
INSERTED, UPDATED, DELETED = "i", "u", "d"


class Moves(Choice):
    """How a row is shown that a global index has moved to another partition path."""

    DELETE_INSERT = "delete_insert"
    UPDATE = "update"


MovesName = Literal["delete_insert", "update"]


@dataclass(frozen=True)
class FeedChoices:
    """What a change feed shows.

    Attributes:
        deletes: whether deleted rows are shown.
        before: whether each row has the row before the change, too.
        each_commit: whether each commit's change of a row is shown; else one change for all commits of the range.
        moves: how a row that went to another partition path is shown.
        unchanged: whether a row that was written again with equal values is shown as an update, as Hudi does.
    """

    deletes: bool = True
    before: bool = False
    each_commit: bool = False
    moves: Moves = Moves.UPDATE
    unchanged: bool = True

    def __post_init__(self) -> None:
        for name in ("deletes", "before", "each_commit", "unchanged"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidConfigError(f"{name}={getattr(self, name)!r}: give True or False")


def choices_of(*, moves: Moves | MovesName | None = None, **given: bool | None) -> FeedChoices | None:
    """The choices that a user names; None where none is named.

    Args:
        moves: as in `FeedChoices`, or its text.
        given: the other choices by name; None: the default.

    Raises:
        InvalidConfigError: `moves` is another text.
    """
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if moves is not None:
        chosen["moves"] = OneOf(Moves, what="choice").read("moves", moves)
    return FeedChoices(**chosen) if chosen else None


def shown_schema(columns: pa.Schema, choices: FeedChoices) -> pa.Schema:
    """The columns of a feed's rows: operation, instant, those of the table; with `FeedChoices.before` the row before.

    Args:
        columns: of the table that are wanted, in order (Arrow).
        choices: what is shown.

    Raises:
        InvalidConfigError: the table has a column with a name that the feed needs.
    """
    taken = [name for name in columns.names if name in CHANGE_COLUMNS]
    if taken:
        raise InvalidConfigError(
            f"the table has a column {taken[0]!r}, and rows of a change feed have one of that name: name the columns "
            "that you want"
        )
    fields = [pa.field(OPERATION, pa.string()), pa.field(INSTANT, pa.string()), *columns]
    if choices.before:
        fields.append(pa.field(BEFORE, pa.struct(list(columns))))
    return pa.schema(fields)
