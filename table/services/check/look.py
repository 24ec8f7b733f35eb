"""One look at a whole table: read once, judged by the modules beside this one.

In memory are the names of the table's base files, the write stats of the active timeline, and one file of the
archive at a time. Leftovers that may be swept are listed first, then the data folders, the timeline last: an instant is
requested before its files are written, so a timeline loaded later shows the request of each listed file.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from table import clock
from table.errors import CorruptFileError, HudiError, TimelineMovedError
from table.files.log.instants import LogInstants, read_instants
from table.files.markers import list_marked_instants, list_marker_names
from table.files.names import parse_marker
from table.files.partition_metadata import PARTITION_METAFILE
from table.files.publication import may_publish_late
from table.hudi_table import HudiTable
from table.options.groups import HeartbeatSettings
from table.references.judge import Records
from table.references.undone import load_undone_times
from table.services.check.file_records import FileFacts, FileRecords, load_file_records
from table.services.check.lost_instants import LostInstant, load_lost
from table.services.rollback.outlook import find_writer
from table.snapshot import Snapshot
from table.storage.interface import METAFOLDER, Storage, join
from table.timeline.active_timeline import find_instant, list_temporaries
from table.timeline.end_record import ENDS_FOLDER, EndRecord, decode_end
from table.timeline.instant import Action, Instant
from table.timeline.metadata.commit import CommitMetadata
from table.timeline.metadata.savepoint import decode_savepoint
from table.timeline.timeline import Timeline
from table.transaction.heartbeat import HEARTBEAT_FOLDER
from table.transaction.holder import Holder
from table.transaction.planned_clusterings import is_foreign_clustering
from table.view.file_group import (
    BaseFile,
    CommittedInstants,
    DataFile,
    FileGroup,
    FileSlice,
    LogFile,
    committed_instants,
    group_files,
    parse_data_files,
)
from table.view.store_listing import walk_folders

Group = tuple[str, str]  # partition path, file id


_TRIES = 5  # to look at a timeline that moves


@dataclass(frozen=True)
class Folder:
    """One data folder.

    Attributes:
        path: relative to the table.
        files: its base files.
        log_files: its log files.
        has_metafile: whether it is a partition for Java readers.
        is_bare: whether it holds nothing but that file.
    """

    path: str
    files: tuple[BaseFile, ...]
    log_files: tuple[LogFile, ...]
    has_metafile: bool
    is_bare: bool

    @property
    def paths(self) -> frozenset[str]:
        """Of all its data files."""
        return frozenset(file.path for file in self.files) | frozenset(log.path for log in self.log_files)


@dataclass(frozen=True)
class Leftovers:
    """What writers leave below ``.hoodie`` while they write.

    Attributes:
        markers: instant time -> files in the place of markers that are no markers.
        heartbeats: instants that have one.
        staged: instants that have a folder for waiting files.
        ends: end records, without content, by the name of their file.
        broken_ends: name -> what is wrong with it.
        temporaries: paths of half-written files that are old.
        kept_markers: instants whose markers stay as long as a task may live, because the store has no fence.
    """

    markers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    heartbeats: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()
    ends: Mapping[str, EndRecord] = field(default_factory=dict)
    broken_ends: Mapping[str, str] = field(default_factory=dict)
    temporaries: tuple[str, ...] = ()
    kept_markers: frozenset[str] = frozenset()


@dataclass
class Archive:
    """What the archive says of the files that are there.

    Attributes:
        recorded: completed instants in it.
        times: completed writes in it.
        silent: writes in `times` whose metadata does not name all their files.
        named: paths of existing files that the archived writes name.
        replaced: file group -> the replace commit that replaced it.
        undone: instants that its rollbacks undid.
    """

    recorded: set[str] = field(default_factory=set)
    times: set[str] = field(default_factory=set)
    silent: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    replaced: dict[Group, str] = field(default_factory=dict)
    undone: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Look:
    """What one look shows.

    Attributes:
        folders: data folders that hold base files or a partition metadata file, by path.
        timeline: loaded after they were listed.
        commits: completed writes of the timeline whose file could be read, by time.
        committed: which files are visible.
        undone: instants that rollbacks of the timeline undo or have undone.
        held: savepoint -> paths that it holds.
        unreadable: instant file, or archive -> what is wrong with it.
        archive: what left the timeline.
        leftovers: of failed writers.
        alive: pending instants that a live writer writes.
        clusterings: pending clusterings.
        holder: of the table's lease.
        records: what timeline and archive say of the instants that wrote files.
        held_paths: paths of the files that savepoints hold.
        log_instants: path of a log file that no commit names -> what its blocks say.
        files: what the records say of the files that must be there.
        damaged: completed files of commits that are empty or torn, and whose content the end record has.
        lost: instants that were decided to be committed, and whose instant files are gone.
    """

    folders: Mapping[str, Folder]
    timeline: Timeline
    commits: Mapping[str, CommitMetadata]
    committed: CommittedInstants
    undone: frozenset[str]
    held: Mapping[str, frozenset[str]]
    unreadable: Mapping[str, str]
    archive: Archive
    leftovers: Leftovers
    alive: frozenset[str]
    clusterings: frozenset[str]
    holder: Holder
    records: Records
    held_paths: frozenset[str]
    log_instants: Mapping[str, LogInstants] = field(default_factory=dict)
    files: FileRecords = field(default_factory=FileRecords)
    damaged: frozenset[Instant] = frozenset()
    lost: Mapping[str, LostInstant] = field(default_factory=dict)

    @property
    def pending(self) -> frozenset[str]:
        """Times of pending instants."""
        return frozenset(instant.time for instant in self.timeline.pending)

    def lost_files(self, file: DataFile, time: str) -> frozenset[str]:
        """Files that a commit names for a file group, and that do not exist: another file of it may hold their rows.

        Args:
            file: a file of the group.
            time: the commit.
        """
        commit = self.commits.get(time)
        group = file.partition_path, file.file_id
        stats = commit.stats if commit is not None else ()
        named = frozenset(stat.path for stat in stats if (stat.partition_path, stat.file_id) == group)
        return named - self.folders[file.partition_path].paths

    @property
    def last_write(self) -> str:
        """The newest completed write, or ""."""
        return max(self.timeline.committed_times, default="")

    def file_groups(self, folder: Folder) -> tuple[FileGroup, ...]:
        """File groups of a folder that some reader may see."""
        return group_files(folder.path, folder.files, folder.log_files, self.committed)

    def visible_files(self, folder: Folder) -> list[BaseFile]:
        """Base files of a folder that some reader may see."""
        return [file for group in self.file_groups(folder) for file in group.base_files]

    def live_files(self, folder: Folder) -> list[BaseFile]:
        """Base files of a folder that readers of the snapshot see."""
        found = (group.latest_base_file for group in self.file_groups(folder))
        return [file for file in found if file is not None]

    def current_files(self, folder: Folder) -> list[DataFile]:
        """Base files and log files of a folder that readers of the snapshot see."""
        return [file for group in self.file_groups(folder) for file in group.current_files]

    def merged_slices(self) -> Iterator[FileSlice]:
        """The slices that readers of the snapshot merge."""
        return (group.merged_slice for folder in self.folders.values() for group in self.file_groups(folder))


def take_look(table: HudiTable, holder: Holder, settings: HeartbeatSettings) -> Look:
    """Looks at the table. Looks again if commits were archived meanwhile: their files would look like strays.

    Args:
        holder: the holder of the table's lease, other than the check itself.
        settings: when a heartbeat counts as expired.

    Raises:
        HudiError: the store fails, or the timeline changes faster than it can be read. Damaged files are findings.
    """
    for _ in range(_TRIES):
        with suppress(TimelineMovedError):
            return _look_once(table, holder, settings)
    return _look_once(table, holder, settings)


def _look_once(table: HudiTable, holder: Holder, settings: HeartbeatSettings) -> Look:
    storage = table.storage
    leftovers = _list_leftovers(table)
    folders = _list_folders(storage)
    snapshot = Snapshot.load(table)
    timeline = snapshot.timeline
    notes: dict[str, str] = {}
    commits = _load_commits(snapshot, notes)
    replaced: dict[str, set[str]] = {}
    for metadata in commits.values():
        for path, file_ids in metadata.replaced.items():
            replaced.setdefault(path, set()).update(file_ids)
    present = {path for folder in folders.values() for path in folder.paths}
    facts = FileFacts(commits, logs_name_slices=not table.layout.completes_in_order)
    archive = _load_archive(table, present, facts, notes)
    committed = committed_instants(timeline, replaced)
    with _damage_noted(notes, table.archived_timeline.folder):
        committed = snapshot.with_late_writes(committed)
    undone, held = _load_undone(snapshot, notes), _load_held(storage, timeline, notes)
    lost, open_ends = load_lost(storage, leftovers.ends.values(), timeline, undone | archive.undone | archive.times)
    open_ends |= {name.partition(".")[0] for name in leftovers.broken_ends}
    return Look(
        folders=folders,
        timeline=timeline,
        commits=commits,
        committed=committed,
        undone=undone,
        held=held,
        archive=archive,
        leftovers=leftovers,
        alive=frozenset(
            one.time for one in timeline.pending if find_writer(storage, one, holder, settings) is not None
        ),
        clusterings=_find_clusterings(snapshot, notes),
        holder=holder,
        unreadable=notes,
        records=replace(
            _records_of(commits, committed, undone, archive),
            pending=open_ends.union(instant.time for instant in timeline.pending),
            decided={time: one.paths for time, one in lost.items()},
        ),
        held_paths=frozenset[str]().union(*held.values()),
        log_instants=_load_log_instants(storage, folders.values(), commits, archive),
        files=load_file_records(snapshot, facts, archive.replaced, notes),
        damaged=frozenset(snapshot.commits.damaged),
        lost=lost,
    )


def _records_of(
    commits: Mapping[str, CommitMetadata],
    committed: CommittedInstants,
    undone: frozenset[str],
    archive: Archive,
) -> Records:
    return Records(
        committed=committed,
        named={time: commit.named_paths for time, commit in commits.items()},
        silent=archive.silent.union(time for time, commit in commits.items() if not tells_all(commit)),
        pending=frozenset(),
        undone=undone | archive.undone,
        archived=archive.times,
        archived_paths=archive.named,
    )


@contextmanager
def _damage_noted(notes: dict[str, str], name: str) -> Iterator[None]:
    """Keeps what is wrong with a damaged file, instead of raising it."""
    try:
        yield
    except CorruptFileError as error:
        notes[name] = str(error)


def _load_commits(snapshot: Snapshot, notes: dict[str, str]) -> dict[str, CommitMetadata]:
    commits: dict[str, CommitMetadata] = {}
    for instant in snapshot.timeline.completed_writes:
        with _damage_noted(notes, instant.file_name):
            commits[instant.time] = replace(snapshot.commits.read(instant), extra={})
    return commits


def _load_undone(snapshot: Snapshot, notes: dict[str, str]) -> frozenset[str]:
    undone: set[str] = set()
    for rollback in snapshot.timeline:
        if rollback.action in (Action.ROLLBACK, Action.RESTORE):
            with _damage_noted(notes, rollback.file_name):
                undone.update(load_undone_times(snapshot, rollback))
    return frozenset(undone)


def _load_held(storage: Storage, timeline: Timeline, notes: dict[str, str]) -> dict[str, frozenset[str]]:
    held: dict[str, frozenset[str]] = {}
    for savepoint in timeline.completed_of(Action.SAVEPOINT):
        with _damage_noted(notes, savepoint.file_name):
            data = find_instant(storage, savepoint)
            files = decode_savepoint(data, savepoint.file_name).files if data is not None else {}
            held[savepoint.time] = frozenset(join(path, name) for path, names in files.items() for name in names)
    return held


def _find_clusterings(snapshot: Snapshot, notes: dict[str, str]) -> frozenset[str]:
    clusterings: set[str] = set()
    for instant in snapshot.timeline.pending_of(Action.REPLACE_COMMIT):
        with _damage_noted(notes, instant.file_name):
            if is_foreign_clustering(snapshot, instant):
                clusterings.add(instant.time)
    return frozenset(clusterings)


def _list_folders(storage: Storage) -> dict[str, Folder]:
    """Folders with data files or a partition metadata file, by path.

    The store itself is listed, because files that no commit and no partition metadata file names are looked for, too.
    """
    found = {}
    for path, entries in walk_folders(storage):
        files, logs = parse_data_files(path, entries)
        names = {entry.name for entry in entries if path or entry.name != METAFOLDER}
        has_metafile = PARTITION_METAFILE in names
        is_bare = has_metafile and not names - {PARTITION_METAFILE, f".{PARTITION_METAFILE}.crc"}
        if files or logs or has_metafile:
            found[path] = Folder(path, tuple(files), tuple(logs), has_metafile, is_bare)
    return dict(sorted(found.items()))


def _load_log_instants(
    storage: Storage, folders: Iterable[Folder], commits: Mapping[str, CommitMetadata], archive: Archive
) -> dict[str, LogInstants]:
    """Reads the block headers of the log files that no commit names."""
    named = archive.named.union(*(commit.named_paths for commit in commits.values()))
    unnamed = (log.path for folder in folders for log in folder.log_files if log.path not in named)
    return {path: read_instants(storage, path) for path in unnamed}


def _list_leftovers(table: HudiTable) -> Leftovers:
    storage, zone, markers = table.storage, table.config.timezone, {}
    for time in list_marked_instants(storage):
        try:
            names = list_marker_names(storage, time)
            markers[time] = tuple(sorted(name for name in names if parse_marker(name) is None))
        except (FileNotFoundError, UnicodeDecodeError) as error:
            markers[time] = (f"a list of markers that cannot be read: {error}",)
    ends, broken = {}, {}
    for entry in storage.list_dir(ENDS_FOLDER):
        time, _, action = entry.name.partition(".")
        try:
            end = decode_end(time, Action(action), storage.read(join(ENDS_FOLDER, entry.name)))
            ends[entry.name] = replace(end, content=b"")
        except FileNotFoundError:
            continue  # its instant was archived meanwhile
        except (HudiError, ValueError) as error:
            broken[entry.name] = str(error)
    temporaries = tuple(list_temporaries(storage, clock.now_ms(), table.layout))
    heartbeats = tuple(entry.name for entry in storage.list_dir(HEARTBEAT_FOLDER) if not entry.is_dir)
    kept = frozenset(time for time in markers if may_publish_late(storage, time, zone))
    return Leftovers(markers, heartbeats, tuple(storage.staged_instants()), ends, broken, temporaries, kept)


def _load_archive(table: HudiTable, present: set[str], facts: FileFacts, notes: dict[str, str]) -> Archive:
    archive = Archive()
    with _damage_noted(notes, table.archived_timeline.folder):
        for change in table.archived_timeline.read_changes():
            archive.recorded.add(change.time)
            archive.undone.update(change.undone)
            if change.metadata is None:
                continue
            archive.times.add(change.time)
            if not tells_all(change.metadata):
                archive.silent.add(change.time)
            facts.take(change)
            for stat in change.metadata.stats:
                archive.named.update(present.intersection(stat.named_paths))
            for path, file_ids in change.metadata.replaced.items():
                for file_id in file_ids:
                    archive.replaced[path, file_id] = max(change.time, archive.replaced.get((path, file_id), ""))
    return archive


def tells_all(metadata: CommitMetadata) -> bool:
    """Whether a commit names all its files: an empty one means that nothing is known, not that it has none (pure)."""
    return metadata.operation != "UNKNOWN" and all(stat.path for stat in metadata.stats)
