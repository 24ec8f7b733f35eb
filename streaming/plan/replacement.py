"""Overwrites and deleted partitions: the action of their commits, and the partition paths that they name (pure)."""

import re
from collections.abc import Iterable, Sequence

from table.errors import InvalidConfigError
from table.options.choices import TableType
from table.options.operation import Operation
from table.timeline.instant import Action


def action_of(operation: Operation, table_type: str) -> Action:
    """The timeline action of an operation's commit, for a table of that type (CommitUtils)."""
    if operation.replaces:
        return Action.REPLACE_COMMIT
    return Action.DELTA_COMMIT if table_type == TableType.MERGE_ON_READ else Action.COMMIT


def matching_paths(wanted: Iterable[str], existing: Sequence[str]) -> tuple[str, ...]:
    """Partition paths of a table by name, or by patterns in which ``*`` stands for anything.

    Args:
        wanted: as the option ``hoodie.datasource.write.partitions.to.delete`` holds them.
        existing: partition paths of the table.

    Raises:
        InvalidConfigError: names a pattern that matches no path.
    """
    found: dict[str, None] = {}
    for pattern in wanted:
        meant = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
        matches = [path for path in existing if meant.fullmatch(path)]
        if not matches:
            raise _no_such_path(pattern, existing)
        found.update(dict.fromkeys(matches))
    return tuple(found)


def existing_paths(wanted: Iterable[str], existing: Sequence[str]) -> tuple[str, ...]:
    """Checks that the partition paths of rows exist. A ``*`` in them is taken literally.

    Args:
        wanted: the partition paths of rows.
        existing: partition paths of the table.

    Raises:
        InvalidConfigError: names a path that the table does not have.
    """
    there, chosen = frozenset(existing), tuple(dict.fromkeys(wanted))
    for path in chosen:
        if path not in there:
            raise _no_such_path(path, existing)
    return chosen


def _no_such_path(path: str, existing: Sequence[str]) -> InvalidConfigError:
    shown = ", ".join(existing[:5]) or "none"
    return InvalidConfigError(
        f"delete_partition: the table has no partition path {path!r}; among those it has are: {shown}"
    )
