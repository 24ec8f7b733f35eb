"""Decides what is not well in a table, by the facts (pure)."""

from collections.abc import Iterable
from dataclasses import replace

from table.inspect.health_facts import Code, Health, HealthFinding, Verdict
from table.inspect.words import age_text
from table.options.groups import ArchiveSettings, CleanSettings, CompactionSettings
from table.services.archival.plan import is_far_behind
from table.timeline.instant import Action

PENDING_TOO_LONG_S = 3600
BEHIND = 3
"""So many times what a service waits for, and it is behind."""
_FEW_FILES = 20
_SMALL_SHARE = 0.5
_LEAST_FREE_BYTES = 1 << 20  # for the instants of a batch
_BATCHES_FREE = 10


def judged(
    facts: Health,
    clean: CleanSettings,
    archive: ArchiveSettings,
    compaction: CompactionSettings,
    stale_after_s: float | None = None,
) -> Health:
    """The same facts with findings.

    Args:
        facts: facts about a table.
        clean: when a clean is due.
        archive: how long the active timeline may be.
        compaction: when a compaction is due.
        stale_after_s: seconds without a commit of a writer after which the table is worth a look; None: never. Services
            do not count.
    """
    found = [
        *_broken(facts),
        *_damaged(facts),
        *_left(facts),
        *_stale(facts, stale_after_s),
        *_behind(facts, clean, compaction),
        *_held_archival(facts, archive),
        *_small(facts),
        *_room(facts),
    ]
    return replace(facts, findings=tuple(sorted(found, key=lambda one: -one.level)))


def _look(code: Code, text: str) -> HealthFinding:
    return HealthFinding(Verdict.LOOK, code, text)


def _fails(code: Code, text: str) -> HealthFinding:
    return HealthFinding(Verdict.BROKEN, code, text)


def _broken(facts: Health) -> Iterable[HealthFinding]:
    if facts.lost:
        more = f" (and {len(facts.lost) - 1} more files)" if len(facts.lost) > 1 else ""
        yield _fails(
            Code.LOST_FILE,
            f"{facts.lost[0]}{more}: batches are refused. Bring it back, or run `hudistream accept-loss PATH`, which "
            "says what is lost",
        )
    if facts.damaged_index:
        yield _fails(
            Code.METADATA_TABLE,
            f"{facts.damaged_index}: Hudi's readers and writers, which trust it, lose rows or double keys; hudistream "
            "asks the store instead. `hudistream check --repair` drops the metadata table",
        )
    if facts.clock:
        yield _fails(Code.CLOCK_AHEAD, f"batches are refused: {facts.clock}")
    for one in facts.pending:
        if one.action == Action.RESTORE.value:
            yield _fails(Code.RESTORE_PENDING, one.outlook)


def _damaged(facts: Health) -> Iterable[HealthFinding]:
    """What others damaged, and the next batch or a command mends."""
    if facts.damaged_commits:
        yield _look(
            Code.DAMAGED_COMMIT,
            f"the completed file of {facts.damaged_commits[-1]} is empty or torn: readers of Hudi lose its rows; the "
            "next sink that starts writes it again from its end record, or `hudistream check --repair`",
        )
    if facts.metadata_table:
        yield _look(
            Code.METADATA_TABLE,
            f"the properties promise a metadata table, and {facts.metadata_table}: Hudi's readers fail or list the "
            "store; `hudistream check --repair` takes it out of the properties",
        )


def _left(facts: Health) -> Iterable[HealthFinding]:
    """What dead writers left."""
    late = [one for one in facts.pending if one.age_s > PENDING_TOO_LONG_S]
    if late and not facts.writer_lives:
        why = "for more than an hour, and no writer lives that would end it"
        yield _look(Code.WRITE_PENDING, f"{why}: {late[0].outlook}")
    if facts.writer is not None and not facts.writer_lives:
        yield _look(
            Code.DEAD_WRITER,
            f"{facts.writer} holds the table and is dead: start the stream; the next writer takes over",
        )


