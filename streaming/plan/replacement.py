"""Which file groups a batch takes out of sight: overwrites and deleted partitions (replace commits)."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from table.errors import InvalidConfigError
from table.options.operation import Operation
from table.timeline.instant import Action
from table.view.file_group import CommittedInstants
from table.view.file_system_view import list_latest_slices
from table.view.listing import Listing


def action_of(operation: Operation) -> Action:
    """What the commit of an operation is called on the timeline."""
    return Action.REPLACE_COMMIT if operation.replaces else Action.COMMIT


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


def list_replaced(
    listing: Listing, committed: CommittedInstants, operation: Operation, paths: Iterable[str]
) -> Mapping[str, tuple[str, ...]]:
    """The live file groups that a commit replaces.

    Args:
        listing: the table's.
        committed: what is visible without the commit.
        operation: one that replaces.
        paths: partition paths that the batch writes, or deletes; overwriting the table means all there are.
    """
    chosen = listing.list_partition_paths() if operation.overwrites_table else sorted(set(paths))
    live = {path: list_latest_slices(listing, path, committed) for path in chosen}
    return {path: tuple(found.file_id for found in slices) for path, slices in live.items() if slices}
