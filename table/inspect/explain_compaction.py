"""When a compaction takes a file of a merge-on-read table, and why."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from table.config.table_config import TableConfig
from table.options.choices import CompactionTrigger, TableType
from table.options.groups import CompactionSettings
from table.services.compaction.due import make_due
from table.services.compaction.plan import commits_since_compaction, plan_compaction
from table.snapshot import Snapshot
from table.timeline.instant import Action
from table.timeline.timeline import Timeline
from table.view.file_group import FileGroup
from table.view.pending_compactions import CompactingSlice, load_compacting


def explain_compactions(
    snapshot: Snapshot, groups: Iterable[FileGroup], settings: CompactionSettings
) -> dict[str, str]:
    """Path of each file of a current slice -> when a compaction takes it, and why. Empty for copy-on-write tables.

    Args:
        groups: file groups of the newest snapshot.
        settings: when a compaction is due, and how much it takes.

    Raises:
        CorruptFileError: the plan of a pending compaction cannot be read.
    """
    if not has_compactions(snapshot.config):
        return {}
    found = list(groups)
    next_one, pending = _find_next(snapshot, found, settings)
    return {
        file.path: next_one.tell(group, file.path, pending.get((group.partition_path, group.file_id)))
        for group in found
        for file in group.current_files
    }


def list_next_compaction(
    snapshot: Snapshot, groups: Iterable[FileGroup], settings: CompactionSettings
) -> list[tuple[str, int, int, str]]:
    """The slices that a requested compaction folds, or else the next one takes. Empty for copy-on-write tables.

    Args:
        groups: file groups of the newest snapshot.
        settings: when a compaction is due, and how much it takes.

    Returns:
        (partition path and file id, number of log files, their bytes, when it is folded) of each slice.

    Raises:
        CorruptFileError: the plan of a pending compaction cannot be read.
    """
    if not has_compactions(snapshot.config):
        return []
    found = list(groups)
    next_one, pending = _find_next(snapshot, found, settings)
    listed = []
    for group in found:
        key = (group.partition_path, group.file_id)
        compacting = pending.get(key)
        if compacting is None and key not in next_one.chosen:
            continue
        why = next_one.when if compacting is None else f"the compaction {compacting.time} is requested, and folds it"
        logs = group.merged_slice.log_files
        listed.append(("/".join(filter(None, key)), len(logs), sum(log.size_bytes for log in logs), why))
    return listed


def has_compactions(config: TableConfig) -> bool:
    """Whether a table has log files that compactions fold."""
    return config.table_type == TableType.MERGE_ON_READ


def tell_when(timeline: Timeline, settings: CompactionSettings) -> str:
    """When the next compaction is requested (pure)."""
    commits = commits_since_compaction(timeline)
    if make_due(commits, settings):
        return "a compaction is due, and takes it"
    reached = f"{len(commits)} delta commits since the last compaction"
    if settings.trigger is CompactionTrigger.NUM_COMMITS:
        return f"{reached}: the next one takes it after {settings.delta_commits}"
    bounds = f"{settings.delta_commits} commits, {settings.delta_seconds} seconds"
    return f"{reached}: the next one takes it when it is due ({settings.trigger.value}: {bounds})"


def _find_next(
    snapshot: Snapshot, groups: list[FileGroup], settings: CompactionSettings
) -> tuple["_Next", Mapping[tuple[str, str], CompactingSlice]]:
    """The next compaction, and what requested ones fold: (partition path, file id) -> slice."""
    pending = load_compacting(snapshot.storage, snapshot.timeline.pending_of(Action.COMPACTION, Action.LOG_COMPACTION))
    chosen = frozenset((o.partition_path, o.file_id) for o in plan_compaction(groups, settings).operations)
    return _Next(tell_when(snapshot.timeline, settings), chosen), pending


@dataclass(frozen=True)
class _Next:
    """The compaction that would be requested next.

    Attributes:
        when: the time of the request, in words.
        chosen: (partition path, file id) of the file groups that it would take.
    """

    when: str
    chosen: frozenset[tuple[str, str]]

    def tell(self, group: FileGroup, path: str, compacting: CompactingSlice | None) -> str:
        """When a compaction takes one file of a group, and why."""
        newest = group.slices[0]
        if compacting is not None:
            if path.rpartition("/")[2] in compacting.files:
                return f"the compaction {compacting.time} is requested, and folds it"
            return f"it was written after the compaction {compacting.time}: a later one folds it"
        if not newest.log_files:
            return "no: its slice has no log files"
        if (group.partition_path, group.file_id) not in self.chosen:
            return "not in the next one: hoodie.compaction.strategy or hoodie.compaction.target.io leaves it out"
        return self.when
