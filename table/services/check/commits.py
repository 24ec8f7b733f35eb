"""Verifies commits one by one: the files that each names are there, whole and readable, and its keys are there once.

The table may be written meanwhile. A file is not missed whose file group a later commit wrote or replaced: it may have
been cleaned since. Where a commit is undone or archived while it is looked at, nothing is said of it.
"""

import heapq
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table import clock
from table.config.metadata_indexes import FILES, RECORD_INDEX
from table.errors import CorruptFileError, StorageError, TimelineMovedError
from table.files.base.stored_file import StoredBaseFile
from table.hudi_table import HudiTable
from table.metadata_table.file_lists import Failures, load_file_lists
from table.metadata_table.metadata_table import METADATA_FOLDER
from table.metadata_table.read_record_index import see_record_index
from table.schema.avro_schema import COMMIT_TIME, RECORD_KEY
from table.services.check.checksums import count_checksums
from table.services.check.contents import check_contents
from table.services.check.file_lists import ADVICE
from table.services.check.finding import Finding, Kind, Repair, Severity, in_order
from table.services.check.log_contents import check_log_contents, ordering_of
from table.services.check.statistics import check_statistics
from table.snapshot import Snapshot
from table.storage.interface import Storage, join
from table.timeline.active_timeline import read_instant
from table.timeline.change import Change
from table.timeline.commit_cache import CommitCache
from table.timeline.instant import Instant
from table.timeline.metadata.commit import CommitMetadata, WriteStat
from table.timeline.same_content import decode_whole
from table.view.file_group import BaseFile, LogFile, parse_data_files

_ONE_ROW_A_KEY = ("UPSERT", "UPSERT_PREPPED")
_LOOKS = 4  # at a metadata table that is written at the same time
_MOST_LOOKED_UP = 1_000  # keys of a commit that are looked for in the record index
_BACKUP = "restore a savepoint, bring the file back from a backup, or write its rows again"
_WHY = "its bytes cannot be made again from here"