def _stale(facts: Health, after_s: float | None) -> Iterable[HealthFinding]:
    age_s = facts.last_rows_age_s
    if after_s is None or (age_s is not None and age_s <= after_s):
        return
    since = f"for {age_text(age_s)}" if age_s is not None else "among the newest ten commits"
    yield _look(
        Code.STALE,
        f"no commit with rows {since}: the stream does not run, its batches fail or take longer, or no rows come (a "
        "batch without rows leaves no commit)",
    )


def _behind(facts: Health, clean: CleanSettings, compaction: CompactionSettings) -> Iterable[HealthFinding]:
    """Services that do not keep up."""
    backlog = facts.backlog
    since, due = backlog.commits_since_clean, clean.commits_retained + clean.trigger_commits
    is_late = (backlog.active_instants if since is None else since) > BEHIND * due
    if is_late and backlog.superseded_bytes > facts.live_bytes and facts.live_files:
        yield _look(
            Code.NOT_CLEANED,
            f"old versions hold {backlog.superseded_bytes / max(1, facts.live_bytes):.1f} times the bytes of the live "
            "files, and nothing cleans: set hoodie.clean.automatic=true, or run `hudistream clean`",
        )
    waits = backlog.commits_since_compaction
    if facts.log_files and waits is not None and waits > BEHIND * compaction.delta_commits:
        yield _look(
            Code.NOT_COMPACTED,
            f"{waits} delta commits wait for a compaction: readers merge more log files each time; run `hudistream "
            "compact`, or look why the stream's compactions fail",
        )


def _held_archival(facts: Health, archive: ArchiveSettings) -> Iterable[HealthFinding]:
    """A savepoint is named as soon as archival would go past it: what it holds grows with each commit."""
    count, most, held = facts.backlog.active_instants, archive.max_commits, facts.backlog.commits_since_savepoint
    text = f"the active timeline has {count} commits, and archival keeps {most}"
    if held is not None and held > most:
        first = facts.savepoints[0]
        yield _look(
            Code.SAVEPOINT_HOLDS_ARCHIVAL,
            f"{text} (the savepoint {first} holds archival): delete it when it is no longer needed (`hudistream "
            f"savepoint delete PATH {first}`); until then `.hoodie` grows with each commit, and all batches list it",
        )
    elif is_far_behind(count, archive):
        yield _look(Code.NOT_ARCHIVED, f"{text}: set hoodie.archive.automatic=true, or run `hudistream archive`")


def _small(facts: Health) -> Iterable[HealthFinding]:
    if facts.live_files > _FEW_FILES and facts.small_files > _SMALL_SHARE * facts.live_files:
        yield _look(
            Code.SMALL_FILES,
            f"{facts.small_files} of {facts.live_files} live files are small: "
            + (
                f"{facts.small_beside} lie beside others in their partition paths, and `hudistream cluster` puts those "
                "together; fewer paths, fewer buckets or less frequent batches make larger ones"
                if facts.small_beside
                else "each is the only small one of its partition path, so that no clustering helps; fewer paths or "
                "less frequent batches make larger ones"
            ),
        )


def _room(facts: Health) -> Iterable[HealthFinding]:
    """Whether the next batch may write, and has room for its files."""
    if facts.not_writable and facts.is_read_only:
        yield _fails(
            Code.NOT_WRITABLE,
            f"the file system of {facts.not_writable!r} is read-only: batches fail; mount it writable",
        )
    elif facts.not_writable:
        yield _look(
            Code.NOT_WRITABLE,
            f"this user may not write in {facts.not_writable!r}: batches of the same user fail; give the rights to it",
        )
    free, batch = facts.free_bytes, facts.batch_bytes
    if free is None:
        return
    if free < max(batch, _LEAST_FREE_BYTES):
        yield _fails(
            Code.DISK_FULL,
            f"{free:,} bytes are free, and the largest of the newest commits wrote {batch:,}: batches fail; run "
            "`hudistream clean`, which works on a full disk, or free some room",
        )
    elif free < _BATCHES_FREE * batch:
        yield _look(
            Code.DISK_NEARLY_FULL,
            f"{free:,} bytes are free, and the largest of the newest commits wrote {batch:,}: run `hudistream clean`, "
            "or free some room",
        )
