"""The summary of a batch: a frozen value for callers, callbacks, the log and metrics."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from streaming.plan.task_result import TaskResult
from streaming.plan.write_profile import is_log_file
from table import clock
from table.index.key_lookup import LookupCounts
from table.log import get_logger
from table.notebook import ShownInNotebooks
from table.timeline.metadata.commit import total_rows

log = get_logger("hudistream.sink")


@dataclass(frozen=True, repr=False)
class BatchSummary(ShownInNotebooks):
    """The outcome and the measurements of a batch.

    Attributes:
        table: the table's address.
        batch_id: Spark's id, or None for a write outside a stream.
        instant_time: the commit, or None when nothing was committed (skipped, or empty).
        skipped: whether it had been committed before.
        rows: rows added.
        rows_updated: rows that replaced others.
        rows_deleted: rows that were deleted.
        deletes_unmatched: deletes whose key the table does not have where it was looked for. In merge-on-read tables
            with a bucket index no keys are looked up, and 0 says nothing.
        lookup: the cost of looking up keys; zeros where no key was looked up.
        index_lookup_seconds: time spent looking up keys, all tasks together.
        index_update_seconds: time spent adding the new files to the index, all tasks together. Filters and key ranges
            are written with the files and do not count.
        bad_rows: rows put into quarantine.
        files_created: new file groups.
        files_topped_up: file groups that got a new version.
        log_files: log files of a merge-on-read table, a new one for each file group that changed.
        reencoded: reason why topped up files were decoded and encoded again instead of copied -> number of files.
        bytes_written: size of all new files.
        bytes_copied: how many of these bytes were copied unchanged from older files.
        rewrite_ratio: bytes written per byte of new rows; 1 when nothing was topped up.
        seconds: wall time.
        phases: seconds by phase: ``prepare``, ``write``, ``commit``, ``after``.
        upkeep_errors: failures after the commit; the batch is visible all the same.
        schema_changes: how the commit changed the table's columns, in words.
        driver_bytes: bytes of the rows that came to Spark's driver, which wrote them (``hudistream.write.location``).
    """

    table: str
    batch_id: int | None
    instant_time: str | None
    skipped: bool = False
    rows: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    deletes_unmatched: int = 0
    lookup: LookupCounts = field(default_factory=LookupCounts)
    index_lookup_seconds: float = 0.0
    index_update_seconds: float = 0.0
    bad_rows: int = 0
    files_created: int = 0
    files_topped_up: int = 0
    log_files: int = 0
    reencoded: Mapping[str, int] = field(default_factory=dict)
    bytes_written: int = 0
    bytes_copied: int = 0
    rewrite_ratio: float = 1.0
    seconds: float = 0.0
    phases: Mapping[str, float] = field(default_factory=dict)
    upkeep_errors: tuple[str, ...] = ()
    schema_changes: tuple[str, ...] = ()
    driver_bytes: int = 0

    @property
    def short(self) -> dict[str, object]:
        """The fields of the log's one line per batch; the last three only where they are not 0."""
        fields: dict[str, object] = {
            "table": self.table,
            "batch_id": self.batch_id,
            "instant_time": self.instant_time,
            "rows": self.rows,
            "updated": self.rows_updated,
            "deleted": self.rows_deleted,
            "files": self.files_created + self.files_topped_up + self.log_files,
            "seconds": round(self.seconds, 2),
        }
        more = {
            "bad_rows": self.bad_rows,
            "deletes_unmatched": self.deletes_unmatched,
            "driver_bytes": self.driver_bytes,
        }
        return fields | {name: value for name, value in more.items() if value}


class PhaseClock:
    """Measures the phases of one batch."""

    def __init__(self) -> None:
        self._started_s = self._last_s = clock.monotonic_s()
        self.phases: dict[str, float] = {}

    def end(self, phase: str) -> None:
        """Ends a phase. It gets the time since the phase before ended."""
        now_s = clock.monotonic_s()
        self.phases[phase] = round(now_s - self._last_s, 6)
        self._last_s = now_s

    @property
    def seconds(self) -> float:
        """Since the batch began."""
        return round(self._last_s - self._started_s, 6)


def summarize(
    table: str,
    batch_id: int | None,
    instant_time: str,
    result: TaskResult,
    timing: PhaseClock,
    upkeep_errors: tuple[str, ...],
) -> BatchSummary:
    """Summary of a batch that was committed."""
    stats = result.stats
    logs = sum(map(is_log_file, stats))
    topped_up = sum(stat.prev_base_file is not None for stat in stats)
    written = sum(stat.file_size_bytes for stat in stats)
    # new bytes of a file: its size times the share of its rows that are new
    new = sum(
        stat.file_size_bytes * (stat.num_inserts + stat.num_update_writes) / max(1, stat.num_writes) for stat in stats
    )
    return BatchSummary(
        table=table,
        batch_id=batch_id,
        instant_time=instant_time,
        rows=total_rows(stats),
        rows_updated=sum(stat.num_update_writes for stat in stats),
        rows_deleted=sum(stat.num_deletes for stat in stats),
        deletes_unmatched=result.deletes_unmatched,
        lookup=result.lookup,
        index_lookup_seconds=round(result.lookup.spent_ms / 1000, 6),
        index_update_seconds=round(result.lookup.update_ms / 1000, 6),
        bad_rows=result.bad_rows,
        files_created=len(stats) - topped_up - logs,
        files_topped_up=topped_up,
        log_files=logs,
        reencoded=dict(result.reencoded),
        bytes_written=written,
        bytes_copied=result.copied_bytes,
        rewrite_ratio=round(written / new, 3) if new else 1.0,
        seconds=timing.seconds,
        phases=dict(timing.phases),
        upkeep_errors=upkeep_errors,
    )


def logged(summary: BatchSummary) -> BatchSummary:
    """The batch's one line at INFO; the whole summary at DEBUG."""
    if summary.instant_time is None:
        log.info("batch_empty", table=summary.table, batch_id=summary.batch_id)
        return summary
    log.info("batch_committed", **summary.short)
    if summary.schema_changes:
        log.warning(
            "schema_changed",
            table=summary.table,
            batch_id=summary.batch_id,
            instant_time=summary.instant_time,
            changes=list(summary.schema_changes),
            hint="hudistream.schema.mode=strict refuses batches with other columns than the table's",
        )
    log.debug("batch_summary", **asdict(summary))
    return summary
