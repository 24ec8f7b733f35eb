"""How a check speaks of stray files, base files and log files alike (pure)."""

from typing import NamedTuple

from table.references.judge import Claim
from table.services.check.finding import Kind, Severity
from table.services.check.look import Look

KEPT = "a savepoint holds it"
ADVICE = "stop all writers, then `hudistream check --repair`"


class Stray(NamedTuple):
    """What is wrong with a file, or with the blocks of one instant in it: kind and severity of the finding, and why."""

    kind: Kind
    severity: Severity
    text: str


def describe_stray(look: Look, claim: Claim, time: str, fate: str) -> Stray:
    """What is wrong with a file that no commit names.

    Args:
        look: the table.
        claim: what the records say of it; not WANTED.
        time: the instant that wrote it.
        fate: what becomes of it when archival passes the instant.
    """
    if claim is Claim.UNPROVEN:
        text = f"its blocks count, and neither timeline nor archive tells whether {time} wrote them"
        return Stray(Kind.UNPROVEN_FILES, Severity.NOTE, text)
    if claim is Claim.BESIDE_COMMIT:
        text = f"the commit {time} does not name it, and readers see its rows"
        return Stray(Kind.STRAY_BESIDE_COMMIT, Severity.ERROR, text)
    is_undone = time in look.records.undone
    if claim is Claim.BELOW_LINE:
        is_archived = time in look.archive.times
        why = f"the archived commit {time} does not name it" if is_archived else f"instant {time} was rolled back"
        text = f"{why}, and readers see its rows since archival moved past it"
        return Stray(Kind.VISIBLE_STRAY, Severity.ERROR, text)
    text = f"instant {time} {'was rolled back' if is_undone else 'is not on the timeline'}: {fate}"
    is_next = look.committed.first_time is not None and time < look.last_write
    if is_next:
        return Stray(Kind.WOULD_TURN_VISIBLE, Severity.ERROR, text)
    return Stray(Kind.DANGLING_FILE, Severity.WARNING, text)
