"""Finds the log files to which a task writes the changes of its file groups, in a merge-on-read table.

The driver remembers only paths without log files. The task that writes a path with log files lists it each time.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from streaming.plan.live_files import in_order
from streaming.plan.task_plan import TaskPlan
from streaming.task.list_path import list_path
from streaming.task.log_only_keys import refuse_log_only_keys
from table.files.markers import CREATE
from table.view.file_group import BaseFile, FileGroup, FileSlice
from table.write.context import LogSlot


@dataclass(frozen=True)
class SlotGroups:
    """The file groups of a partition path.

    Attributes:
        files: base files in order of file id. With a bucket index, a group without a base file has a log file here.
        logs: file id -> where its next log file goes; empty in a copy-on-write table.
        fillable: ids of the groups that take new rows into their base file: they have no log files.
        sizes: file id -> what its slice counts for where new rows join log files; empty where they do not.
        known: the files that the driver may remember for the path; None: the path has log files.
        merged: file id -> the slice that readers merge, for groups with log files.
    """

    files: Sequence[BaseFile]
    logs: Mapping[str, LogSlot] = field(default_factory=dict)
    fillable: frozenset[str] = frozenset()
    known: tuple[BaseFile, ...] | None = None
    merged: Mapping[str, FileSlice] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def joins_logs(self) -> bool:
        """Whether new rows go to the log files of these groups."""
        return bool(self.sizes)


def plain_groups(plan: TaskPlan, known: Iterable[BaseFile]) -> SlotGroups:
    """Groups of a path that has no log files."""
    files = in_order(known)
    logs = {file.file_id: LogSlot(file.instant_time, 1, file.name) for file in files}
    if plan.committed.logs_name_writers:
        time = plan.context.instant_time
        named = plan.context.change_files is not None
        logs = {file.file_id: own_slot(time, file.name if named else "") for file in files}
    return SlotGroups(files, logs, frozenset(logs), tuple(files), sizes=_sizes_of(plan, files, {}))


def list_groups(plan: TaskPlan, path: str) -> SlotGroups:
    """The groups of a path, from a listing of its folder."""
    assert plan.logs is not None
    # on an empty timeline no file is visible, so no listing is needed
    is_empty = plan.committed.first_time is None
    found = () if is_empty else list_path(plan, path)
    takes_any = plan.changes is not None and plan.changes.is_bucket
    if plan.changes is not None and not takes_any:
        refuse_log_only_keys(plan, found)
    files = [file for group in found if (file := _file_of(group, takes_any=takes_any)) is not None]
    slots = {group.file_id: _slot_of(plan, group, plan.logs.compacting.get((path, group.file_id))) for group in found}
    fillable = frozenset(group.file_id for group in found if group.is_plain and not _is_compacting(plan, group))
    is_plain = len(fillable) == len(found)
    merged = {group.file_id: group.merged_slice for group in found if group.log_files}
    sizes = _sizes_of(plan, files, merged)
    return SlotGroups(files, slots, fillable, tuple(files) if is_plain else None, merged, sizes)


def _sizes_of(plan: TaskPlan, files: Iterable[BaseFile], merged: Mapping[str, FileSlice]) -> Mapping[str, int]:
    """File id -> what its slice counts for; empty where no new rows join log files."""
    if plan.logs is None or plan.logs.log_ratio is None:
        return {}
    logs = {file_id: sum(log.size_bytes for log in found.log_files) for file_id, found in merged.items()}
    return {file.file_id: plan.logs.size_of(file.size_bytes, logs.get(file.file_id, 0)) for file in files}


def list_fillable(plan: TaskPlan, path: str) -> tuple[BaseFile, ...]:
    """The base files of a path that may take new rows: a new base file would hide the log files of its slice."""
    found = list_groups(plan, path)
    return tuple(file for file in found.files if file.file_id in found.fillable)


def _slot_of(plan: TaskPlan, group: FileGroup, compaction: str | None) -> LogSlot:
    if not plan.committed.logs_name_writers:
        return slot_of(group, compaction)
    is_behind_plan = compaction is not None or group.latest_base_file is None
    if plan.context.change_files is None:
        return own_slot(plan.context.instant_time, is_behind_plan=is_behind_plan)
    before = group.merged_slice
    base_file = before.base_file.name if before.base_file is not None else ""
    logs = tuple(log.name for log in before.log_files)
    return own_slot(plan.context.instant_time, base_file, logs, is_behind_plan=is_behind_plan)


def own_slot(
    instant_time: str, base_file: str = "", log_files: tuple[str, ...] = (), *, is_behind_plan: bool = False
) -> LogSlot:
    """Timeline layout 2: log files are named by the commit that writes them (HoodieAppendHandle).

    The commit's completion time decides the slice to which they belong. Write stats name the files of the slice in
    tables with change files alone: Hudi's readers of changes look for the rows before a commit there.

    Args:
        instant_time: of the commit.
        base_file: as in `LogSlot`.
        log_files: as in `LogSlot`.
        is_behind_plan: as in `LogSlot`.
    """
    return LogSlot(instant_time, 1, base_file, log_files, is_behind_plan, CREATE)


def slot_of(group: FileGroup, compaction: str | None) -> LogSlot:
    """Timeline layout 1: log files are named by the slice that they belong to (HoodieAppendHandle).

    Args:
        group: the group.
        compaction: the pending compaction that reads the group; log files after its plan belong to the next slice.
    """
    # a base file that a commit wrote after the plan is newer than the slice of the compaction
    base_instant_time = max(compaction or "", group.slices[0].base_instant_time)
    mine = [log for log in group.log_files if log.base_instant_time == base_instant_time]
    base = next((file for file in group.base_files if file.instant_time == base_instant_time), None)
    return LogSlot(
        base_instant_time,
        max((log.version for log in mine), default=0) + 1,
        base.name if base is not None else "",
        tuple(log.name for log in mine),
        is_behind_plan=base is None,
    )


def _is_compacting(plan: TaskPlan, group: FileGroup) -> bool:
    assert plan.logs is not None
    return (group.partition_path, group.file_id) in plan.logs.compacting


def _file_of(group: FileGroup, *, takes_any: bool) -> BaseFile | None:
    """The group's base file. If there is none and `takes_any`, a log file in its place."""
    if group.latest_base_file is not None or not takes_any:
        return group.latest_base_file
    log = group.log_files[0]
    return BaseFile(log.partition_path, log.name, log.file_id, log.base_instant_time, log.size_bytes)
