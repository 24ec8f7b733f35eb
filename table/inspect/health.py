"""The health of a table: the facts that an operator needs at a glance, and a verdict. Reads no data file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from table import clock
from table.errors import CorruptFileError, InvalidConfigError, UnsupportedTableError
from table.hudi_table import HudiTable
from table.inspect.overview import CommitFigures, read_figures
from table.metadata_table.metadata_table import MetadataTable
from table.notebook import ShownInNotebooks
from table.options.choices import TableType
from table.options.groups import ArchiveSettings, CleanSettings, CompactionSettings, HeartbeatSettings
from table.options.write_groups import SizeSettings
from table.references.losses import left_of, load_losses
from table.services.archival.plan import is_far_behind
from table.services.compaction.plan import commits_since_compaction
from table.snapshot import Snapshot
from table.timeline.instant import Action
from table.timeline.pins import PINS_FOLDER, parse_pin
from table.transaction.holder import find_standing_holder
from table.transaction.lease_record import describe_holder
from table.view.file_group import FileGroup, parse_data_files
from table.view.known_files import LostFile, find_lost

COMMITS_SEEN = 10
"""So many of the newest commits say how fast rows come."""
PENDING_TOO_LONG_S = 3600
BEHIND = 3
"""So many times what a service waits for, and it is behind."""
_FEW_FILES = 20
_SMALL_SHARE = 0.5


class Verdict(IntEnum):
    """The health of a table; also the exit code of ``hudistream health``."""

    WELL = 0
    LOOK = 1
    BROKEN = 2


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


@dataclass(frozen=True, repr=False)
class Health(ShownInNotebooks):
    """The state of a table at one time.

    Attributes:
        path: the table's address.
        version: ``hoodie.table.version``.
        table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
        last_commit: instant time of the newest completed write; None if there is none.
        last_commit_age_s: seconds since then.
        rows_per_minute: rows that the newest commits added, updated and deleted; None with fewer than two commits.
        writer: the writer that holds the table, in words; None if no writer holds it.
        writer_lives: whether that writer gave a sign of life lately; None if no writer holds the table.
        live_files: base files that a snapshot reader opens.
        live_bytes: size of these files.
        small_files: live base files below ``hoodie.parquet.small.file.limit``.
        log_files: log files on top of the live base files.
        log_bytes: size of these log files.
        backlog: outstanding work of the services.
        pending: (instant time, action, seconds since its request) of each instant not completed, oldest first.
        savepoints: instant times of the savepoints.
        pinned_snapshots: snapshots that readers have pinned.
        missing_files: paths of current files that commits name, and that are gone or have another size.
        lost: the same files, each with its commit and what is wrong.
        clock: why the next batch refuses this machine's clock; "" where it does not.
        damaged_commits: instant times of the newest commits whose completed files are empty or torn, and whose end
            records say the same.
        metadata_table: why the metadata table that the properties promise cannot be opened; "" where it can, or where
            they promise none.
        findings: (severity, text with the way out), worst first.
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
    pending: tuple[tuple[str, str, float], ...] = ()
    savepoints: tuple[str, ...] = ()
    pinned_snapshots: int = 0
    missing_files: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    clock: str = ""
    damaged_commits: tuple[str, ...] = ()
    metadata_table: str = ""
    findings: tuple[tuple[Verdict, str], ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        """The severity of the worst finding; WELL without findings."""
        return max((level for level, _ in self.findings), default=Verdict.WELL)


def load_health(
    table: HudiTable,
    sizes: SizeSettings | None = None,
    clean: CleanSettings | None = None,
    archive: ArchiveSettings | None = None,
    compaction: CompactionSettings | None = None,
) -> Health:
    """Examines a table: one listing per folder, and the commits of the active timeline. Changes nothing.

    Args:
        sizes: sizes below which files are small.
        clean: when a clean is due.
        archive: how long the active timeline may be.
        compaction: when a compaction is due.

    Returns:
        The facts, with findings.

    Raises:
        HudiError: the timeline or a folder cannot be read.
    """
    sizes, compaction = sizes or SizeSettings(), compaction or CompactionSettings()
    snapshot = Snapshot.load(table)
    timeline = snapshot.timeline
    groups, lost = _look_at_files(snapshot)
    newest = timeline.writes_by_time[-COMMITS_SEEN:]
    writer, lives = _find_writer(table)
    facts = Health(
        table.storage.base_uri,
        table.config.version,
        table.config.table_type,
        newest[-1].time if newest else None,
        _age_s(newest[-1].time, table) if newest else None,
        rows_per_minute([instant.time for instant in newest], read_figures(snapshot, newest).values()),
        writer,
        lives,
        *_count_files(groups, sizes.small_file_limit_bytes),
        backlog=_find_backlog(snapshot, groups),
        pending=tuple((i.time, i.action.value, _age_s(i.time, table)) for i in timeline.pending),
        savepoints=tuple(i.time for i in timeline.completed_of(Action.SAVEPOINT)),
        pinned_snapshots=len({pin.time for pin in map(parse_pin, _names(table, PINS_FOLDER)) if pin is not None}),
        missing_files=tuple(one.named.path for one in lost),
        lost=tuple(map(str, lost)),
        clock=_find_skew(table, timeline.last_time),
        damaged_commits=tuple(sorted(instant.time for instant in snapshot.commits.damaged)),
        metadata_table=_find_metadata_table(table),
    )
    return judged(facts, clean or CleanSettings(), archive or ArchiveSettings(), compaction)


def judged(facts: Health, clean: CleanSettings, archive: ArchiveSettings, compaction: CompactionSettings) -> Health:
    """The same facts with findings (pure).

    Args:
        facts: facts about a table.
        clean: when a clean is due.
        archive: how long the active timeline may be.
        compaction: when a compaction is due.
    """
    found = [*_broken(facts), *_to_look_at(facts, clean, archive, compaction)]
    return replace(facts, findings=tuple(sorted(found, key=lambda one: -one[0])))


def _broken(facts: Health) -> Iterable[tuple[Verdict, str]]:
    if facts.lost:
        more = f" (and {len(facts.lost) - 1} more files)" if len(facts.lost) > 1 else ""
        yield (
            Verdict.BROKEN,
            (
                f"{facts.lost[0]}{more}: batches are refused. Bring it back, or run `hudistream accept-loss PATH`, "
                "which says what is lost"
            ),
        )
    if facts.clock:
        yield Verdict.BROKEN, f"batches are refused: {facts.clock}"
    for time, action, _ in facts.pending:
        if action == Action.RESTORE.value:
            yield (
                Verdict.BROKEN,
                (
                    f"the restore {time} was begun and is not completed: no writer may write before "
                    "`hudistream savepoint restore` has finished it"
                ),
            )


def _to_look_at(
    facts: Health, clean: CleanSettings, archive: ArchiveSettings, compaction: CompactionSettings
) -> Iterable[tuple[Verdict, str]]:
    backlog = facts.backlog
    if facts.damaged_commits:
        yield (
            Verdict.LOOK,
            (
                f"the completed file of {facts.damaged_commits[-1]} is empty or torn: readers of Hudi lose its rows; "
                "the next sink that starts writes it again from its end record, or `hudistream check --repair`"
            ),
        )
    if facts.metadata_table:
        yield (
            Verdict.LOOK,
            (
                f"the properties promise a metadata table, and {facts.metadata_table}: Hudi's readers fail or list the "
                "store; `hudistream check --repair` takes it out of the properties"
            ),
        )
    late = [(time, action) for time, action, age_s in facts.pending if age_s > PENDING_TOO_LONG_S]
    if late and not facts.writer_lives:
        yield (
            Verdict.LOOK,
            (
                f"the {late[0][1]} {late[0][0]} has been pending for more than an hour, and no writer lives that would "
                "end it: start the stream, or run `hudistream check --repair`"
            ),
        )
    if facts.writer is not None and not facts.writer_lives:
        yield Verdict.LOOK, f"{facts.writer} holds the table and is dead: start the stream; the next writer takes over"
    since, due = backlog.commits_since_clean, clean.commits_retained + clean.trigger_commits
    is_late = (backlog.active_instants if since is None else since) > BEHIND * due
    if is_late and backlog.superseded_bytes > facts.live_bytes and facts.live_files:
        yield (
            Verdict.LOOK,
            (
                f"old versions hold {backlog.superseded_bytes / max(1, facts.live_bytes):.1f} times the bytes of the "
                "live files, and nothing cleans: set hoodie.clean.automatic=true, or run `hudistream clean`"
            ),
        )
    waits = backlog.commits_since_compaction
    if waits is not None and waits > BEHIND * compaction.delta_commits:
        yield (
            Verdict.LOOK,
            (
                f"{waits} delta commits wait for a compaction: readers merge more log files each time; run "
                "`hudistream compact`, or look why the stream's compactions fail"
            ),
        )
    yield from _held_archival(facts, archive)
    if facts.live_files > _FEW_FILES and facts.small_files > _SMALL_SHARE * facts.live_files:
        yield (
            Verdict.LOOK,
            (
                f"{facts.small_files} of {facts.live_files} live files are small: `hudistream cluster` puts those of "
                "a partition path together; fewer paths, fewer buckets or less frequent batches make larger ones"
            ),
        )


def _held_archival(facts: Health, archive: ArchiveSettings) -> Iterable[tuple[Verdict, str]]:
    """A savepoint is told as soon as archival would go past it: what it holds grows with each commit."""
    count, most, held = facts.backlog.active_instants, archive.max_commits, facts.backlog.commits_since_savepoint
    text = f"the active timeline has {count} commits, and archival keeps {most}"
    if held is not None and held > most:
        first = facts.savepoints[0]
        yield (
            Verdict.LOOK,
            (
                f"{text} (the savepoint {first} holds archival): delete it when it is no longer needed (`hudistream "
                f"savepoint delete PATH {first}`); until then `.hoodie` grows with each commit, and all batches list it"
            ),
        )
    elif is_far_behind(count, archive):
        yield Verdict.LOOK, f"{text}: set hoodie.archive.automatic=true, or run `hudistream archive`"


def rows_per_minute(times: Sequence[str], figures: Iterable[CommitFigures]) -> float | None:
    """Rows that commits added, updated and deleted per minute between the first and the last commit (pure).

    Args:
        times: instant times, oldest first.
        figures: figures of the same commits; rows of the first commit do not count, they came before that time.
    """
    if len(times) < 2:
        return None
    seconds = (clock.parse_instant_time(times[-1]) - clock.parse_instant_time(times[0])) / 1000
    rows = sum(one.rows_added + one.rows_updated + one.rows_deleted for one in list(figures)[1:])
    return rows * 60 / seconds if seconds > 0 else None


def _age_s(time: str, table: HudiTable) -> float:
    return max(0.0, (clock.now_ms() - clock.parse_instant_time(time, table.config.timezone)) / 1000)


def _find_skew(table: HudiTable, last_time: str | None) -> str:
    try:
        clock.check_skew(last_time or "", clock.now_ms(), table.config.timezone)
    except InvalidConfigError as error:
        return str(error)
    return ""


def _find_metadata_table(table: HudiTable) -> str:
    if not table.config.metadata_partitions:
        return ""
    try:
        MetadataTable.open(table.storage)
    except FileNotFoundError:
        return "it is gone"
    except (CorruptFileError, UnsupportedTableError) as error:
        return str(error)
    return ""


def _names(table: HudiTable, folder: str) -> list[str]:
    return [entry.name for entry in table.storage.list_dir(folder)]


def _find_writer(table: HudiTable) -> tuple[str | None, bool | None]:
    holder = find_standing_holder(table.storage, HeartbeatSettings())
    if holder.record is None or holder.record.is_released:
        return None, None
    return describe_holder(holder.record), holder.is_alive


def _count_files(groups: Sequence[FileGroup], small_bytes: int) -> tuple[int, int, int, int, int]:
    bases = [group.latest_base_file for group in groups]
    sizes = [base.size_bytes for base in bases if base is not None]
    logs = [log.size_bytes for group in groups for log in group.merged_slice.log_files]
    return len(sizes), sum(sizes), sum(size < small_bytes for size in sizes), len(logs), sum(logs)


def _find_backlog(snapshot: Snapshot, groups: Sequence[FileGroup]) -> Backlog:
    cleans = snapshot.timeline.completed_of(Action.CLEAN)
    writes = snapshot.timeline.writes_by_time
    savepoints = snapshot.timeline.completed_of(Action.SAVEPOINT)
    old = [
        file.size_bytes
        for group in groups
        for found in group.slices
        for file in found.files
        if file not in group.current_files
    ]
    on_logs = snapshot.config.table_type == TableType.MERGE_ON_READ
    return Backlog(
        sum(write.time > cleans[-1].time for write in writes) if cleans else None,
        len(old),
        sum(old),
        len(commits_since_compaction(snapshot.timeline)) if on_logs else None,
        len(snapshot.timeline.pending_of(Action.COMPACTION, Action.LOG_COMPACTION)),
        len(writes),
        sum(write.time >= savepoints[0].time for write in writes) if savepoints else None,
    )


def _look_at_files(snapshot: Snapshot) -> tuple[list[FileGroup], list[LostFile]]:
    """The file groups, and the files that commits name and that are gone or differ. The store itself is listed."""
    snapshot.commits.named_files.accept(left_of(load_losses(snapshot.storage)))
    committed, groups, lost = snapshot.confirmed, list[FileGroup](), list[LostFile]()
    unseen = set(committed.named or ())
    for path, entries in snapshot.table.store_listing.walk():
        groups += snapshot.group_files(path, entries)
        lost += find_lost(path, *parse_data_files(path, entries), committed)
        unseen.discard(path)
    for path in sorted(unseen):
        lost += find_lost(path, (), (), committed)
    return groups, lost
