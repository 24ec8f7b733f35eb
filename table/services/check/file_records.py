"""What timeline and archive say of the files that must be there, and of how each version continued the one before."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from table.errors import CorruptFileError
from table.files.names import parse_base_file
from table.references.losses import AcceptedLoss, left_of, load_losses
from table.services.check.chains import Break, Chains, Claim, claims_of
from table.snapshot import Snapshot
from table.timeline.active_timeline import find_instant
from table.timeline.archived_timeline import ArchivedChange
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.clustering import ClusteredSlice, decode_clustering_plan
from table.timeline.metadata.commit import CommitMetadata
from table.timeline.metadata.compaction import CompactionOperation, decode_compaction_plan
from table.timeline.named_files import NamedFile, NamedFiles, names_of

Group = tuple[str, str]  # partition path, file id
_AT_ONCE = 20_000  # files of archived commits that are held before they are folded


@dataclass(frozen=True)
class Inputs:
    """A slice that a compaction or a clustering read.

    Attributes:
        partition_path: "" in a non-partitioned table.
        file_id: file group.
        base_instant_time: of the slice; "" where it has no base file.
        names: of the files that were read.
        action: which of the two read it.
    """

    partition_path: str
    file_id: str
    base_instant_time: str
    names: frozenset[str]
    action: Action


@dataclass(frozen=True)
class FileRecords:
    """What the records say of files.

    Attributes:
        named: of each file group the newest base file, and the log files.
        broken: versions that the next write of their file group did not continue.
        rewritten: completed compaction or clustering of the timeline -> the slices that it read, by its plan.
        losses: path -> the loss that a person accepted.
        restores: times of completed restores on the timeline: what they undid is not lost.
        logs: file group -> the log files that commits of the timeline name.
    """

    named: NamedFiles = field(default_factory=NamedFiles)
    broken: tuple[Break, ...] = ()
    rewritten: Mapping[str, tuple[Inputs, ...]] = field(default_factory=dict)
    losses: Mapping[str, AcceptedLoss] = field(default_factory=dict)
    restores: tuple[str, ...] = ()
    logs: Mapping[Group, tuple[NamedFile, ...]] = field(default_factory=dict)

    def logs_of(self, path: str, file_id: str) -> tuple[NamedFile, ...]:
        """The log files of a file group that commits of the timeline name."""
        return self.logs.get((path, file_id), ())


class FileFacts:
    """Collects facts from the commits of the timeline, then from the archive, newest file first.

    Args:
        commits: completed writes of the timeline, by time.
        logs_name_slices: whether the timeline is of layout 1.
    """

    def __init__(self, commits: Mapping[str, CommitMetadata], *, logs_name_slices: bool) -> None:
        self._prunes = logs_name_slices
        self._chains = Chains(logs_name_slices=logs_name_slices)
        self._chains.add(claim for time, commit in commits.items() for claim in claims_of(time, commit))
        self.active = [file for time, commit in commits.items() for file in names_of(time, commit)]
        self._named = NamedFiles.collect(self.active, prunes=self._prunes)
        self._claims: list[Claim] = []
        self._files: list[NamedFile] = []
        self._last = ""

    def take(self, change: ArchivedChange) -> None:
        """An archived write. Within a file of the archive they come oldest first."""
        if change.metadata is None:
            return
        if change.time < self._last:  # the next, older file of the archive begins
            self._chains.add(self._claims)
            self._claims = []
        self._last = change.time
        self._claims += claims_of(change.time, change.metadata)
        self._files += names_of(change.time, change.metadata)
        if len(self._files) > _AT_ONCE:
            self._fold()

    def _fold(self) -> None:
        self._named, self._files = self._named.including(self._files, prunes=True), []

    def end(self, replaced: Mapping[Group, str]) -> tuple[NamedFiles, tuple[Break, ...]]:
        """The files that must be there, and the broken chains.

        Args:
            replaced: file group -> the archived replace commit that replaced it.
        """
        self._chains.add(self._claims)
        self._fold()
        named = self._named.where(lambda file: replaced.get((file.partition_path, file.file_id), "") <= file.time)
        broken = (one for one in self._chains.broken if replaced.get(one.lost.group, "") <= one.lost.time)
        return named, tuple(broken)


def load_file_records(
    snapshot: Snapshot, facts: FileFacts, replaced: Mapping[Group, str], notes: dict[str, str]
) -> FileRecords:
    """Loads what belongs to the facts: plans of compactions, and accepted losses.

    Args:
        snapshot: the table.
        facts: of timeline and archive.
        replaced: as of `FileFacts.end`.
        notes: gets what is wrong with damaged records.

    Raises:
        StorageError: the store fails.
    """
    named, broken = facts.end(replaced)
    losses: Mapping[str, AcceptedLoss] = {}
    try:
        losses = load_losses(snapshot.storage)
    except CorruptFileError as error:
        notes["accepted losses"] = str(error)
    restores = tuple(instant.time for instant in snapshot.timeline.completed_of(Action.RESTORE))
    logs: dict[Group, tuple[NamedFile, ...]] = {}
    for file in facts.active:
        if file.is_log:
            logs[file.partition_path, file.file_id] = (*logs.get((file.partition_path, file.file_id), ()), file)
    plans = _load_plans(snapshot, notes) if logs else {}
    return FileRecords(named.accepting(left_of(losses)), broken, plans, losses, restores, logs)


def _load_plans(snapshot: Snapshot, notes: dict[str, str]) -> Mapping[str, tuple[Inputs, ...]]:
    """The slices that completed compactions and clusterings read."""
    plans: dict[str, tuple[Inputs, ...]] = {}
    completed = snapshot.timeline.committed_times
    for request in sorted(snapshot.timeline.files):
        is_plan = request.action in _INPUTS_OF and request.state is State.REQUESTED and request.time in completed
        data = find_instant(snapshot.storage, request) if is_plan else None
        if not data:
            continue
        try:
            plans[request.time] = _INPUTS_OF[request.action](data, request)
        except CorruptFileError as error:
            notes[request.file_name] = str(error)
    return plans


def _compacted(data: bytes, request: Instant) -> tuple[Inputs, ...]:
    plan = decode_compaction_plan(data, request.file_name)
    return tuple(
        Inputs(one.partition_path, one.file_id, one.base_instant_time, _names(one), Action.COMPACTION)
        for one in plan.operations
    )


def _clustered(data: bytes, request: Instant) -> tuple[Inputs, ...]:
    plan = decode_clustering_plan(data, request.file_name)  # None: of another replace commit
    found = []
    for one in (one for group in plan.groups for one in group.slices) if plan is not None else ():
        base = parse_base_file(one.base_file) if one.base_file else None
        since = base.instant_time if base is not None else ""
        found.append(Inputs(one.partition_path, one.file_id, since, _names(one), Action.CLUSTERING))
    return tuple(found)


def _names(one: CompactionOperation | ClusteredSlice) -> frozenset[str]:
    return frozenset((*one.log_files, *([one.base_file] if one.base_file else [])))


_INPUTS_OF = {Action.COMPACTION: _compacted, Action.CLUSTERING: _clustered, Action.REPLACE_COMMIT: _clustered}