@dataclass(frozen=True)
class CommitReport:
    """What was found of one commit.

    Attributes:
        time: its instant time.
        operation: Hudi's name of it; "" where the commit does not say.
        files: data files that it names.
        files_read: those whose rows or blocks were read.
        files_gone: those that are gone, and were superseded by later commits.
        rows: rows that it says it added or changed.
        chunks_read: column chunks of the base files that were read.
        chunks_summed: those whose pages carry checksums.
        findings: errors first.
    """

    time: str
    operation: str
    files: int
    files_read: int
    files_gone: int
    rows: int
    chunks_read: int
    chunks_summed: int
    findings: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing but notes was found."""
        return all(finding.severity is Severity.NOTE for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """As `--format json` shows it."""
        document = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**document, "sound": self.is_sound, "findings": [finding.to_json() for finding in self.findings]}


@dataclass(frozen=True)
class NewCommits:
    """The commits between two looks.

    Attributes:
        reports: of each commit, oldest first.
        may_lack: whether commits may have come and been archived unseen.
    """

    reports: tuple[CommitReport, ...]
    may_lack: bool = False


class CommitChecks:
    """Verifies the commits of a table as they come: the newest at the first look, then each that is new.

    Args:
        storage: the table's; its properties are read again with each look.
        sample: how many files of a commit are read; None means all.
    """

    def __init__(self, storage: Storage, sample: int | None) -> None:
        self._storage, self._sample = storage, sample
        self._commits = CommitCache(storage)
        self._seen: frozenset[str] | None = None

    def look(self) -> NewCommits:
        """Verifies what came since the last look.

        Raises:
            HudiError: the table cannot be read at all; the same commits come with the next look.
        """
        snapshot = Snapshot.load(HudiTable.at(self._storage), commits=self._commits)
        writes = snapshot.timeline.completed_writes
        times = frozenset(instant.time for instant in writes)
        if self._seen is None:
            chosen, lacks = writes[-1:], False
        else:
            change = Change.between(self._seen, times)
            chosen = tuple(instant for instant in writes if instant.time in change.came)
            lacks = bool(self._seen) and not change.is_gapless and not change.undone
        reports = tuple(report for one in chosen if (report := verify_commit(snapshot, one, self._sample)) is not None)
        self._seen = times
        return NewCommits(reports, lacks)


def verify_commit(snapshot: Snapshot, instant: Instant, sample: int | None) -> CommitReport | None:
    """Verifies one commit. Returns None where it was undone or archived meanwhile.

    Args:
        snapshot: the table, with the commit on its timeline.
        instant: the completed commit.
        sample: how many of its files are read: the same ones each time; None means all.

    Raises:
        StorageError: the store fails while folders are listed.
    """
    try:
        return _verify(snapshot, instant, sample)
    except TimelineMovedError:
        return None
    except CorruptFileError as error:
        if _has_left(snapshot, instant):
            return None
        return CommitReport(
            instant.time, "", 0, 0, 0, 0, 0, 0, (_error(Kind.DAMAGED_COMMIT, instant.time, str(error)),)
        )


def _verify(snapshot: Snapshot, instant: Instant, sample: int | None) -> CommitReport | None:
    table, commit = snapshot.table, snapshot.commits.read(instant)
    found, gone, bases, logs = _find_files(snapshot, instant, commit)
    found += _check_completed_file(snapshot, instant)
    stats = {stat.path: stat for stat in commit.stats}
    read = _choose([*bases, *logs], sample)
    read_bases = [file for file in read if isinstance(file, BaseFile)]
    read_logs = [file for file in read if isinstance(file, LogFile)]
    schema = snapshot.load_schema()
    has_meta = table.config.populate_meta_fields
    found += check_contents(table.storage, read_bases, schema, has_meta_fields=has_meta)
    found += check_log_contents(table.storage, read_logs, {}, ordering_of(table.config, schema))
    found += _check_counts(table, read_bases, stats)
    if has_meta and commit.operation in _ONE_ROW_A_KEY:
        found += _check_keys(table, instant.time, read_bases, stats)
    found += _check_indexes(snapshot, instant, commit, read_bases)
    if _has_left(snapshot, instant):
        return None
    chunks = count_checksums(table.storage, read_bases)
    rows = sum(stat.num_inserts + stat.num_update_writes for stat in commit.stats)
    counts = len(stats), len(read), gone, rows, *chunks
    return CommitReport(instant.time, commit.operation, *counts, in_order(found))


def _check_completed_file(snapshot: Snapshot, instant: Instant) -> Iterator[Finding]:
    """Whether the completed file itself can be read: where it cannot, our readers go by the end record.

    Raises:
        TimelineMovedError: the file was archived or undone.
    """
    data = read_instant(snapshot.storage, instant)
    if decode_whole(instant, data) is not None:
        return
    text = f"the completed file {instant.path} is {'torn' if data.strip() else 'empty'}: other engines lose its rows"
    advice = "`hudistream check --repair` writes it again, if its end record is there"
    yield Finding(Kind.DAMAGED_COMMIT, Severity.ERROR, instant.time, text, Repair.POSSIBLE, advice=advice)


def _find_files(
    snapshot: Snapshot, instant: Instant, commit: CommitMetadata
) -> tuple[list[Finding], int, list[BaseFile], list[LogFile]]:
    """What the store has of the named files: findings, the number of those that are rightly gone, the files."""
    listing, lost = snapshot.table.store_listing, []
    bases: list[BaseFile] = []
    logs: list[LogFile] = []
    found: list[Finding] = []
    by_path: dict[str, list[WriteStat]] = {}
    for stat in commit.stats:
        if stat.path:
            by_path.setdefault(stat.partition_path, []).append(stat)
    for path, stats in by_path.items():
        entries = {entry.name: entry for entry in listing.list_files(path)}
        by_name = {stat.path.rpartition("/")[2]: stat for stat in stats}
        there = {name: stat for name, stat in by_name.items() if name in entries}
        lost += [stat for name, stat in by_name.items() if name not in there]
        some_bases, some_logs = parse_data_files(path, [entries[name] for name in there])
        bases, logs = [*bases, *some_bases], [*logs, *some_logs]
        sizes = {stat.path: stat.file_size_bytes for stat in there.values()}
        files: list[BaseFile | LogFile] = [*some_bases, *some_logs]
        for file in files:
            wanted = sizes[file.path]
            # Hudi's writers may append to a log file that others have begun
            if wanted and (file.size_bytes < wanted or (isinstance(file, BaseFile) and file.size_bytes != wanted)):
                text = f"it has {file.size_bytes} bytes, and the commit {instant.time} says {wanted}"
                found.append(_error(Kind.WRONG_SIZE, file.path, text))
    superseded = _find_superseded(snapshot.again(), instant) if lost else frozenset()
    for stat in lost:
        if (stat.partition_path, stat.file_id) not in superseded:
            text = f"it is gone, and the commit {instant.time} names it: its rows are lost"
            found.append(_error(Kind.MISSING_FILE, stat.path, text))
    return found, len(lost) - sum(one.kind is Kind.MISSING_FILE for one in found), bases, logs


def _find_superseded(now: Snapshot, instant: Instant) -> frozenset[tuple[str, str]]:
    """The file groups that later commits wrote or replaced.

    Raises:
        TimelineMovedError: the commit, or one of these, has left the timeline.
    """
    if now.timeline.find(instant.time, instant.action) is None:
        raise TimelineMovedError(f"{instant.file_name} has left the timeline")
    later = (one for one in now.timeline.completed_writes if one.time > instant.time)
    return frozenset(group for one in later for group in now.commits.read(one).file_groups)


def _choose(files: Sequence[BaseFile | LogFile], sample: int | None) -> list[BaseFile | LogFile]:
    if sample is None:
        return sorted(files, key=lambda file: file.path)
    return heapq.nsmallest(sample, files, key=lambda file: (zlib.crc32(file.path.encode()), file.path))


def _check_counts(table: HudiTable, files: Iterable[BaseFile], stats: dict[str, WriteStat]) -> Iterator[Finding]:
    """Files whose footers have other numbers of rows than the commit."""
    for file in files:
        try:
            with StoredBaseFile(table.storage, file.path, file.size_bytes) as stored:
                rows = sum(stored.group_rows)
        except (FileNotFoundError, CorruptFileError, StorageError):
            continue  # the check of contents says so
        wanted = stats[file.path].num_writes
        if rows != wanted:
            yield _error(Kind.WRONG_COUNT, file.path, f"it has {rows} rows, and its commit says {wanted}")


def _check_keys(
    table: HudiTable, time: str, files: Iterable[BaseFile], stats: dict[str, WriteStat]
) -> Iterator[Finding]:
    """Keys that an upsert wrote twice within a partition path, and that were not there twice before."""
    by_path: dict[str, list[BaseFile]] = {}
    for file in files:
        by_path.setdefault(file.partition_path, []).append(file)
    for path, group in by_path.items():
        doubled = _count_more_than_once(keys for file in group for keys in _keys_of_commit(table, file, time))
        if not doubled:
            continue
        older = [name for file in group if (name := stats[file.path].prev_base_file)]
        before = _count_keys(table, [join(path, name) for name in older], pa.array(list(doubled), pa.string()))
        if before is None:
            continue  # an earlier version is gone: it may have had the keys twice
        wrong = sorted(key for key, count in doubled.items() if count > max(1, before.get(key, 0)))
        if wrong:
            text = f"{len(wrong)} keys were written more than once by the upsert {time}, among them {wrong[0]!r}"
            yield _error(Kind.DOUBLED_KEYS, path or ".", text)


def _keys_of_commit(table: HudiTable, file: BaseFile, time: str) -> Iterator[pa.Array]:
    """Record keys of the rows that a commit wrote into a file (strings)."""
    try:
        with StoredBaseFile(table.storage, file.path, file.size_bytes) as stored:
            for rows in stored.read_stored([COMMIT_TIME, RECORD_KEY]):
                own = rows.filter(pc.equal(rows.column(COMMIT_TIME).cast(pa.string()), time))
                yield from own.column(RECORD_KEY).cast(pa.string()).chunks
    except (FileNotFoundError, CorruptFileError, StorageError):
        return  # the check of contents says so


def _count_more_than_once(pieces: Iterable[pa.Array]) -> dict[str, int]:
    counts = pa.chunked_array(list(pieces), pa.string()).value_counts()
    numbers = counts.field("counts").to_numpy(zero_copy_only=False)
    more = np.flatnonzero(numbers > 1)
    return dict(zip(counts.field("values").take(pa.array(more)).to_pylist(), numbers[more].tolist(), strict=True))


def _count_keys(table: HudiTable, paths: Iterable[str], keys: pa.Array) -> dict[str, int] | None:
    """How many rows of files have each of some keys; None where a file is gone."""
    held: list[pa.Array] = []
    try:
        for path in paths:
            with StoredBaseFile(table.storage, path) as stored:
                for rows in stored.read_stored([RECORD_KEY]):
                    found = rows.column(RECORD_KEY).cast(pa.string())
                    held += found.filter(pc.is_in(found, keys)).chunks
    except (FileNotFoundError, CorruptFileError, StorageError):
        return None
    counts = pa.chunked_array(held, pa.string()).value_counts()
    return dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))


def _check_indexes(
    snapshot: Snapshot, instant: Instant, commit: CommitMetadata, files: Sequence[BaseFile]
) -> list[Finding]:
    """What the metadata table says of the newest commit; nothing, where it is written at the same time.

    Other commits may have moved the keys and files of one that is not the newest.
    """
    found: list[Finding] = []
    for attempt in range(_LOOKS):
        now = snapshot.again()
        if now.timeline.completed_writes[-1:] != (instant,):
            return []
        try:
            found = _look_at_indexes(now, instant, commit, files)
        except Failures as error:
            text = f"the metadata table cannot be read: {error}"
            found = [
                Finding(Kind.METADATA_TABLE, Severity.WARNING, METADATA_FOLDER, text, Repair.POSSIBLE, advice=ADVICE)
            ]
        if not found:
            return []
        clock.sleep_s(0.1 * 2**attempt)
    later = snapshot.again().timeline
    return found if later.files == now.timeline.files and not later.pending else []


def _look_at_indexes(
    snapshot: Snapshot, instant: Instant, commit: CommitMetadata, files: Sequence[BaseFile]
) -> list[Finding]:
    """What the metadata table says of its files, of their statistics, and of the places of its keys."""
    table = HudiTable.at(snapshot.storage)  # an index may have been dropped
    found: list[Finding] = []
    if FILES in table.config.metadata_indexes:
        found += _check_lists(snapshot, commit)
    schema = snapshot.load_schema()
    if schema is not None:
        found += check_statistics(table, schema, files)
    if RECORD_INDEX in table.config.metadata_indexes and commit.operation in _ONE_ROW_A_KEY:
        found += _check_locations(table, snapshot, instant, files)
    return found


def _check_lists(snapshot: Snapshot, commit: CommitMetadata) -> Iterator[Finding]:
    lists = load_file_lists(snapshot.storage, (one.time for one in snapshot.timeline.completed_writes))
    lacking = [
        stat.path
        for stat in commit.stats
        if stat.path and stat.path.rpartition("/")[2] not in lists.files(stat.partition_path)
    ]
    if lacking:
        text = f"the metadata table lacks {len(lacking)} files of the newest commit, among them {lacking[0]}"
        yield _of_metadata_table(f"{text}: readers that trust it lose their rows")


def _check_locations(
    table: HudiTable, snapshot: Snapshot, instant: Instant, files: Sequence[BaseFile]
) -> Iterator[Finding]:
    """Some keys that the commit wrote, looked up in the record index."""
    index = see_record_index(table.storage, table.config, table.known_lists).as_of(snapshot.timeline)
    remaining, wrong = _MOST_LOOKED_UP, []
    for file in files:
        keys = pa.concat_arrays([pa.array([], pa.string()), *_keys_of_commit(table, file, instant.time)])[:remaining]
        remaining -= len(keys)
        here = index.find(keys).by_group().get((file.partition_path, file.file_id), ())
        wrong += keys.take(pa.array(np.setdiff1d(np.arange(len(keys)), here))).to_pylist()
        if remaining <= 0:
            break
    if wrong:
        text = f"the record index is wrong about {len(wrong)} keys of the newest commit, among them {wrong[0]!r}"
        yield _of_metadata_table(f"{text}: upserts by it write such a key twice")


def _has_left(snapshot: Snapshot, instant: Instant) -> bool:
    return snapshot.again().timeline.find(instant.time, instant.action) is None


def _error(kind: Kind, where: str, text: str) -> Finding:
    return Finding(kind, Severity.ERROR, where, text, Repair.REFUSED, _WHY, _BACKUP)


def _of_metadata_table(text: str) -> Finding:
    return Finding(Kind.METADATA_TABLE, Severity.ERROR, METADATA_FOLDER, text, Repair.POSSIBLE, advice=ADVICE)
