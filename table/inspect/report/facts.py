"""The facts of a report. Each part lists the folders that it needs; only `check` opens data files."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from table.errors import HudiError
from table.hudi_table import HudiTable
from table.inspect.contents import load_files, load_history
from table.inspect.explain_compaction import has_compactions, list_next_compaction
from table.inspect.health import load_health
from table.inspect.health_facts import Health
from table.services.check.check import check
from table.services.check.finding import CheckReport
from table.services.clean.judgement import PartitionFates, judge_files
from table.services.kept_settings import KeptSettings, load_settings
from table.snapshot import Snapshot

MOST_COMMITS = 400
MOST_LISTED = 200
LARGEST_PARTITIONS = 300


@dataclass(frozen=True)
class Bytes:
    """The bytes of a table's data files, by the reason for which they stay.

    Attributes:
        live: bytes of files that a snapshot reader opens.
        superseded: bytes of older versions that no reader has pinned, including files that the next clean deletes.
        pinned: bytes of older versions that readers or savepoints hold.
        cleanable: the part of `superseded` that the next clean deletes.
    """

    live: int = 0
    superseded: int = 0
    pinned: int = 0
    cleanable: int = 0


@dataclass(frozen=True)
class ReportFacts:
    """All facts of a report.

    Attributes:
        name: name of the table.
        path: address of the table.
        health: the state, and the verdict.
        commits: rows of `HudiTable.history`, newest first, at most `MOST_COMMITS`.
        commits_left_out: number of further commits on the timeline.
        file_sizes: bytes of each live base file.
        small_bytes: size below which a file is small.
        partitions: (path, live bytes), largest first, at most `LARGEST_PARTITIONS`.
        partition_count: number of all partitions.
        other_bytes: live bytes of the partitions that are not listed.
        log_counts: number of log files -> number of file slices with as many.
        bytes: bytes of the data files by the reason for which they stay; None: not known.
        next_clean: (path of a file, bytes, rule) that the next clean deletes, at most `MOST_LISTED`.
        next_clean_count: number of files that the next clean deletes.
        next_compaction: (file group, number of log files, their bytes, when they are folded), at most `MOST_LISTED`;
            None for a table without log files.
        next_compaction_count: number of file groups that the next compaction takes.
        schema: (name, type in words, whether it may be null) of each column.
        schema_changes: (instant, change in words), newest first.
        checked: findings of `check`; None: `check` did not run.
        problems: parts of the report that could not be made, with the reason.
    """

    name: str
    path: str
    health: Health | None
    commits: tuple[dict[str, Any], ...] = ()
    commits_left_out: int = 0
    file_sizes: tuple[int, ...] = ()
    small_bytes: int = 0
    partitions: tuple[tuple[str, int], ...] = ()
    partition_count: int = 0
    other_bytes: int = 0
    log_counts: tuple[tuple[int, int], ...] = ()
    bytes: Bytes | None = None
    next_clean: tuple[tuple[str, int, str], ...] = ()
    next_clean_count: int = 0
    next_compaction: tuple[tuple[str, int, int, str], ...] | None = None
    next_compaction_count: int = 0
    schema: tuple[tuple[str, str, bool], ...] = ()
    schema_changes: tuple[tuple[str, str], ...] = ()
    checked: CheckReport | None = None
    problems: tuple[str, ...] = field(default=())


def load_report(table: HudiTable, settings: KeptSettings | None = None, *, checks: bool = True) -> ReportFacts:
    """Gathers the facts of a report. If a part cannot be read, `problems` names it, and the other parts are made.

    Args:
        settings: of a sink, for the size of small files and the rules of cleaning. None: those of the sink that started
            last.
        checks: whether to check the table, which reads footers.
    """
    settings = settings or load_settings(table.storage)
    facts = ReportFacts(
        table.config.name, table.storage.base_uri, None, small_bytes=settings.sizes.small_file_limit_bytes
    )
    for what, part in (
        ("health", _with_health),
        ("history", _with_history),
        ("files", _with_files),
        ("what cleaning does", _with_fates),
        ("what compaction does", _with_compaction),
        ("schema", _with_schema),
        *((("check", _with_check),) if checks else ()),
    ):
        try:
            facts = part(facts, table, settings)
        except (HudiError, OSError, ValueError) as error:
            facts = replace(facts, problems=(*facts.problems, f"{what}: {type(error).__name__}: {error}"))
    return facts


def _with_health(facts: ReportFacts, table: HudiTable, settings: KeptSettings) -> ReportFacts:
    return replace(facts, health=load_health(table, settings))


def _with_history(facts: ReportFacts, table: HudiTable, _: KeptSettings) -> ReportFacts:
    rows = load_history(table)
    commits = rows.slice(0, MOST_COMMITS).to_pylist()
    changes = [(row["instant"], change) for row in commits for change in row["schema_changes"] or ()]
    omitted = max(0, len(rows) - MOST_COMMITS)
    return replace(facts, commits=tuple(commits), commits_left_out=omitted, schema_changes=tuple(changes[:MOST_LISTED]))


def _with_files(facts: ReportFacts, table: HudiTable, _: KeptSettings) -> ReportFacts:
    files = load_files(table)
    sizes: list[int] = []
    logs: Counter[tuple[str, str]] = Counter()
    by_path: Counter[str] = Counter()
    slices: set[tuple[str, str]] = set()
    columns = [files.column(name).to_pylist() for name in ("partition_path", "file_id", "kind", "size_bytes")]
    for path, file_id, kind, size in zip(*columns, strict=True):
        slices.add((path, file_id))
        by_path[path] += size
        if kind == "base":
            sizes.append(size)
        elif kind == "log":
            logs[path, file_id] += 1
    largest = by_path.most_common(LARGEST_PARTITIONS)
    return replace(
        facts,
        file_sizes=tuple(sizes),
        partitions=tuple(largest),
        partition_count=len(by_path),
        other_bytes=sum(by_path.values()) - sum(size for _, size in largest),
        log_counts=tuple(sorted(Counter(logs.get(one, 0) for one in slices).items())),
    )


def _with_fates(facts: ReportFacts, table: HudiTable, settings: KeptSettings) -> ReportFacts:
    found, count = Bytes(), 0
    listed: list[tuple[str, int, str]] = []
    for of_path in judge_files(table, settings.clean):
        found = _counted(found, of_path)
        for fate in of_path.deleted:
            count += 1
            if len(listed) < MOST_LISTED:
                listed.append((fate.file.path, fate.file.size_bytes, fate.rule))
    return replace(facts, bytes=found, next_clean=tuple(listed), next_clean_count=count)


def _with_compaction(facts: ReportFacts, table: HudiTable, settings: KeptSettings) -> ReportFacts:
    if not has_compactions(table.config):
        return facts
    snapshot = Snapshot.load(table)
    groups = (group for _, found in snapshot.walk_file_groups() for group in found)
    listed = list_next_compaction(snapshot, groups, settings.compaction)
    return replace(facts, next_compaction=tuple(listed[:MOST_LISTED]), next_compaction_count=len(listed))


def _counted(so_far: Bytes, of_path: PartitionFates) -> Bytes:
    live = superseded = pinned = cleanable = 0
    for fate in of_path.fates:
        size = fate.file.size_bytes
        if fate.file in of_path.current:
            live += size
        elif fate.is_held or "savepoint" in fate.rule:
            pinned += size
        else:
            superseded += size
            cleanable += size if fate.deleted else 0
    return Bytes(
        so_far.live + live, so_far.superseded + superseded, so_far.pinned + pinned, so_far.cleanable + cleanable
    )


def _with_schema(facts: ReportFacts, table: HudiTable, _: KeptSettings) -> ReportFacts:
    stored = Snapshot.load(table).load_schema()
    return replace(facts, schema=tuple((one.name, str(one.type), one.nullable) for one in stored or ()))


def _with_check(facts: ReportFacts, table: HudiTable, _: KeptSettings) -> ReportFacts:
    return replace(facts, checked=check(table))
