"""A table among others, as a row of figures (pure)."""

from dataclasses import dataclass

from table.inspect.health_facts import Code, Health, HealthFinding, Verdict
from table.inspect.words import WORDS, age_text, size_text

COLUMNS = ("table", "health", "last commit", "rows/min", "live", "files", "small", "since clean", "since compaction")
NUMBERS = COLUMNS[3:]


@dataclass(frozen=True)
class Glance:
    """One table.

    Attributes:
        path: its address.
        health: what was found; None where the table cannot be read.
        error: why it cannot be read; "" where it can.
    """

    path: str
    health: Health | None
    error: str = ""

    @property
    def verdict(self) -> Verdict:
        """How well the table is."""
        return Verdict.BROKEN if self.health is None else self.health.verdict

    @property
    def findings(self) -> tuple[HealthFinding, ...]:
        """What is not well."""
        if self.health is None:
            return (HealthFinding(Verdict.BROKEN, Code.UNREADABLE, self.error),)
        return self.health.findings


def row_of(one: Glance, below: str) -> tuple[str, ...]:
    """The texts of `COLUMNS`; of a table that cannot be read the first two.

    Args:
        one: the table.
        below: the folder that all tables lie in; the row names the rest of the path.
    """
    name = one.path.removeprefix(below.rstrip("/")).strip("/") or one.path
    words, found = WORDS[one.verdict], one.health
    if found is None:
        return (name, words, *("" for _ in COLUMNS[2:]))
    pace, backlog = found.rows_per_minute, found.backlog
    return (
        name,
        words,
        f"{age_text(found.last_commit_age_s)} ago" if found.last_commit else "none",
        "" if pace is None else f"{pace:,.0f}",
        size_text(found.live_bytes + found.log_bytes),
        f"{found.live_files + found.log_files:,}",
        f"{found.small_files:,}",
        "never" if backlog.commits_since_clean is None else f"{backlog.commits_since_clean:,}",
        "" if backlog.commits_since_compaction is None else f"{backlog.commits_since_compaction:,}",
    )
