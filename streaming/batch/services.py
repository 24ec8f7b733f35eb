"""What is due after a commit: cleaning, then archival, in one background thread unless the options say otherwise.

The engine of Flink's CleanFunction: a clean is started after a commit unless one is still running. Its
failure is the table's, not the batch's, which is visible by then.
"""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from structlog.contextvars import bound_contextvars

from streaming.batch.upkeep_summary import UpkeepSummary
from table import clock, threads
from table.clock import parse_instant_time
from table.config.table_config import TableConfig
from table.errors import HudiError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.options.choices import CleanFailure, CleanPolicy
from table.options.write_options import WriteOptions
from table.services.archival.archival import archive
from table.services.clean.clean import run_clean
from table.storage.interface import Storage
from table.timeline.timeline import Timeline

SAFE_RETENTION_S = 600
COMMITS_SEEN = 5

log = get_logger("hudistream.services")


class Cleaning(str, Enum):
    """When a table is cleaned."""

    AT_CHECKPOINT = "in the background after each commit"
    INLINE = "after each commit, before the next batch begins"
    AFTER_COMPACTION = "after each compaction, by who commits it"
    NEVER = "never"


def choose_cleaning(
    table_type: str, *, compaction_async: bool, clean_async: bool, inline: bool = False, automatic: bool = True
) -> Cleaning:
    """When a table is cleaned: the gate of Flink's sink (HoodieTableSink, CleanFunction, CompactionCommitSink).

    ==============  ================  ===================  ==================
    table           async compaction  clean.async.enabled  cleaned
    ==============  ================  ===================  ==================
    copy-on-write   any               true                 at the checkpoint
    copy-on-write   any               false                never
    merge-on-read   yes               true                 at the checkpoint
    merge-on-read   yes               false                after compaction
    merge-on-read   no                as said              checkpoint or never
    ==============  ================  ===================  ==================

    Args:
        table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
        compaction_async: whether compactions run beside the stream.
        clean_async: ``clean.async.enabled``, Flink's switch.
        inline: whether ``hoodie.clean.async.enabled``, Hudi's own, is off: what the gate lets through does not run
            in the background.
        automatic: ``hoodie.clean.automatic``: False: never.
    """
    if not automatic:
        return Cleaning.NEVER
    if clean_async:
        return Cleaning.INLINE if inline else Cleaning.AT_CHECKPOINT
    if table_type == "MERGE_ON_READ" and compaction_async:
        return Cleaning.AFTER_COMPACTION
    return Cleaning.NEVER


def retention_s(commit_times: list[str], commits_retained: int) -> float | None:
    """For about how many seconds a reader's files stay, by the pace of the last commits; None: too few to tell."""
    last = commit_times[-COMMITS_SEEN:]
    if len(last) < COMMITS_SEEN:
        return None
    pace_ms = (parse_instant_time(last[-1]) - parse_instant_time(last[0])) / (len(last) - 1)
    return pace_ms / 1000 * commits_retained


