"""Times of incremental queries that were kept while their table was upgraded to timeline layout 2.

Before, they were request times, and now times of completion are asked for. A write has both, and the second is the
later one: a request time that is taken for a time of completion would give the rows of its own commit again.
"""

from collections.abc import Mapping

from table.config.table_config import UPGRADED_UNTIL, TableConfig
from table.errors import InvalidConfigError
from table.snapshot import Snapshot
from table.timeline.history import HistoryArchive

_INITIAL_VERSION, _FIRST_OF_LAYOUT_2 = "hoodie.table.initial.version", 8


def is_kept_request_time(snapshot: Snapshot, time: str, asked: str) -> bool:
    """Whether a time is the request time of a write from before the upgrade of its table.

    Args:
        snapshot: the table, with the whole active timeline.
        time: instant time.
        asked: the user's times, for the error.

    Raises:
        InvalidConfigError: it is not known which commits the time stands for.
        CorruptFileError: a file of the archive is damaged.
    """
    if not _was_upgraded(snapshot.config):
        return False
    until = snapshot.config.extra.get(UPGRADED_UNTIL)
    if until is not None and time > until:
        return False
    return judge_time(time, _completions(snapshot, time), until, asked)


def _was_upgraded(config: TableConfig) -> bool:
    version = config.extra.get(_INITIAL_VERSION, "")
    by_hudi = version.isdigit() and int(version) < _FIRST_OF_LAYOUT_2
    return config.layout_version > 1 and (by_hudi or UPGRADED_UNTIL in config.extra)


def judge_time(time: str, completions: Mapping[str, str], until: str | None, asked: str) -> bool:
    """As `is_kept_request_time`, from what the timeline says (pure).

    Args:
        time: instant time.
        completions: request time -> time of completion, of the writes that were completed after `time`, at least.
        until: the newest time of completion from before the upgrade; None: another engine upgraded the table.
        asked: the user's times, for the error.
    """
    if time in completions.values():
        return False
    older = {request: done for request, done in completions.items() if until is None or done <= until}
    if until is None and time in older:
        raise InvalidConfigError(
            f"{asked}: {time} is when a commit was requested. The table was upgraded since, and its changes go by "
            f"times of completion now: give {older[time]} if the rows of that commit were read"
        )
    if time in older:
        return True
    under_way = [request for request, done in older.items() if request < time < done] if until is not None else []
    if under_way:
        first = min(under_way)
        raise InvalidConfigError(
            f"{asked}: the commit {first} was requested before {time} and completed after it. The table was upgraded "
            "since: before, its changes went by request times, and now they go by times of completion. Give "
            f"{older[first]} to leave out the rows of that commit, or an earlier time to read them again"
        )
    return False


def _completions(snapshot: Snapshot, time: str) -> Mapping[str, str]:
    visible = snapshot.timeline.visible_times
    archive = snapshot.table.archived_timeline
    if not isinstance(archive, HistoryArchive) or time >= min(visible.values(), default=time):
        return visible
    return {**archive.find_completions({time, *archive.find_completed_after(time)}), **visible}
