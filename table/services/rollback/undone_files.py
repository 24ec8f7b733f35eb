"""Which files are deleted with an undone commit, and which stay: by a listing, because its markers are gone."""

from collections.abc import Collection

from table.hudi_table import HudiTable
from table.services.rollback.undo_checks import check_written_alone, written_logs
from table.snapshot import Snapshot
from table.timeline.instant import Action
from table.timeline.metadata.rollback import RollbackPlan, RollbackRequest
from table.view.file_group import parse_data_files


def plan_from_listing(snapshot: Snapshot, time: str, action: Action) -> RollbackPlan:
    """Every data file of a commit (ListingBasedRollbackStrategy).

    Args:
        time: the commit's.
        action: the commit's.

    Raises:
        UnsupportedTableError: it wrote into log files of other commits.
    """
    written = {stat.path for stat in written_logs(snapshot, snapshot.timeline.completed_file(time, action))}
    check_written_alone(snapshot.storage, time, written)
    return RollbackPlan(time, action.value, list_undone(snapshot.table, time, written))


def list_undone(table: HudiTable, time: str, written: Collection[str] = ()) -> tuple[RollbackRequest, ...]:
    """The base files of an instant, the log files that it wrote, and all log files of slices that it began.

    Once the instant is undone, readers ignore such a slice only until its time is older than the active timeline.

    Args:
        time: the instant's.
        written: paths of log files that it wrote.
    """
    storage, requests = table.storage, list[RollbackRequest]()
    there = table.store_listing  # a rollback deletes the files that exist, whether or not a commit names them
    for path in there.list_partition_paths():
        bases, logs = parse_data_files(path, there.list_files(path))
        requests += [
            RollbackRequest(path, base.file_id, time, (storage.absolute(base.path),))
            for base in bases
            if base.instant_time == time
        ]
        requests += [
            RollbackRequest(path, log.file_id, log.base_instant_time, (storage.absolute(log.path),))
            for log in logs
            if log.base_instant_time == time or log.path in written
        ]
    return tuple(requests)
