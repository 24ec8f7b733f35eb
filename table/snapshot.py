"""Snapshot: what readers of a table see, now or as of an earlier instant. Made of one listing of the timeline."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property

import pyarrow as pa

from table.errors import InvalidConfigError
from table.hudi_table import HudiTable
from table.storage.interface import FileInfo
from table.timeline.commit_cache import CommitCache
from table.timeline.instant import Action
from table.timeline.timeline import Timeline
from table.view.file_group import CommittedInstants, FileGroup, group_files, parse_data_files, unknown_completions


class Snapshot:
    """Schema, visible instants, partitions and file groups of a table, all from the same timeline.

    A scan is made of one snapshot; a range of changes will be made of two.

    Args:
        table: the table.
        timeline: as loaded.
        as_of: instant time of the last write that is seen; None means all that are completed.
        commits: decoded commits of this table, where the caller keeps them.

    Attributes:
        table: the table.
        timeline: the instants up to `as_of`.
        as_of: as given.
        cleans: instant times of all completed cleans, later ones included.

    Raises:
        InvalidConfigError: the active timeline begins after `as_of`: what was seen then is not known any more.
    """

    def __init__(
        self, table: HudiTable, timeline: Timeline, as_of: str | None = None, commits: CommitCache | None = None
    ) -> None:
        first = timeline.first_active_time
        if as_of is not None and first is not None and as_of < first:
            raise InvalidConfigError(
                f"the table has no snapshot of {as_of}: earlier commits than {first} were archived, and their files "
                f"may have been cleaned; ask for {first} or later"
            )
        self.table, self.as_of = table, as_of
        self.cleans = frozenset(instant.time for instant in timeline.completed_of(Action.CLEAN))
        self.timeline = timeline if as_of is None else timeline.until(as_of)
        self._commits = commits if commits is not None else table.open_commits()
        self._retired: dict[str, str] = {}  # times of completion of retired writes, as they are needed

    @staticmethod
    def load(table: HudiTable, as_of: str | None = None) -> "Snapshot":
        """The snapshot of the timeline as it is now; the arguments are those of `Snapshot`."""
        return Snapshot(table, table.load_timeline(), as_of)

    @cached_property
    def committed(self) -> CommittedInstants:
        """Which files are visible. Reads the replace commits, once."""
        return self.table.load_committed(self.timeline, self._commits)

    def load_schema(self) -> pa.Schema | None:
        """The table's columns without meta columns (Arrow), or None when nothing was written yet."""
        return self.table.load_schema(self.timeline, self._commits)

    def list_partition_paths(self) -> list[str]:
        """Every partition that there is now, sorted; one may hold no file that is visible."""
        return self.table.listing.list_partition_paths()

    def list_file_groups(self, partition_path: str) -> tuple[FileGroup, ...]:
        """File groups of one partition, in order of file id."""
        return self._group(partition_path, self.table.listing.list_files(partition_path))

    def walk_file_groups(self) -> Iterator[tuple[str, tuple[FileGroup, ...]]]:
        """Every partition path with its file groups, in no order; each folder is listed once."""
        for path, entries in self.table.listing.walk():
            yield path, self._group(path, entries)

    def _group(self, partition_path: str, entries: Iterable[FileInfo]) -> tuple[FileGroup, ...]:
        """File groups of a partition. The archive is asked where the order of retired writes decides (layout 2)."""
        bases, logs = parse_data_files(partition_path, entries)
        unknown = unknown_completions(bases, logs, self.committed) - self._retired.keys()
        if unknown:
            # what the archive does not know either is taken to be completed when it was requested
            self._retired.update({time: time for time in unknown})
            self._retired.update(self.table.archived_timeline.find_completions(unknown))
        committed = self.committed
        if self._retired:
            committed = replace(committed, completions={**committed.completions, **self._retired})
        return group_files(partition_path, bases, logs, committed)
