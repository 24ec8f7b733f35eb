"""What timeline and archive say of the files that must be there, and of how each version continued the one before."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from table.errors import CorruptFileError
from table.references.losses import AcceptedLoss, load_losses
from table.services.check.chains import Break, Chains, Claim, claims_of
from table.snapshot import Snapshot
from table.timeline.active_timeline import find_instant
from table.timeline.archived_timeline import ArchivedChange
from table.timeline.instant import Action, State
from table.timeline.layout import name_instant
from table.timeline.metadata.commit import CommitMetadata
from table.timeline.metadata.compaction import CompactionPlan, decode_compaction_plan
from table.timeline.named_files import NamedFile, NamedFiles, names_of

Group = tuple[str, str]  # partition path, file id
_AT_ONCE = 20_000  # files of archived commits that are held before they are folded


@dataclass(frozen=True)
class FileRecords:
    """What the records say of files.

    Attributes:
        named: of each file group the newest base file, and the log files.
        broken: versions that the next write of their file group did not continue.
        compacted: completed compaction of the timeline -> its plan, where that is still there.
        losses: path -> the loss that a person accepted.
        restores: times of completed restores on the timeline: what they undid is not lost.
        logs: file group -> the log files that commits of the timeline name.
    """

    named: NamedFiles = field(default_factory=NamedFiles)
    broken: tuple[Break, ...] = ()
    compacted: Mapping[str, CompactionPlan] = field(default_factory=dict)
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
    left = {path: loss.left_bytes for path, loss in losses.items()}
    logs: dict[Group, tuple[NamedFile, ...]] = {}
    for file in facts.active:
        if file.is_log:
            logs[file.partition_path, file.file_id] = (*logs.get((file.partition_path, file.file_id), ()), file)
    plans = _load_plans(snapshot, notes) if logs else {}
    return FileRecords(named.accepting(left), broken, plans, losses, restores, logs)


def _load_plans(snapshot: Snapshot, notes: dict[str, str]) -> Mapping[str, CompactionPlan]:
    """The plans of completed compactions."""
    plans: dict[str, CompactionPlan] = {}
    for instant in _compactions(snapshot):
        request = name_instant(snapshot.layout, instant, Action.COMPACTION, State.REQUESTED)
        data = find_instant(snapshot.storage, request)
        try:
            if data:
                plans[instant] = decode_compaction_plan(data, request.file_name)
        except CorruptFileError as error:
            notes[request.file_name] = str(error)
    return plans


def _compactions(snapshot: Snapshot) -> Iterable[str]:
    files = snapshot.timeline.files
    requested = {file.time for file in files if file.action is Action.COMPACTION and file.state is State.REQUESTED}
    return sorted(requested & snapshot.timeline.committed_times)
