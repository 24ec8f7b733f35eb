"""Tells a stray data file from the others (pure). Archival, check, repair and readers decide by these rules.

A stray is a file of an instant whose outcome is known and whose commit, if there is one, does not name it. Deletion
needs proof: a file that no record names is no stray. A commit that deletes the files of its own failed attempts
needs no more than its write stats (`delete_strays`).
"""

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum

from table.errors import StorageError
from table.files.log.instants import LogInstants
from table.files.names import parse_log_file
from table.view.file_group import BaseFile, CommittedInstants, LogFile


class Claim(Enum):
    """What the records say of a file, or of an instant's blocks in it."""

    WANTED = "a commit or an end record names it, or its instant may still name it"
    UNPROVEN = "readers count it, and no record tells whether a commit wrote it"
    BESIDE_COMMIT = "its commit is on the timeline and does not name it: readers see it"
    BELOW_LINE = "its instant has left the timeline and does not name it: readers see it"
    BEYOND_LINE = "its instant is not completed: readers do not see it until the line of visibility passes it"


@dataclass(frozen=True)
class Records:
    """What timeline and archive say of the instants that wrote files.

    Attributes:
        committed: the instants that readers count.
        named: completed write of the timeline -> paths of the files that it names; commits that cannot be read are
            missing.
        silent: completed writes whose records do not name all their files.
        pending: instants whose outcome is open, also where a damaged end record decides it.
        undone: instants that rollbacks undo or have undone.
        archived: completed writes in the archive.
        archived_paths: paths of the files that these name.
        decided: instant whose own files were lost -> paths of the files that its end record "commit" names. Nothing
            undid the instant.
    """

    committed: CommittedInstants
    named: Mapping[str, AbstractSet[str]]
    silent: AbstractSet[str]
    pending: AbstractSet[str]
    undone: AbstractSet[str]
    archived: AbstractSet[str]
    archived_paths: AbstractSet[str]
    decided: Mapping[str, AbstractSet[str]] = field(default_factory=dict)


def judge(path: str, time: str, records: Records) -> Claim:
    """What the records say of a file.

    Args:
        path: path of the base file, or of a log file, relative to the table.
        time: the instant that wrote the base file, or blocks of the log file.
        records: what timeline and archive say.
    """
    if path in records.named.get(time, ()) or path in records.decided.get(time, ()):
        return Claim.WANTED
    if time in records.committed.times:
        return _judge_committed(time, records)
    if time in records.pending:
        return Claim.WANTED
    if records.committed.includes(time):
        return _judge_below_line(path, time, records)
    return Claim.WANTED if time in records.archived else Claim.BEYOND_LINE


def _judge_committed(time: str, records: Records) -> Claim:
    if time in records.silent:
        return Claim.UNPROVEN
    is_read = time in records.named  # else it cannot be read, or was archived since
    return Claim.BESIDE_COMMIT if is_read else Claim.WANTED


def _judge_below_line(path: str, time: str, records: Records) -> Claim:
    if path in records.archived_paths:
        return Claim.WANTED
    is_known = time in records.archived or time in records.undone
    return Claim.BELOW_LINE if is_known and time not in records.silent else Claim.UNPROVEN


def is_decided(time: str, records: Records) -> bool:
    """Whether it is known which files of an instant count. Those of a pending instant are not known."""
    if time in records.committed.times:
        return time in records.named and time not in records.silent
    if time in records.pending:
        return False
    line = records.committed.first_time
    if time in records.undone or line is None or time > line:
        return True
    return time in records.archived and time not in records.silent


def find_turning_files(
    files: Iterable[BaseFile], named: Mapping[str, AbstractSet[str]], first: str, line: str
) -> list[BaseFile]:
    """Base files that would turn visible when the line of visibility moves, and that no commit names.

    Args:
        files: the base files of a partition.
        named: commit time -> paths that it names, for the commits that the line passes.
        first: the line now; older files count already.
        line: the new line.
    """
    passed = (file for file in files if first <= file.instant_time < line)
    return [file for file in passed if file.path not in named.get(file.instant_time, ())]


def find_turning_logs(
    found: Mapping[LogFile, LogInstants], completed: Collection[str], first: str, line: str
) -> Mapping[str, frozenset[str]]:
    """Log files whose blocks would count when the line of visibility moves, and that no commit wrote.

    A block counts once its instant is older than the line. A block that a rollback block takes back never counts.

    Args:
        found: what the blocks of the log files of a partition say; without files that commits name.
        completed: times of completed writes.
        first: the line now.
        line: the new line.

    Returns:
        Path of each log file -> the instants whose blocks would count.

    Raises:
        StorageError: such a block is in one file with blocks of commits.
    """
    taken_back: dict[str, set[str]] = {}
    for log, instants in found.items():
        taken_back.setdefault(log.file_id, set()).update(instants.targets)
    strays = {}
    for log, instants in found.items():
        lost = {time for time in instants.writers if first <= time < line and time not in completed}
        if not lost - taken_back[log.file_id]:
            continue
        if instants.writers - lost or instants.targets:
            raise StorageError(
                f"{log.path} holds blocks of {min(lost)}, which is not on the timeline, beside those of others: let "
                "Hudi compact its file group (`compaction`); until then nothing is archived"
            )
        strays[log.path] = frozenset(lost)
    return strays


def is_surely_stray(file: LogFile, written: Collection[str], committed: CommittedInstants) -> bool:
    """Whether it is certain that no visible write wrote a log file of timeline layout 1.

    It is certain only if every write that may have written the file is on the active timeline: the slice began there,
    or one of these writes wrote a log file of a lower version. Versions ascend.

    Args:
        file: the log file.
        written: paths of the files in the write stats of the visible writes on the active timeline.
        committed: which writes are visible.
    """
    if file.path in written:
        return False
    if committed.first_time is not None and file.base_instant_time >= committed.first_time:
        return True
    names = (parse_log_file(path.rpartition("/")[2]) for path in written)
    found = (name for name in names if name is not None and name.file_id == file.file_id)
    return any(name.base_instant_time == file.base_instant_time and name.version < file.version for name in found)
