"""Lists the file groups that a batch replaces."""

from collections.abc import Iterable, Mapping

from table.options.operation import Operation
from table.view.file_group import CommittedInstants
from table.view.file_system_view import list_latest_slices
from table.view.listing import Listing


def list_replaced(
    listing: Listing, committed: CommittedInstants, operation: Operation, paths: Iterable[str]
) -> Mapping[str, tuple[str, ...]]:
    """The live file groups that a commit replaces.

    Args:
        listing: the table's.
        committed: the instants that are visible without the commit.
        operation: an overwrite or a delete of partitions.
        paths: partition paths that the batch writes or deletes. An overwrite of the table replaces all paths instead.
    """
    chosen = listing.list_partition_paths() if operation.overwrites_table else sorted(set(paths))
    live = {path: list_latest_slices(listing, path, committed) for path in chosen}
    return {path: tuple(found.file_id for found in slices) for path, slices in live.items() if slices}
