"""What a rollback deletes (pure; MarkerBasedRollbackStrategy)."""

from collections.abc import Callable, Iterable

from table.errors import UnsupportedTableError
from table.files.names import MarkerName, parse_base_file
from table.timeline.instant import Instant
from table.timeline.metadata.rollback import RollbackPlan, RollbackRequest


def plan_rollback(instant: Instant, markers: Iterable[MarkerName], absolute: Callable[[str], str]) -> RollbackPlan:
    """Plan to undo a pending copy-on-write commit.

    Args:
        instant: the failed instant.
        markers: what its writer announced; none when it was only requested.
        absolute: turns a path relative to the table into the form that plans hold.

    Returns:
        A request for each marked base file.

    Raises:
        UnsupportedTableError: for an APPEND marker: log files are undone by the writer of merge-on-read.
    """
    requests = []
    for marker in markers:
        path, _, name = marker.data_file.rpartition("/")
        base = parse_base_file(name)
        if marker.kind == "APPEND" or base is None:
            raise UnsupportedTableError(
                f"the failed instant {instant.time} wrote the log file {marker.data_file}: "
                "let a writer of merge-on-read tables roll it back"
            )
        requests.append(RollbackRequest(path, base.file_id, instant.time, (absolute(marker.data_file),)))
    return RollbackPlan(instant.time, instant.action.value, tuple(requests))
