"""Lists the file groups that a batch replaces, and the partition paths that it deletes."""

from collections.abc import Iterable, Mapping

from streaming.batch.workers import Workers
from streaming.plan.replacement import existing_paths, matching_paths
from table.errors import InvalidConfigError
from table.keys.keygen import KeyExpressions
from table.options.operation import Operation
from table.options.write_options import WriteOptions
from table.snapshot import Snapshot
from table.view.file_group import CommittedInstants, build_file_groups
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
    live = {path: _list_groups(listing, committed, path) for path in chosen}
    return {path: file_ids for path, file_ids in live.items() if file_ids}


def _list_groups(listing: Listing, committed: CommittedInstants, path: str) -> tuple[str, ...]:
    """The live file groups of a path. Those whose files were lost are replaced, too: nothing of them is built upon."""
    seen = {group.file_id for group in build_file_groups(path, listing.list_files(path), committed)}
    named = committed.named.of(path) if committed.named is not None else ()
    return tuple(sorted(seen.union(one for one in named if not committed.is_replaced(path, one))))


def find_leaving(
    options: WriteOptions, snapshot: Snapshot, keys: KeyExpressions, workers: Workers
) -> tuple[str, ...] | None:
    """Partition paths that are to be deleted; None where rows are written.

    Args:
        options: of the batch.
        snapshot: the table.
        keys: of its rows.
        workers: list the partition paths of the rows.

    Raises:
        InvalidConfigError: a path is not there, or the table has no partition columns.
    """
    if not options.effective_operation.removes_partitions:
        return None
    patterns, existing = options.overwrite.partitions_to_delete, snapshot.list_partition_paths()
    if patterns:
        return matching_paths(patterns, existing)
    if not snapshot.config.partition_fields:
        raise InvalidConfigError(
            "delete_partition: the table has no partition columns, so rows name no partition path. Delete rows by "
            "operation='delete'; hoodie.datasource.write.partitions.to.delete=* deletes all rows of the table"
        )
    return existing_paths(workers.list_partition_paths(keys), existing)