class TableServices:
    """The services of one table, for one sink.

    Args:
        storage: the table's.
        options: policies.
        run: what is done, and what it did; replaced in tests.

    Attributes:
        failures: how often it failed.
        last_error: the last failure.
        listeners: get a summary of every run, in the thread that did it; they raise nothing.
    """

    def __init__(
        self, storage: Storage, options: WriteOptions, run: Callable[[HudiTable], object] | None = None
    ) -> None:
        self._storage, self._options = storage, options
        self._run = run or self._clean_and_archive
        self._thread: threads.RunningThread | None = None
        self._stopped = self._paused = self._warned = self._told = self._cleans = False
        self._pending_error: Exception | None = None
        self._emptied: set[str] = set()
        self.failures = 0
        self.last_error: Exception | None = None
        self.listeners: list[Callable[[UpkeepSummary], None]] = []
        self._done = UpkeepSummary("")

    def take_emptied(self) -> tuple[str, ...]:
        """Partition paths that cleans emptied since this was asked last: their folders are the writer's to remove."""
        emptied, self._emptied = tuple(self._emptied), set()
        return emptied

    @property
    def is_cleaning(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def check(self) -> None:
        """Before a batch: what the policy ``fail`` holds against it.

        Raises:
            HudiError: the services failed since the last batch.
        """
        error, self._pending_error = self._pending_error, None
        if error is not None:
            raise HudiError(
                f"cleaning or archival failed after an earlier batch: {error}; mend it, or set "
                "hudistream.clean.on.failure=warn; the batch can be run again"
            ) from error

    def after_commit(self, config: TableConfig, timeline: Timeline) -> None:
        """Starts the services unless they run. Called once a micro-batch, when it is visible.

        Where cleaning is not asynchronous, they are done when this returns; their failure is no more the batch's.
        """
        settings = self._options.clean
        cleaning = choose_cleaning(
            config.table_type,
            compaction_async=False,
            clean_async=settings.at_checkpoint,
            inline=not settings.asynchronous,
            automatic=settings.automatic,
        )
        self._cleans = cleaning in (Cleaning.AT_CHECKPOINT, Cleaning.INLINE)
        if self._cleans:
            self._warn_of_short_retention(timeline)
        elif cleaning is Cleaning.NEVER:
            self._warn_that_nothing_cleans()
        due = self._cleans or self._options.archive.automatic
        if not due or self.is_cleaning or self._stopped or self._paused:
            return
        table = HudiTable(self._storage, config)
        if cleaning is Cleaning.INLINE:
            self._guarded(table)
            return
        # not a daemon: the interpreter waits until a clean under way is done
        self._thread = threads.start_thread(lambda: self._guarded(table), "hudistream-services")

    def _warn_that_nothing_cleans(self) -> None:
        if self._told:
            return
        self._told = True
        log.warning(
            "nothing_cleans",
            table=self._storage.base_uri,
            archives=self._options.archive.automatic,
            hint="old versions of files pile up: set hoodie.clean.automatic=true and leave clean.async.enabled out "
            "(hoodie.clean.async.enabled=false cleans after each commit), or run `hudistream clean` from a scheduler",
        )

    def _warn_of_short_retention(self, timeline: Timeline) -> None:
        settings = self._options.clean
        if self._warned or settings.policy is not CleanPolicy.KEEP_LATEST_COMMITS:
            return
        seconds = retention_s([instant.time for instant in timeline.completed_writes], settings.commits_retained)
        if seconds is not None and seconds < SAFE_RETENTION_S:
            self._warned = True
            log.warning(
                "retention_is_short",
                table=self._storage.base_uri,
                commits_retained=settings.commits_retained,
                seconds=round(seconds, 1),
                hint="a reader that takes longer loses its files: raise hoodie.clean.commits.retained, or set "
                "hudistream.clean.grace.ms",
            )

    def _clean_and_archive(self, table: HudiTable) -> None:
        if self._cleans:
            self._clean(table)
        if self._options.archive.automatic:
            archived = archive(table, self._options.archive, self._options.clean)
            self._done = replace(self._done, instants_archived=len(archived.instants))

    def _clean(self, table: HudiTable) -> None:
        started_s, cleans = clock.monotonic_s(), []
        try:
            cleans = run_clean(table, self._options.clean)
            self._emptied.update(path for outcome in cleans for path in outcome.plan.emptied)
        finally:
            self._done = replace(
                self._done,
                cleans=len(cleans),
                files_deleted=sum(len(names) for done in cleans for names in done.deleted.values()),
                files_failed=sum(len(names) for done in cleans for names in done.failed.values()),
                clean_seconds=clock.monotonic_s() - started_s,
            )

    def _guarded(self, table: HudiTable) -> None:
        self._done = UpkeepSummary(self._storage.base_uri)
        # a thread begins without the context of the one that started it
        with bound_contextvars(table=self._storage.base_uri):
            try:
                self._run(table)
            except Exception as error:  # noqa: BLE001 nothing of this may reach the stream
                self._note_failure(error)
                self._done = replace(self._done, error=repr(error))
            for listener in self.listeners:
                listener(self._done)

    def _note_failure(self, error: Exception) -> None:
        self.failures += 1
        self.last_error = error
        policy = self._options.clean.on_failure
        log.warning(
            "table_services_failed",
            table=self._storage.base_uri,
            error=repr(error),
            failures=self.failures,
            then=policy.value,
        )
        self._paused = policy is CleanFailure.PAUSE
        if policy is CleanFailure.FAIL:
            self._pending_error = error

    def start_no_more(self) -> None:
        """Lets what is under way go on, and starts nothing after it."""
        self._stopped = True

    def stop(self) -> None:
        """Starts nothing more, and waits for what is under way."""
        self.start_no_more()
        self.wait()

    def wait(self) -> None:
        """Waits for what is under way."""
        if self._thread is not None:
            self._thread.join()
