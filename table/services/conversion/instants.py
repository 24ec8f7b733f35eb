"""Files of instants in another timeline layout: the same actions, in other names and encodings.

Layout 1 has JSON in the files of commits, layout 2 has Avro. All other files are the same in both.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from table import clock
from table.errors import CorruptFileError
from table.timeline.archived_timeline import RetiredFile
from table.timeline.history_file import Row
from table.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from table.timeline.layout import TimelineLayout
from table.timeline.metadata.avro_commit import decode_avro_commit


def completion_times(completed: Mapping[Instant, int], zone: str) -> dict[Instant, str]:
    """When instants of layout 1 were completed: as the store's clock says, and before the next write was requested.

    The clock alone does not say it. A table that was copied, or converted before, has files that are younger than later
    requests. By such a time a log file would lie on the base file that a later compaction made of it, and its records
    would come back: in layout 1 it lies where its name says. So the order of the requests is kept, as layout 1 has it.

    Args:
        completed: completed instants, and when the store says that their files were written, in milliseconds since the
            epoch.
        zone: the table's.
    """
    found: dict[Instant, str] = {}
    writes = sorted(one.time for one in completed if one.action in WRITE_ACTIONS)
    last = ""
    for instant in sorted(completed, key=lambda one: (one.time, completed[one])):
        completed_at = clock.format_instant_time(completed[instant], zone)
        following = bisect_right(writes, instant.time)
        if following < len(writes):
            completed_at = min(completed_at, _moved(writes[following], -1))
        last = max(completed_at, _moved(instant.time, 1), _moved(last, 1) if last else "")
        found[instant] = last
    return found


def _moved(time: str, ms: int) -> str:
    """A time some milliseconds later; arithmetic on the digits, which are no moment of a zone."""
    return clock.format_instant_time(clock.parse_instant_time(time) + ms)


def convert_file(file: Instant, data: bytes, target: TimelineLayout, completed_at: str | None) -> tuple[Instant, bytes]:
    """One file of an instant in another layout.

    Args:
        file: in its state.
        data: its bytes.
        target: the layout that it is to be of.
        completed_at: of a completed file; layout 1 does not name it.

    Raises:
        CorruptFileError: it does not hold what its name says.
    """
    action = file.action
    if action is Action.CLUSTERING and not target.completes_in_order:
        action = Action.REPLACE_COMMIT  # layout 1 knows a clustering by the plan in its request
    done = completed_at if file.is_completed and target.completes_in_order else None
    converted = Instant(file.time, action, file.state, done, names=target.names)
    holds_commit = file.action in WRITE_ACTIONS and file.state is not State.REQUESTED
    if not holds_commit or not data.strip():
        return converted, data
    replaces = file.action is Action.REPLACE_COMMIT and file.is_completed
    metadata = decode_avro_commit(data, file.file_name)
    return converted, target.encode_commit(metadata, replaces=replaces)


def files_of_rows(rows: Iterable[Row], source: TimelineLayout, target: TimelineLayout) -> list[RetiredFile]:
    """What the history of layout 2 holds, as files of layout 1: of each instant the request and the completed file.

    Args:
        rows: of the history.
        source: layout 2.
        target: layout 1.

    Raises:
        CorruptFileError: a row does not hold what it says.
    """
    found: list[RetiredFile] = []
    for row in rows:
        action = _action_of(row)
        asked = Action.COMPACTION if action is Action.COMMIT and row.plan else action
        if action is not Action.SAVEPOINT:
            request = Instant(row.time, asked, State.REQUESTED, names=target.names)
            found.append(RetiredFile(request, row.plan or b"", row.completion_time))
        done = Instant(row.time, action, State.COMPLETED, row.completion_time, names=source.names)
        converted, data = convert_file(done, row.metadata or b"", target, row.completion_time)
        found.append(RetiredFile(converted, data, row.completion_time))
    return found


def _action_of(row: Row) -> Action:
    try:
        return Action(row.action)
    except ValueError as error:
        raise CorruptFileError(f"the history says {row.action!r} of {row.time}, which is no action") from error


def later_files(files: Sequence[RetiredFile], target: TimelineLayout) -> list[RetiredFile]:
    """Files of layout 1 as the history of layout 2 takes them.

    Args:
        files: of the archive log.
        target: layout 2.

    Raises:
        CorruptFileError: one does not hold what its name says.
    """
    converted = []
    for file in files:
        completed_at = max(file.moved_at, _moved(file.instant.time, 1))
        instant, data = convert_file(file.instant, file.data, target, completed_at)
        converted.append(replace(file, instant=instant, data=data, moved_at=completed_at))
    return converted
