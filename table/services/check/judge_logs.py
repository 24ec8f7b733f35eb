"""What one look says of the log files of a merge-on-read table (pure).

On version 6 a block of a log file counts when its instant is completed, or older than the first completed write of the
active timeline, unless a later block takes it back. The name of a log file says which slice it belongs to, but not
which instant wrote it: a commit's write stats say that, or else the blocks of the file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from table.files.log.instants import LogInstants
from table.files.names import parse_log_file
from table.services.check.finding import Finding, Kind, Repair, Severity
from table.services.check.look import Folder, Group, Look, tells_all
from table.view.file_group import LogFile

_KEPT = "a savepoint holds it"
_ADVICE = "stop all writers, then `hudistream check --repair`"


@dataclass(frozen=True)
class _Verdict:
    """What is wrong with a block: kind and severity of the finding, and why."""

    kind: Kind
    severity: Severity
    text: str


def judge_stray_logs(look: Look) -> Iterator[Finding]:
    """Log files that no commit names, and whose blocks count, or will."""
    held = frozenset[str]().union(*look.held.values())
    for folder in look.folders.values():
        taken_back = _targets(look, folder)
        for log in folder.log_files:
            found = look.log_instants.get(log.path)
            if found is not None and not found.rollbacks:
                yield from _judge_unnamed(look, log, found, taken_back.get(log.file_id, set()), held)


def _targets(look: Look, folder: Folder) -> Mapping[str, set[str]]:
    """File id -> instants whose blocks are taken back."""
    found: dict[str, set[str]] = {}
    for log in folder.log_files:
        if log.path in look.log_instants:
            found.setdefault(log.file_id, set()).update(look.log_instants[log.path].targets)
    return found


def _judge_unnamed(
    look: Look, log: LogFile, found: LogInstants, taken_back: set[str], held: frozenset[str]
) -> Iterator[Finding]:
    writers = found.writers - taken_back
    if writers & look.pending or (not found.writers and look.pending):
        return  # its writer may be about to name it
    if not found.writers:
        text = "no commit names it, and it holds no whole block"
        verdicts = [_Verdict(Kind.DANGLING_FILE, Severity.WARNING, text)]
    else:
        verdicts = [verdict for time in sorted(writers) if (verdict := _judge_block(look, log, time)) is not None]
    if not verdicts:
        return
    worst = min(verdicts, key=lambda verdict: list(Severity).index(verdict.severity))
    why = _KEPT if log.path in held else ""
    if len(verdicts) < len(found.writers):
        why = why or "it holds blocks of other instants, too"
    advice = _ADVICE
    if worst.kind is Kind.UNPROVEN_FILES:
        why, advice = "nothing is proven about it", "nothing, unless the table shows rows that no writer wrote"
    elif worst.kind is Kind.STRAY_BESIDE_COMMIT and _holds_the_only_copy(look, log, min(writers)):
        why, advice = "the commit's own file is not there: this file may hold its rows", "compare the two files"
    yield Finding(
        worst.kind, worst.severity, log.path, worst.text, Repair.REFUSED if why else Repair.POSSIBLE, why, advice
    )


def _judge_block(look: Look, log: LogFile, time: str) -> _Verdict | None:
    """What is wrong with a block of an instant in a file that no commit names; None where nothing is."""
    if time in look.committed.times:
        commit = look.commits.get(time)
        if commit is None:
            return None  # unreadable, which is another finding, or archived since
        if not tells_all(commit):
            return _unproven(time)
        text = f"the commit {time} does not name it, and readers see its rows"
        return _Verdict(Kind.STRAY_BESIDE_COMMIT, Severity.ERROR, text)
    if look.committed.includes(time):
        return _judge_below_line(look, time)
    if time in look.archive.times:
        return None
    is_next = look.committed.first_time is not None and time < look.last_write
    said = f"instant {time} " + ("was rolled back" if time in look.undone else "is not on the timeline")
    return _Verdict(
        Kind.WOULD_TURN_VISIBLE if is_next else Kind.DANGLING_FILE,
        Severity.ERROR if is_next else Severity.WARNING,
        f"{said}: its blocks do not count, and will when archival passes the instant (slice {log.base_instant_time})",
    )


def _judge_below_line(look: Look, time: str) -> _Verdict:
    archive = look.archive
    if time in archive.times and time not in archive.silent:
        said = f"the archived commit {time} does not name it"
    elif time in archive.undone or time in look.undone:
        said = f"instant {time} was rolled back"
    else:
        return _unproven(time)
    text = f"{said}, and readers see its rows since archival moved past it"
    return _Verdict(Kind.VISIBLE_STRAY, Severity.ERROR, text)


def _unproven(time: str) -> _Verdict:
    text = f"its blocks count, and neither timeline nor archive tells whether {time} wrote them"
    return _Verdict(Kind.UNPROVEN_FILES, Severity.NOTE, text)


def _holds_the_only_copy(look: Look, log: LogFile, time: str) -> bool:
    """Whether the files that a commit names for this file group are not all there."""
    commit = look.commits.get(time)
    stats = commit.stats if commit is not None else ()
    own = {stat.path for stat in stats if (stat.partition_path, stat.file_id) == (log.partition_path, log.file_id)}
    return bool(own - look.folders[log.partition_path].paths)


def judge_missing_logs(look: Look, bases: Mapping[Group, str]) -> Iterator[Finding]:
    """Log files that commits name, that readers of the newest snapshot need, and that do not exist.

    Args:
        look: the table.
        bases: file group -> the instant of its newest base file, there or lost.
    """
    named: dict[Group, dict[str, str]] = {group: dict(paths) for group, paths in look.archive.logs.items()}
    for time, commit in look.commits.items():
        for stat in commit.stats:
            if parse_log_file(stat.path.rpartition("/")[2]) is not None:
                named.setdefault((stat.partition_path, stat.file_id), {})[stat.path] = time
    there = {path for folder in look.folders.values() for path in folder.paths}
    for group, paths in named.items():
        for path, time in paths.items():
            name = parse_log_file(path.rpartition("/")[2])
            since = look.committed.completed_at(time) if look.committed.logs_name_writers else None
            is_folded = name is None or (since or name.base_instant_time) < bases.get(group, "")
            is_replaced = look.committed.is_replaced(*group) or look.archive.replaced.get(group, "") > time
            if path in there or is_folded or is_replaced:
                continue
            yield Finding(
                Kind.MISSING_FILE,
                Severity.ERROR,
                path,
                f"the commit {time} wrote it into the newest slice of its file group, and it is not there: its changes "
                "are lost",
                Repair.REFUSED,
                "its rows are in no other file",
                "restore a savepoint, bring the file back from a backup, or write its rows again",
            )
