"""Overwrites and deleted partitions: what their commits are called, and which partition paths are meant (pure)."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from table.errors import InvalidConfigError
from table.options.choices import TableType
from table.options.operation import Operation
from table.timeline.instant import Action


def action_of(operation: Operation, table_type: str) -> Action:
    """What the commit of an operation is called on the timeline of a table of that type (CommitUtils)."""
    if operation.replaces:
        return Action.REPLACE_COMMIT
    return Action.DELTA_COMMIT if table_type == TableType.MERGE_ON_READ else Action.COMMIT


def matching_paths(wanted: Iterable[str], existing: Sequence[str]) -> tuple[str, ...]:
    """Partition paths of a table by name, or by patterns in which ``*`` stands for anything.

    Raises:
        InvalidConfigError: names what matches nothing.
    """
    found: dict[str, None] = {}
    for pattern in wanted:
        matches = [path for path in existing if path == pattern or ("*" in pattern and fnmatchcase(path, pattern))]
        if not matches:
            shown = ", ".join(existing[:5]) or "none"
            raise InvalidConfigError(
                f"delete_partition: the table has no partition path {pattern!r}; among those it has are: {shown}"
            )
        found.update(dict.fromkeys(matches))
    return tuple(found)
