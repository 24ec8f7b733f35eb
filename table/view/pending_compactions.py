"""File groups that pending compactions read, from their plans (CompactionUtils.getAllPendingCompactionOperations)."""

from collections.abc import Iterable
from dataclasses import dataclass

from table.storage.interface import Storage
from table.timeline.active_timeline import find_instant
from table.timeline.instant import Instant, State
from table.timeline.metadata.compaction import decode_compaction_plan


@dataclass(frozen=True, slots=True)
class CompactingSlice:
    """A slice that a pending compaction reads.

    Attributes:
        time: instant of the compaction, which is the base instant of the next slice.
        base_instant_time: base instant of the slice that it reads.
        files: names of the files that the compaction reads.
    """

    time: str
    base_instant_time: str
    files: frozenset[str] = frozenset()


def load_compacting(storage: Storage, pending: Iterable[Instant]) -> dict[tuple[str, str], CompactingSlice]:
    """(partition path, file id) -> the slice that a pending compaction reads.

    Args:
        pending: pending compactions, and log compactions if the caller wants them.

    Raises:
        CorruptFileError: a plan cannot be read.
    """
    found = {}
    for instant in pending:
        plan = instant.at(State.REQUESTED)
        data = find_instant(storage, plan)
        if data is None:
            continue  # carried out and archived since the timeline was listed
        for operation in decode_compaction_plan(data, plan.file_name).operations:
            key = operation.partition_path, operation.file_id
            files = frozenset((*operation.log_files, *([operation.base_file] if operation.base_file else [])))
            found[key] = CompactingSlice(instant.time, operation.base_instant_time, files)
    return found
