"""Prometheus series of every batch, clean and failure, labelled by table (extra ``metrics``)."""

from collections.abc import Mapping
from typing import Any

from streaming.batch.failed_batch import FailedBatch
from streaming.batch.progress import RunningBatch
from streaming.batch.summary import BatchSummary
from streaming.batch.upkeep_summary import UpkeepSummary
from table import clock
from table.errors import InvalidConfigError
from table.extras import needs_extra
from table.hudi_table import HudiTable
from table.inspect.health import load_health

try:
    import prometheus_client
except ImportError as error:  # the extra `metrics`
    _missing: ImportError | None = error
else:
    _missing = None

_COUNTERS = {
    "rows": ("hudistream_rows_total", "Rows added"),
    "rows_updated": ("hudistream_rows_updated_total", "Rows that replaced others"),
    "rows_deleted": ("hudistream_rows_deleted_total", "Rows that were deleted"),
    "deletes_unmatched": ("hudistream_deletes_unmatched_total", "Deletes whose key the table does not have"),
    "bad_rows": ("hudistream_bad_rows_total", "Rows put aside"),
    "bytes_written": ("hudistream_bytes_written_total", "Bytes of base files written"),
    "files_created": ("hudistream_files_created_total", "File groups created"),
    "log_files": ("hudistream_log_files_total", "Log files written"),
    "files_topped_up": ("hudistream_files_topped_up_total", "File groups that got a new version"),
}

_UPKEEP = {
    "cleans": ("hudistream_cleans_total", "Cleans carried out"),
    "files_deleted": ("hudistream_clean_files_deleted_total", "Files that cleans deleted"),
    "files_failed": ("hudistream_clean_files_failed_total", "Files that cleans could not delete"),
    "compactions": ("hudistream_compactions_total", "Compactions carried out"),
    "clusterings": ("hudistream_clusterings_total", "Clusterings carried out in the background"),
    "instants_archived": ("hudistream_instants_archived_total", "Instants that left the active timeline"),
}

_LOOKUPS = ("keys", "files", "pruned_by_range", "pruned_by_filter", "read", "false_positives")

_HEALTH = {
    "live_files": ("hudistream_live_files", "Base files of the newest snapshot"),
    "live_bytes": ("hudistream_live_bytes", "Their size"),
    "small_files": ("hudistream_small_files", "Those below the limit of small files"),
    "log_files": ("hudistream_live_log_files", "Log files of the newest snapshot"),
    "log_bytes": ("hudistream_live_log_bytes", "Their size"),
}
_BACKLOG = {
    "superseded_bytes": ("hudistream_superseded_bytes", "Bytes of older versions of files, which cleans may delete"),
    "pending_compactions": ("hudistream_pending_compactions", "Compactions that are requested and not completed"),
    "active_instants": ("hudistream_active_instants", "Completed writes on the active timeline"),
}

_looked_s: dict[str, float] = {}  # table -> when its files were looked at, by the clock of this process

# one process has one set of series, however many sinks report to it
_series: dict[str, Any] = {}
_OUTCOMES = ("committed", "empty", "skipped", "failed", "unknown")


