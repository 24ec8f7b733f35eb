"""Retired writes that a compaction passed: requested before it, completed after its request (layout 2).

Their log files belong above the base file of that compaction, although their times are earlier (HoodieFileGroup).
Their completion times are no longer on the active timeline, only in the archive. A compaction, a clean and a writer
need these times: without them, such a log file would seem to be merged into the base file already. If only one writer
writes the table, there are no such writes.
"""

from collections.abc import Mapping

from table.timeline.archived_timeline import Archive
from table.timeline.instant import Action
from table.timeline.timeline import Timeline


class LateWrites:
    """The late writes of one table, kept until archival retires more instants. For one thread."""

    def __init__(self) -> None:
        self._line: str | None = None
        self._found: Mapping[str, str] = {}

    def find(self, archive: Archive, timeline: Timeline) -> Mapping[str, str]:
        """Request time -> completion time of the late writes.

        Reads the archive if the first write of the active timeline is not the same as in the last call.

        Args:
            timeline: the active timeline, listed before the archive is read.

        Raises:
            CorruptFileError: a file of the archive is damaged.
        """
        line = timeline.first_active_time
        if line is None or not timeline.layout.completes_in_order:
            return {}
        if line != self._line:
            requests = {file.time for file in timeline.files if file.action in (Action.COMPACTION, Action.COMMIT)}
            self._found = archive.find_passed(requests, since=self._line or "", known=self._found)
            self._line = line
        return self._found
