"""What one look says of the log files of a merge-on-read table (pure).

On version 6 a block of a log file counts when its instant is completed, or older than the first completed write of the
active timeline, unless a later block takes it back. The name of a log file says which slice it belongs to, but not
which instant wrote it: a commit's write stats say that, or else the blocks of the file.
"""

from collections.abc import Iterable, Iterator, Mapping

from table.files.log.instants import LogInstants
from table.references.judge import Claim, judge
from table.services.check.finding import Finding, Kind, Repair, Severity
from table.services.check.look import Folder, Look
from table.services.check.strays import ADVICE, KEPT, Stray, describe_stray
from table.view.file_group import LogFile


def judge_stray_logs(look: Look) -> Iterator[Finding]:
    """Log files that no commit names, and whose blocks count, or will."""
    for folder in look.folders.values():
        taken_back = _targets(look, folder)
        for log in folder.log_files:
            found = look.log_instants.get(log.path)
            if found is not None and not found.rollbacks:
                yield from _judge_unnamed(look, log, found, taken_back.get(log.file_id, set()))


def _targets(look: Look, folder: Folder) -> Mapping[str, set[str]]:
    """File id -> instants whose blocks are taken back."""
    found: dict[str, set[str]] = {}
    for log in folder.log_files:
        if log.path in look.log_instants:
            found.setdefault(log.file_id, set()).update(look.log_instants[log.path].targets)
    return found


def _judge_unnamed(look: Look, log: LogFile, found: LogInstants, taken_back: set[str]) -> Iterator[Finding]:
    writers = found.writers - taken_back
    if writers & look.pending or (not found.writers and look.pending):
        return  # its writer may be about to name it
    if not found.writers:
        text = "no commit names it, and it holds no whole block"
        strays = [Stray(Kind.DANGLING_FILE, Severity.WARNING, text)]
    else:
        strays = list(_judge_blocks(look, log, writers))
    if not strays:
        return
    worst = min(strays, key=lambda stray: list(Severity).index(stray.severity))
    why = KEPT if log.path in look.held_paths else ""
    if len(strays) < len(found.writers):
        why = why or "it holds blocks of other instants, too"
    advice = ADVICE
    if worst.kind is Kind.UNPROVEN_FILES:
        why, advice = "nothing is proven about it", "nothing, unless the table shows rows that no writer wrote"
    elif worst.kind is Kind.STRAY_BESIDE_COMMIT and look.lost_files(log, min(writers)):
        why, advice = "the commit's own file is not there: this file may hold its rows", "compare the two files"
    yield Finding(
        worst.kind, worst.severity, log.path, worst.text, Repair.REFUSED if why else Repair.POSSIBLE, why, advice
    )


def _judge_blocks(look: Look, log: LogFile, writers: Iterable[str]) -> Iterator[Stray]:
    """What is wrong with the blocks of a file that no commit names, instant by instant."""
    fate = f"its blocks do not count, and will when archival passes the instant (slice {log.base_instant_time})"
    for time in sorted(writers):
        claim = judge(log.path, time, look.records)
        if claim is not Claim.WANTED:
            yield describe_stray(look, claim, time, fate)
