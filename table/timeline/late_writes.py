"""Retired writes that a compaction passed: requested before it, and completed after it was requested (layout 2).

Their log files lie above the base file of that compaction, although their times are earlier (HoodieFileGroup). The
active timeline does not say any more when they were completed. The archive does, and a compaction, a clean and a writer
have to know it: to them such a log file would seem to be folded. There are none where one writer writes the table.
"""

from collections.abc import Mapping

from table.timeline.archived_timeline import Archive
from table.timeline.instant import Action
from table.timeline.timeline import Timeline


class LateWrites:
    """Remembers what the archive of one table said, until archival moves on. For one thread."""

    def __init__(self) -> None:
        self._line: str | None = None
        self._found: Mapping[str, str] = {}

    def find(self, archive: Archive, timeline: Timeline) -> Mapping[str, str]:
        """When retired writes of this kind were completed, by the time of their request.

        The archive is read when the first write of the active timeline is another one than before.

        Args:
            archive: of the table.
            timeline: the active one, listed before the archive is read.

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
