"""What a rollback deletes (pure; MarkerBasedRollbackStrategy)."""

from collections.abc import Callable, Iterable, Mapping

from table.errors import UnsupportedTableError
from table.files.names import MarkerName, parse_base_file, parse_log_file
from table.timeline.instant import Instant
from table.timeline.metadata.rollback import RollbackPlan, RollbackRequest


def plan_rollback(
    instant: Instant,
    markers: Iterable[MarkerName],
    absolute: Callable[[str], str],
    writers: Mapping[str, frozenset[str]] | None = None,
) -> RollbackPlan:
    """Plan to undo a pending commit.

    A log file that only this instant wrote is deleted: no commit of hudistream appends to a log file. Hudi leaves the
    file, and writes a rollback block after it that takes its blocks back. Both hide the same rows, and a deleted file
    stays hidden for ever.

    Args:
        instant: the failed instant.
        markers: of the files that its writer announced; none when the instant was only requested.
        absolute: turns a path relative to the table into the form that plans hold.
        writers: path of a log file -> the instants whose blocks it holds.

    Returns:
        A request for each marked file.

    Raises:
        UnsupportedTableError: the instant appended to a log file of another instant, as older writers do.
    """
    requests = []
    for marker in markers:
        path, _, name = marker.data_file.rpartition("/")
        base, log = parse_base_file(name), parse_log_file(name)
        others = (writers or {}).get(marker.data_file, frozenset()) - {instant.time}
        if others or (base is None and log is None):
            raise UnsupportedTableError(
                f"the failed instant {instant.time} appended to {marker.data_file}, which holds rows of "
                f"{max(others, default='others')}, too: let the writer that began it roll it back"
            )
        if log is not None:
            request = RollbackRequest(path, log.file_id, log.base_instant_time, (absolute(marker.data_file),))
        else:
            assert base is not None
            request = RollbackRequest(path, base.file_id, instant.time, (absolute(marker.data_file),))
        requests.append(request)
    return RollbackPlan(instant.time, instant.action.value, tuple(requests))
