"""Whether a partition path has the files that the commits name: current base files and log files (pure).

A base file that a commit wrote has the size that its write stat says. A log file has at least that size, because other
writers append to it, and rollbacks do. A file that is gone or shorter is damage: the slice that is left is an older
truth.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from table.errors import LostDataError
from table.files.names import parse_log_file
from table.timeline.named_files import NamedFile
from table.view.file_group import BaseFile, CommittedInstants, DataFile, LogFile, base_file_of, group_files


@dataclass(frozen=True)
class LostFile:
    """A file that a commit names, and that is gone or differs.

    Attributes:
        named: as the newest commit that wrote it names it.
        size_bytes: of the file that is there; None: there is none.
    """

    named: NamedFile
    size_bytes: int | None

    def __str__(self) -> str:
        """The file, its commit, and what is wrong."""
        named = self.named
        if self.size_bytes is None:
            wrong = "is not there"
        else:
            wrong = f"has {self.size_bytes:,} bytes, not {'at least ' * named.is_log}{named.size_bytes:,}"
        return f"{named.path}, which commit {named.time} wrote with {named.rows:,} rows, {wrong}"


def find_lost(
    partition_path: str, base_files: Sequence[BaseFile], log_files: Sequence[LogFile], committed: CommittedInstants
) -> Iterator[LostFile]:
    """The files that readers of the newest snapshot need, and that are gone or differ from what their commit says.

    Args:
        partition_path: "" in a non-partitioned table.
        base_files: all of the partition path.
        log_files: all of the partition path.
        committed: which instants count, and the files that they name. File groups whose newest write was archived
            are not judged.
    """
    groups = committed.named.of(partition_path) if committed.named is not None else {}
    there: dict[str, DataFile] = {file.name: file for file in base_files} if groups else {}
    there.update((file.name, file) for file in log_files)
    for file_id, files in groups.items():
        if committed.is_replaced(partition_path, file_id):
            continue
        wrong = [file for file in files if not _fits(file, there)]
        if wrong:
            mine = [file for file in there.values() if file.file_id == file_id]
            current = _current_names(partition_path, mine, files, committed)
            for file in wrong:
                if file.name in current:
                    found = there.get(file.name)
                    yield LostFile(file, None if found is None else found.size_bytes)


def _fits(file: NamedFile, there: dict[str, DataFile]) -> bool:
    found = there.get(file.name)
    if found is None:
        # the slice that a compaction folded shows the same rows: a restore brought it back after a clean
        return bool(file.folded) and file.folded in there
    if not file.size_bytes:
        return True
    return found.size_bytes >= file.size_bytes if file.is_log else found.size_bytes == file.size_bytes


def _current_names(
    partition_path: str, there: Iterable[DataFile], named: Iterable[NamedFile], committed: CommittedInstants
) -> frozenset[str]:
    """The files of one file group that a reader would open if all were there."""
    files = {file.name: _as_file(file) for file in named}
    files.update((file.name, file) for file in there)
    bases = [file for file in files.values() if isinstance(file, BaseFile)]
    logs = [file for file in files.values() if isinstance(file, LogFile)]
    current: set[str] = set()
    for group in group_files(partition_path, bases, logs, committed):
        newest = group.latest_base_file
        current.update(file.name for file in group.current_files)
        # a failed attempt may have left a second base file of the same instant
        current.update(file.name for file in group.base_files if newest and file.instant_time == newest.instant_time)
    return frozenset(current)


def _as_file(named: NamedFile) -> DataFile:
    log = parse_log_file(named.name)
    if log is not None:
        return LogFile(
            named.partition_path,
            named.name,
            log.file_id,
            log.base_instant_time,
            log.version,
            log.write_token,
            log.suffix,
            named.size_bytes,
        )
    return base_file_of(named.partition_path, named.name, named.size_bytes)  # `names_of` takes no other file


def lost_error(lost: Sequence[LostFile], address: str = "") -> LostDataError:
    """The error for files that are gone or differ.

    Args:
        lost: at least one.
        address: of the table.
    """
    table = f"the table at {address!r} has lost data" if address else "the table has lost data"
    more = f" (and {len(lost) - 1} more files)" if len(lost) > 1 else ""
    return LostDataError(
        f"{table}: {lost[0]}{more}. Nothing is built on what is left. Put the file back from a copy; or restore a "
        "savepoint (`hudistream savepoint restore`); or go on without these rows: `hudistream accept-loss PATH` says "
        "what is lost, and records that it is accepted"
    )
