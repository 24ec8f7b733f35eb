"""The contents of a table: timeline, partition paths, file groups, sizes. Reads no data; `table.cli.show` prints it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

from table.errors import CorruptFileError
from table.hudi_table import HudiTable
from table.snapshot import SERVICE_OPERATIONS, Snapshot
from table.timeline.instant import WRITE_ACTIONS, Action, Instant
from table.timeline.metadata.commit_totals import CommitTotals
from table.view.file_group import BaseFile, FileGroup


@dataclass(frozen=True)
class CommitFigures:
    """The figures of one commit, from its metadata.

    Attributes:
        operation: Hudi's name of the operation: ``INSERT``, ``UPSERT``, ``BULK_INSERT`` …
        rows_added: records that the table did not have before.
        rows_updated: records that replaced older ones.
        rows_deleted: records that were deleted.
        files: base files written.
        bytes_written: size of these files.
        schema: the table's columns as the commit names them (Avro); "" if the commit names none.
    """

    operation: str
    rows_added: int
    rows_updated: int
    rows_deleted: int
    files: int
    bytes_written: int
    schema: str = ""

    @property
    def as_history(self) -> dict[str, Any]:
        """As columns of `table.inspect.contents.HISTORY`."""
        return {
            "operation": self.operation,
            "rows_added": self.rows_added,
            "rows_updated": self.rows_updated,
            "rows_deleted": self.rows_deleted,
            "files_written": self.files,
            "bytes_written": self.bytes_written,
        }


@dataclass(frozen=True)
class TableOverview:
    """The facts that `hudistream show` shows.

    Attributes:
        name: name of the table.
        version: ``hoodie.table.version``.
        table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
        instants: the active timeline, oldest first.
        commits: instant time -> figures, for the newest completed writes.
        partitions: partition path -> its file groups.
        replaced: file groups that replace commits replaced, and whose files are still there.
    """

    name: str
    version: int
    table_type: str
    instants: tuple[Instant, ...]
    commits: Mapping[str, CommitFigures]
    partitions: dict[str, tuple[FileGroup, ...]]
    replaced: tuple[FileGroup, ...] = ()

    @property
    def live_files(self) -> int:
        """Base files that a snapshot reader opens."""
        return sum(group.latest_slice.base_file is not None for groups in self.partitions.values() for group in groups)

    @property
    def total_files(self) -> int:
        """Number of base files, older versions and replaced ones included."""
        return len(self._every_base)

    @property
    def live_bytes(self) -> int:
        """Bytes of the live files."""
        newest = [group.latest_slice.base_file for groups in self.partitions.values() for group in groups]
        return sum(file.size_bytes for file in newest if file is not None)

    @property
    def total_bytes(self) -> int:
        """Bytes of all base files."""
        return sum(file.size_bytes for file in self._every_base)

    @property
    def _every_base(self) -> list[BaseFile]:
        return [file for group in chain(*self.partitions.values(), self.replaced) for file in group.base_files]


def load_overview(
    path: str, storage_options: Mapping[str, Any] | None = None, commits_read: int | None = None
) -> TableOverview:
    """Reads an overview: one listing per folder, and one small file per commit whose figures are wanted.

    Args:
        path: a folder or an address.
        storage_options: options for fsspec.
        commits_read: number of newest instants whose figures are read; None: all.

    Raises:
        TableNotFoundError: when there is no table.
    """
    table = HudiTable.open(path, storage_options)
    snapshot = Snapshot.load(table)
    partitions, replaced = dict[str, tuple[FileGroup, ...]](), list[FileGroup]()
    for partition_path, entries in sorted(snapshot.listing.walk(), key=lambda found: found[0]):
        partitions[partition_path] = snapshot.group_files(partition_path, entries)
        replaced += snapshot.replaced_groups(partition_path, entries)
    instants, config = snapshot.timeline.instants, table.config
    figures = read_figures(snapshot, instants[::-1][:commits_read])
    return TableOverview(config.name, config.version, config.table_type, instants, figures, partitions, tuple(replaced))


def mark_savepoints(instants: Sequence[Instant]) -> tuple[tuple[Instant, ...], frozenset[str]]:
    """A savepoint is a mark at its commit, and no instant beside it (pure).

    Args:
        instants: of a timeline, in any order.

    Returns:
        The instants without savepoints whose commit is among them; and the times of the commits that have one.
    """
    saved = {i.time for i in instants if i.action is Action.SAVEPOINT and i.is_completed}
    marked = frozenset(i.time for i in instants if i.action is not Action.SAVEPOINT and i.time in saved)
    return tuple(i for i in instants if i.action is not Action.SAVEPOINT or i.time not in marked), marked


def read_figures(snapshot: Snapshot, instants: Sequence[Instant]) -> dict[str, CommitFigures]:
    """Instant time -> figures, for the completed writes among some instants. Damaged commits are skipped."""
    figures = {}
    for instant in instants:
        if not instant.is_completed or instant.action not in WRITE_ACTIONS:
            continue
        with suppress(CorruptFileError):  # `hudistream check` reports the damage
            commit = snapshot.commits.find_totals(instant)
            if commit is not None:  # None: the commit was archived after the timeline was listed
                figures[instant.time] = _figures_of(commit)
    return figures


def _figures_of(commit: CommitTotals) -> CommitFigures:
    # a service writes rows that the table has: its stats count them as inserts
    rows = (0, 0, 0) if commit.operation in SERVICE_OPERATIONS else (commit.inserts, commit.updates, commit.deletes)
    return CommitFigures(
        commit.operation,
        *rows,
        commit.files,
        commit.size_bytes,
        "" if commit.compacted else commit.extra.get("schema", ""),
    )
