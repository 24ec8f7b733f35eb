"""What one look says of instants that were lost although they were decided to be committed (pure)."""

from collections.abc import Iterator

from table.references.decided import WAY_OUT
from table.services.check.finding import Finding, Kind, Repair, Severity
from table.services.check.look import Look
from table.services.check.lost_instants import LostInstant, find_needed
from table.timeline.end_record import end_path
from table.timeline.instant import WRITE_ACTIONS, Action

_BESIDE = (Action.SAVEPOINT, Action.CLEAN)  # they build on no write
_COMPACTIONS = (Action.COMPACTION, Action.LOG_COMPACTION)


def judge_lost(look: Look) -> Iterator[Finding]:
    """End records that say "commit", while the instant is not on the timeline, not archived, and not undone."""
    line = look.committed.first_time
    for time, lost in look.lost.items():
        if line is not None and time < line:
            continue  # its files count as committed
        where, advice = end_path(time, lost.end.action), WAY_OUT
        text = "it says commit, and the instant is not on the timeline"
        if not lost.paths:
            why = "another engine, or a person, did that"
            advice = "find out who; compare the rows with their source"
            yield Finding(Kind.CONTRADICTED_END_RECORD, Severity.WARNING, where, text, Repair.REFUSED, why, advice)
            continue
        text += f": readers do not see the {len(lost.paths)} files that it names, {min(lost.paths)} among them"
        why = find_obstacle(look, lost)
        repair = Repair.REFUSED if why else Repair.POSSIBLE
        yield Finding(Kind.CONTRADICTED_END_RECORD, Severity.ERROR, where, text, repair, why, advice)


def find_obstacle(look: Look, lost: LostInstant) -> str:
    """Why a lost instant is not put back; "" if it can be.

    Args:
        look: the table.
        lost: the instant.
    """
    end = lost.end
    if end.action not in WRITE_ACTIONS:
        return f"the plan of the {end.action.value} was lost with it"
    if look.timeline.layout.completes_in_order and end.completion_time is None:
        return "it was decided in another timeline layout, so that it has no completion time"
    later = [i.time for i in look.timeline if i.time > end.time and i.action not in _BESIDE]
    if later and not _is_continued(look, end.time):
        return f"{later[0]} came after it, and nothing shows that it was made with it"
    if any(file.time > end.time and file.action in _COMPACTIONS for file in look.timeline.files):
        return "a compaction came after it"
    sizes = dict[str, int]()
    for folder in look.folders.values():
        sizes.update((file.path, file.size_bytes) for file in folder.files)
        sizes.update((file.path, file.size_bytes) for file in folder.log_files)
    for stat in find_needed(look.lost, end.time):
        size = sizes.get(stat.path)
        if size is None or size < stat.file_size_bytes:
            return f"{stat.path}, which it names, is not there whole"
    return ""


def _is_continued(look: Look, time: str) -> bool:
    """Whether a commit continued a file of an instant: so it was lost later."""
    return any(stat.prev_commit == time for commit in look.commits.values() for stat in commit.stats)
