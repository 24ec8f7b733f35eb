"""What a check finds: typed findings and the verdict for the table (pure)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from table.notebook import ShownInNotebooks


class Severity(str, Enum):
    """How bad a finding is."""

    ERROR = "error"  # readers see wrong rows, lose rows, or will do so after the next archival
    WARNING = "warning"  # a person should look
    NOTE = "note"  # disappears by itself, or cannot be proven


class Repair(str, Enum):
    """What `--repair` does about a finding."""

    DONE = "done"
    POSSIBLE = "possible"
    REFUSED = "refused"


class Kind(str, Enum):
    """What kind of thing a finding is."""

    STRAY_BESIDE_COMMIT = "stray_beside_commit"
    VISIBLE_STRAY = "visible_stray"
    WOULD_TURN_VISIBLE = "would_turn_visible"
    DANGLING_FILE = "dangling_file"
    UNPROVEN_FILES = "unproven_files"
    MISSING_FILE = "missing_file"
    MISSING_FROM_SAVEPOINT = "missing_from_savepoint"
    WRONG_SIZE = "wrong_size"
    ACCEPTED_LOSS = "accepted_loss"
    CONTINUED_NEWER_FILE = "continued_newer_file"
    NOT_CONTINUED = "not_continued"
    REPLACED_AND_VISIBLE = "replaced_and_visible"
    REPLACED_STILL_THERE = "replaced_still_there"
    PARTITION_WITHOUT_METADATA = "partition_without_metadata"
    EMPTY_PARTITION = "empty_partition"
    BROKEN_MARKERS = "broken_markers"
    ENDED_MARKERS = "ended_markers"
    ENDED_HEARTBEAT = "ended_heartbeat"
    ENDED_STAGING = "ended_staging"
    ENDED_END_RECORD = "ended_end_record"
    BROKEN_END_RECORD = "broken_end_record"
    CONTRADICTED_END_RECORD = "contradicted_end_record"
    TEMPORARY_FILE = "temporary_file"
    PROPERTIES = "properties"
    METADATA_TABLE = "metadata_table"
    EXPIRED_LEASE = "expired_lease"
    PENDING_WRITE = "pending_write"
    END_NOT_CARRIED_OUT = "end_not_carried_out"
    PENDING_SERVICE = "pending_service"
    INSTANT_WITH_GAP = "instant_with_gap"
    SAME_TIME = "same_time"
    EMPTY_COMMIT = "empty_commit"
    DAMAGED_COMMIT = "damaged_commit"
    UNREADABLE_TIMELINE = "unreadable_timeline"
    UNREADABLE_FILE = "unreadable_file"
    DAMAGED_BLOCK = "damaged_block"
    WRONG_FILTER = "wrong_filter"
    WRONG_KEY_RANGE = "wrong_key_range"
    NO_HUDI_FOOTER = "no_hudi_footer"
    SCHEMA_DOES_NOT_FIT = "schema_does_not_fit"
    WRONG_COUNT = "wrong_count"
    DOUBLED_KEYS = "doubled_keys"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not fit.

    Attributes:
        kind: what it is.
        severity: how bad it is.
        where: path relative to the table, or instant time.
        text: what was found.
        repair: what `--repair` does, or did.
        why: why it was refused; "" elsewhere.
        advice: what a person can do.
    """

    kind: Kind
    severity: Severity
    where: str
    text: str
    repair: Repair
    why: str = ""
    advice: str = ""

    @property
    def key(self) -> tuple[Kind, str]:
        """Equal if two looks found the same thing."""
        return self.kind, self.where

    def to_json(self) -> dict[str, Any]:
        """As `--format json` shows it."""
        return {name: getattr(value, "value", value) for name, value in asdict(self).items()}


@dataclass(frozen=True, repr=False)
class CheckReport(ShownInNotebooks):
    """What a check found.

    Attributes:
        table: its address.
        findings: errors first, then warnings, then notes.
        files: data files in the data folders.
        files_read: data files whose footer or blocks, and rows, were read.
        chunks_read: column chunks of the base files among them.
        chunks_summed: those whose pages carry checksums; damage in the others may give other rows without an error.
    """

    table: str
    findings: tuple[Finding, ...]
    files: int = 0
    files_read: int = 0
    chunks_read: int = 0
    chunks_summed: int = 0

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        """Findings of this severity that were not repaired."""
        return tuple(f for f in self.findings if f.severity is severity and f.repair is not Repair.DONE)

    @property
    def is_sound(self) -> bool:
        """Whether no error is left."""
        return not self.of(Severity.ERROR)

    @property
    def verdict(self) -> str:
        """One line for the table."""
        counts = [(len(self.of(severity)), severity.value) for severity in Severity]
        counted = ", ".join(f"{count} {name}s" if count != 1 else f"1 {name}" for count, name in counts)
        mended = sum(finding.repair is Repair.DONE for finding in self.findings)
        summary = f"{counted} in {self.files} files, {self.files_read} of them read"
        if self.chunks_read:
            summary += f"; {self.chunks_summed / self.chunks_read:.0%} of their column chunks carry checksums"
        summary += f"; {mended} repaired" if mended else ""
        return f"the table is sound: {summary}" if self.is_sound else f"the table is not sound: {summary}"

    def to_json(self) -> dict[str, Any]:
        """As `--format json` shows it."""
        return {
            "table": self.table,
            "sound": self.is_sound,
            "verdict": self.verdict,
            "files": self.files,
            "files_read": self.files_read,
            "chunks_read": self.chunks_read,
            "chunks_summed": self.chunks_summed,
            "findings": [finding.to_json() for finding in self.findings],
        }


def in_order(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Errors first; within a severity by kind and place."""
    order = list(Severity)
    return tuple(sorted(findings, key=lambda f: (order.index(f.severity), f.kind.value, f.where)))


def found_by_both(first: Sequence[Finding], second: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings of the second look that the first look had, too: work of a writer in between is no finding."""
    before = {finding.key for finding in first}
    return in_order([finding for finding in second if finding.key in before])
