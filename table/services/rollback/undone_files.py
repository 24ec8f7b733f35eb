"""Which files go with a commit that is undone, by a listing: its markers are not there any more."""

from collections.abc import Collection

from table.hudi_table import HudiTable
from table.services.rollback.undo_checks import check_written_alone, written_logs
from table.timeline.instant import Action
from table.timeline.metadata.rollback import RollbackPlan, RollbackRequest
from table.timeline.timeline import Timeline
from table.view.file_group import parse_data_files
from table.view.listing import StorageListing


def plan_from_listing(table: HudiTable, timeline: Timeline, time: str, action: Action) -> RollbackPlan:
    """Every data file of a commit (ListingBasedRollbackStrategy).

    Args:
        table: the table.
        timeline: as loaded.
        time: the commit's.
        action: the commit's.

    Raises:
        UnsupportedTableError: it wrote into log files of others.
    """
    written = {stat.path for stat in written_logs(table, timeline.completed_file(time, action))}
    check_written_alone(table.storage, time, written)
    return RollbackPlan(time, action.value, list_undone(table, time, written))


def list_undone(table: HudiTable, time: str, written: Collection[str] = ()) -> tuple[RollbackRequest, ...]:
    """The base files of an instant, the log files that it wrote, and all log files of slices that it began.

    Without the instant no reader would know of such a slice, until its time is older than the active timeline.

    Args:
        table: the table.
        time: the instant's.
        written: paths of log files that it wrote.
    """
    storage, requests = table.storage, list[RollbackRequest]()
    there = StorageListing(storage)  # a rollback deletes what is there, whoever knows of it
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
