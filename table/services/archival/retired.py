"""The records that an archival reads before it decides which files may be deleted.

Every deletion rests on these records. A missing record means that the plan is outdated. It never means that a commit
wrote nothing, or that a rollback deleted nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from table import clock
from table.errors import CorruptFileError
from table.services.archival.plan import ArchivalPlan
from table.snapshot import Snapshot
from table.timeline.active_timeline import read_instant
from table.timeline.archived_timeline import RetiredFile
from table.timeline.instant import WRITE_ACTIONS, Action, Instant
from table.timeline.metadata.rollback import RollbackMetadata, decode_rollback_metadata


@dataclass(frozen=True)
class Retired:
    """The records of the instants that are to be retired.

    Attributes:
        files: every file of the plan's instants, by instant, lowest state first.
        named: time of each commit of the plan -> the paths of the files that it wrote.
        paths: time of each commit of the plan -> the partition paths that it wrote to.
        rollbacks: every completed rollback of the timeline, and what it did.
    """

    files: tuple[RetiredFile, ...]
    named: Mapping[str, frozenset[str]]
    paths: Mapping[str, frozenset[str]]
    rollbacks: Mapping[Instant, RollbackMetadata]


def read_retired(snapshot: Snapshot, plan: ArchivalPlan, check: Callable[[], None] = lambda: None) -> Retired:
    """Reads every file of a plan, and every completed rollback.

    Args:
        snapshot: the table that the plan was made from.
        plan: what is to be retired.
        check: called before each read; may raise.

    Raises:
        TimelineMovedError: a file is not there any more: the plan is outdated.
        CorruptFileError: a file is damaged, or a completed write or rollback is empty: it proves nothing.
    """
    storage = snapshot.storage
    modified = {entry.name: entry.modified_ms for entry in storage.list_dir(snapshot.layout.names.folder)}
    files, named, paths = [], dict[str, frozenset[str]](), dict[str, frozenset[str]]()
    for instant in plan.instants:
        for file in snapshot.timeline.files_of(instant.time, instant.action):
            check()
            data = read_instant(storage, file)
            moved_ms = modified.get(file.file_name, clock.now_ms())
            if file.is_completed and file.action in WRITE_ACTIONS:
                commit = snapshot.commits.decode(file, data)
                substitute = snapshot.commits.damaged.get(file)
                data = _filled(file, data) if substitute is None else substitute.encode(file, snapshot.layout)
                # a metadata table may have a delta commit and a compaction of one time
                named[file.time] = named.get(file.time, frozenset()) | commit.named_paths
                paths[file.time] = paths.get(file.time, frozenset()) | {stat.partition_path for stat in commit.stats}
            files.append(RetiredFile(file, data, clock.format_instant_time(moved_ms, snapshot.config.timezone)))
    return Retired(tuple(files), named, paths, _read_rollbacks(snapshot, check))


def _read_rollbacks(snapshot: Snapshot, check: Callable[[], None]) -> Mapping[Instant, RollbackMetadata]:
    rollbacks = {}
    for rollback in snapshot.timeline.completed_of(Action.ROLLBACK):
        check()
        data = _filled(rollback, read_instant(snapshot.storage, rollback))
        rollbacks[rollback] = decode_rollback_metadata(data, rollback.file_name)
    return rollbacks


def _filled(instant: Instant, data: bytes) -> bytes:
    if not data.strip():
        raise CorruptFileError(
            f"{instant.file_name} is empty, so that it is not known what it did: nothing is archived until it is whole "
            "or undone (`hudistream check`)"
        )
    return data