class PrometheusMetrics:
    """Counts what batches and cleans did, and how long they took. Picklable: the series are per process.

    It goes among the callbacks of a sink, and among its ``on_failure`` to count batches that failed.

    Args:
        health_every_s: seconds between two looks at the files of the table, for the gauges of live files, log files,
            superseded bytes and pending compactions. A look lists each partition folder once, in the thread of the
            table services, after they have run; where the sink runs none of them, there are no looks. None: no looks.
        storage_options: for fsspec, as of the sink; only the looks need them.

    Raises:
        InvalidConfigError: `health_every_s` is no number above 0.
        ImportError: without the extra: the message has the command that installs it.
    """

    def __init__(self, health_every_s: float | None = None, storage_options: Mapping[str, Any] | None = None) -> None:
        if _missing is not None:
            raise ImportError(needs_extra("PrometheusMetrics", "metrics")) from _missing
        if health_every_s is not None and not health_every_s > 0:
            raise InvalidConfigError(f"health_every_s={health_every_s!r}: give a number of seconds above 0, or None")
        self._health_every_s, self._storage_options = health_every_s, storage_options

    def __call__(self, summary: BatchSummary | FailedBatch) -> None:
        """Adds one batch."""
        series = _load_series()
        for outcome in _OUTCOMES:  # at 0 from the first batch on: an increase from nothing to 1 is none to Prometheus
            series["batches"].labels(summary.table, outcome)
        series["running"].labels(summary.table).set(0)
        if isinstance(summary, FailedBatch):
            series["batches"].labels(summary.table, "unknown" if summary.outcome_unknown else "failed").inc()
            return
        outcome = "skipped" if summary.skipped else "committed" if summary.instant_time else "empty"
        series["batches"].labels(summary.table, outcome).inc()
        for name, (metric, _) in _COUNTERS.items():
            series[metric].labels(summary.table).inc(getattr(summary, name))
        for name in _LOOKUPS:
            series["lookup"].labels(summary.table, name).inc(getattr(summary.lookup, name))
        if summary.lookup.keys:
            series["index"].labels(summary.table, "lookup").observe(summary.index_lookup_seconds)
            series["index"].labels(summary.table, "update").observe(summary.index_update_seconds)
        series["upkeep"].labels(summary.table).inc(len(summary.upkeep_errors))
        series["schema"].labels(summary.table).inc(len(summary.schema_changes))
        if summary.instant_time:
            series["ratio"].labels(summary.table).set(summary.rewrite_ratio)
            series["last_commit"].labels(summary.table).set(clock.now_ms() / 1000)
        if summary.batch_id is not None:
            series["last_batch"].labels(summary.table).set(summary.batch_id)
        if not summary.skipped:
            series["batch_seconds"].labels(summary.table).observe(summary.seconds)
        for phase, seconds in summary.phases.items():
            series["seconds"].labels(summary.table, phase).observe(seconds)

    def while_running(self, running: RunningBatch) -> None:
        """Shows for how long a batch has been running; 0 once it is over."""
        _load_series()["running"].labels(running.table).set(running.seconds)

    def after_upkeep(self, summary: UpkeepSummary) -> None:
        """Adds one run of cleaning and archival."""
        series = _load_series()
        for name, (metric, _) in _UPKEEP.items():
            series[metric].labels(summary.table).inc(getattr(summary, name))
        series["services"].labels(summary.table).inc(summary.error is not None)
        if summary.clean_seconds is not None:
            series["clean_seconds"].labels(summary.table).observe(summary.clean_seconds)
        if self._health_every_s is not None:
            self._look(summary.table, self._health_every_s)

    def _look(self, address: str, every_s: float) -> None:
        now_s = clock.monotonic_s()
        if now_s - _looked_s.get(address, -every_s) < every_s:
            return
        _looked_s[address] = now_s
        found, series = load_health(HudiTable.open(address, self._storage_options)), _load_series()
        for name, (metric, _) in _HEALTH.items():
            series[metric].labels(address).set(getattr(found, name))
        for name, (metric, _) in _BACKLOG.items():
            series[metric].labels(address).set(getattr(found.backlog, name))


def _load_series() -> dict[str, Any]:
    if not _series:
        counter, gauge, histogram = prometheus_client.Counter, prometheus_client.Gauge, prometheus_client.Histogram
        _series["batches"] = counter("hudistream_batches_total", "Batches by outcome", ["table", "outcome"])
        # by metric: a batch and the health of a table both have a field `log_files`
        for metric, help_text in (*_COUNTERS.values(), *_UPKEEP.values()):
            _series[metric] = counter(metric, help_text, ["table"])
        for metric, help_text in (*_HEALTH.values(), *_BACKLOG.values()):
            _series[metric] = gauge(metric, help_text, ["table"])
        _series["last_commit"] = gauge(
            "hudistream_last_commit_timestamp_seconds",
            "When this process committed last, seconds since 1970",
            ["table"],
        )
        _series["last_batch"] = gauge("hudistream_last_batch_id", "The newest batch, skipped ones included", ["table"])
        _series["running"] = gauge(
            "hudistream_batch_running_seconds",
            "How long the batch under way has been running, from ten seconds on; 0: none has been for so long",
            ["table"],
        )
        _series["batch_seconds"] = histogram("hudistream_batch_seconds", "Seconds of a whole batch", ["table"])
        _series["lookup"] = counter("hudistream_index_lookup_total", "What looking for keys cost", ["table", "what"])
        _series["index"] = histogram(
            "hudistream_index_seconds", "Seconds of a batch's tasks together, by what the index did", ["table", "what"]
        )
        _series["upkeep"] = counter("hudistream_upkeep_errors_total", "Failures after a commit", ["table"])
        _series["schema"] = counter(
            "hudistream_schema_changes_total", "Columns that batches added to the table, or changed", ["table"]
        )
        _series["services"] = counter(
            "hudistream_service_failures_total", "Runs of cleaning and archival that failed", ["table"]
        )
        _series["clean_seconds"] = histogram(
            "hudistream_clean_seconds", "Seconds of cleaning after a commit, planning included", ["table"]
        )
        _series["ratio"] = gauge("hudistream_rewrite_ratio", "Bytes written per byte of new rows", ["table"])
        _series["seconds"] = histogram("hudistream_phase_seconds", "Seconds by phase of a batch", ["table", "phase"])
    return _series
