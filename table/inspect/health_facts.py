"""The facts about a table's health, and what is not well (values; `judge_health` judges, `health` looks)."""

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import NamedTuple

from table.notebook import ShownInNotebooks


class Verdict(IntEnum):
    """The health of a table; also the exit code of ``hudistream health``."""

    WELL = 0
    LOOK = 1
    BROKEN = 2


class Code(str, Enum):
    """What kind of thing a finding of health is. The values stay as they are: alerts are written for them."""

    LOST_FILE = "lost_file"
    CLOCK_AHEAD = "clock_ahead"
    RESTORE_PENDING = "restore_pending"
    DISK_FULL = "disk_full"
    NOT_WRITABLE = "not_writable"
    UNREADABLE = "unreadable"
    DAMAGED_COMMIT = "damaged_commit"
    METADATA_TABLE = "metadata_table"
    WRITE_PENDING = "write_pending"
    DEAD_WRITER = "dead_writer"
    STALE = "stale"
    NOT_CLEANED = "not_cleaned"
    NOT_COMPACTED = "not_compacted"
    NOT_ARCHIVED = "not_archived"
    SAVEPOINT_HOLDS_ARCHIVAL = "savepoint_holds_archival"
    SMALL_FILES = "small_files"
    DISK_NEARLY_FULL = "disk_nearly_full"


@dataclass(frozen=True)
class HealthFinding:
    """One thing that is not well.

    Attributes:
        level: how bad it is.
        code: what it is.
        text: what was found, with the way out.
    """

    level: Verdict
    code: Code
    text: str


@dataclass(frozen=True)
class Backlog:
    """The outstanding work of table services.

    Attributes:
        commits_since_clean: completed writes since the last clean; None if there was no clean.
        superseded_files: files of older versions, which a clean may delete.
        superseded_bytes: size of these files.
        commits_since_compaction: delta commits since the last compaction; None in a copy-on-write table.
        pending_compactions: compactions requested and not completed.
        active_instants: completed writes on the active timeline, which archival shortens.
        commits_since_savepoint: completed writes from the oldest savepoint on; None without one. They, and the
            services beside them, cannot be archived.
    """

    commits_since_clean: int | None
    superseded_files: int
    superseded_bytes: int
    commits_since_compaction: int | None
    pending_compactions: int
    active_instants: int
    commits_since_savepoint: int | None = None


class PendingInstant(NamedTuple):
    """An instant that is not completed.

    Attributes:
        instant: its time.
        action: such as ``commit``.
        age_s: seconds since its request.
        outlook: what is so, and what ends it.
    """

    instant: str
    action: str
    age_s: float
    outlook: str


@dataclass(frozen=True, repr=False)
class Health(ShownInNotebooks):
    """The state of a table at one time.

    Attributes:
        path: the table's address.
        version: ``hoodie.table.version``.
        table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
        last_commit: instant time of the newest completed write; None if there is none.
        last_commit_age_s: seconds since then.
        last_rows_age_s: seconds since the newest commit that is no compaction or clustering became visible; None if
            none of the newest ten is one.
        rows_per_minute: rows that the newest commits added, updated and deleted; None with fewer than two commits.
        writer: the writer that holds the table, in words; None if no writer holds it.
        writer_lives: whether that writer gave a sign of life lately; None if no writer holds the table.
        live_files: base files that a snapshot reader opens.
        live_bytes: size of these files.
        small_files: live base files below ``hoodie.parquet.small.file.limit``.
        small_beside: those of them that have another one in their partition path.
        log_files: log files on top of the live base files.
        log_bytes: size of these log files.
        backlog: outstanding work of the services.
        pending: each instant that is not completed, oldest first.
        savepoints: instant times of the savepoints.
        pinned_snapshots: snapshots that readers have pinned.
        missing_files: paths of current files that commits name, and that are gone or have another size.
        lost: the same files, each with its commit and what is wrong.
        clock: why the next batch refuses this machine's clock; "" where it does not.
        damaged_commits: instant times of the newest commits whose completed files are empty or torn, and whose end
            records say the same.
        metadata_table: why the metadata table that the properties promise cannot be opened; "" where it can, or where
            they promise none.
        damaged_index: why the lists of files or the record index of the metadata table cannot be trusted; "" where they
            can.
        free_bytes: bytes that are free where the table lies; None where the store does not say.
        batch_bytes: bytes of the largest of the newest commits.
        not_writable: a folder of the table in which this process may not write; "" where it may, or it is not known.
        is_read_only: whether nobody may write there: the file system is mounted so.
        judged_as: the sink by whose settings the table is judged; "" for given or default settings.
        findings: what is not well, worst first.
    """

    path: str
    version: int
    table_type: str
    last_commit: str | None
    last_commit_age_s: float | None
    rows_per_minute: float | None
    writer: str | None
    writer_lives: bool | None
    live_files: int
    live_bytes: int
    small_files: int
    log_files: int
    log_bytes: int
    backlog: Backlog
    pending: tuple[PendingInstant, ...] = ()
    savepoints: tuple[str, ...] = ()
    pinned_snapshots: int = 0
    missing_files: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    clock: str = ""
    damaged_commits: tuple[str, ...] = ()
    metadata_table: str = ""
    damaged_index: str = ""
    free_bytes: int | None = None
    batch_bytes: int = 0
    small_beside: int = 0
    not_writable: str = ""
    is_read_only: bool = False
    judged_as: str = ""
    last_rows_age_s: float | None = None
    findings: tuple[HealthFinding, ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        """The severity of the worst finding; WELL without findings."""
        return max((one.level for one in self.findings), default=Verdict.WELL)
