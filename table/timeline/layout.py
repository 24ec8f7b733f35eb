"""Timeline layouts: the folder and names of instant files, the encoding of commits, and the archive.

The table property ``hoodie.timeline.layout.version`` names the layout. Table version 6 has layout 1, table versions 8
and 9 have layout 2. To add a layout, write a class like `CompletionTimeLayout` and enter it in `_LAYOUTS`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from table import clock
from table.errors import UnsupportedTableError
from table.storage.interface import METAFOLDER, Storage, join
from table.timeline.archive_log import LogArchive
from table.timeline.archived_timeline import Archive
from table.timeline.history import HistoryArchive
from table.timeline.instant import REQUEST_TIME_NAMES, Action, CompletionTimeNames, Instant, InstantNames, State
from table.timeline.metadata.avro_commit import encode_avro_commit
from table.timeline.metadata.commit import CommitMetadata, encode_commit


class TimelineLayout(Protocol):
    """What differs between the layouts of a timeline (TimelineLayout, TimelineFactory)."""

    @property
    def version(self) -> int:
        """The value of ``hoodie.timeline.layout.version``."""

    @property
    def names(self) -> InstantNames:
        """The folder of the instants, and how their files are named."""

    @property
    def completes_in_order(self) -> bool:
        """Whether instants are ordered by completion: then no pending write gets a place among completed ones."""

    def visible_since(self, instant: Instant) -> str:
        """The time by which completed instants are ordered: an instant did not see instants of later times."""

    def choose_completion(self, last_time: str | None, time: str, now_ms: int, zone: str) -> str | None:
        """The completion time of an instant that is completed now; None where file names do not contain it.

        Args:
            last_time: the greatest time of the timeline, of a request or of a completion (`Timeline.last_time`).
            time: request time of the instant.
            now_ms: milliseconds since the epoch.
            zone: the table's, ``UTC`` or ``LOCAL``.

        Raises:
            InvalidConfigError: the timeline is ahead of this machine's clock.
        """

    def encode_commit(self, metadata: CommitMetadata, *, replaces: bool = False) -> bytes:
        """Content of the file of a commit, delta commit or replace commit, inflight or completed.

        Args:
            metadata: of the completed or pending commit.
            replaces: whether it is a completed replace commit.
        """

    def open_archive(self, storage: Storage, folder: str) -> Archive:
        """Opens the archive of retired instants.

        Args:
            folder: `TableConfig.archive_folder` of the table.
        """


class RequestTimeLayout:
    """Layout 1: ``.hoodie/``, names and order by request time, commits in JSON, an archive log."""

    version = 1
    completes_in_order = False
    names: InstantNames = REQUEST_TIME_NAMES

    def visible_since(self, instant: Instant) -> str:
        """The request time: the layout has no other time."""
        return instant.time

    def choose_completion(self, last_time: str | None, time: str, now_ms: int, zone: str) -> None:
        """None: file names contain only the request time."""

    def encode_commit(self, metadata: CommitMetadata, *, replaces: bool = False) -> bytes:  # noqa: ARG002 as `TimelineLayout`
        """JSON, the same for every action."""
        return encode_commit(metadata)

    def open_archive(self, storage: Storage, folder: str) -> Archive:
        """The archive log, below ``.hoodie``."""
        return LogArchive(storage, join(METAFOLDER, folder))


@dataclass(frozen=True)
class CompletionTimeLayout:
    """Layout 2: ``.hoodie/timeline/``, names and order by completion time, commits in Avro, an LSM history.

    Attributes:
        timeline_folder: ``hoodie.timeline.path``, below ``.hoodie``.
    """

    timeline_folder: str = "timeline"
    version = 2
    completes_in_order = True

    @property
    def names(self) -> InstantNames:
        """Names in the timeline folder. Names of completed files contain both times."""
        return CompletionTimeNames(join(METAFOLDER, self.timeline_folder))

    def visible_since(self, instant: Instant) -> str:
        """The completion time; the request time for an instant without one (moved here from layout 1)."""
        return instant.completion_time or instant.time

    def choose_completion(self, last_time: str | None, time: str, now_ms: int, zone: str) -> str:
        """A time greater than every time on the timeline, and than the request time."""
        return clock.next_instant_time(max(last_time or "", time), now_ms, zone)

    def encode_commit(self, metadata: CommitMetadata, *, replaces: bool = False) -> bytes:
        """Avro."""
        return encode_avro_commit(metadata, replaces=replaces)

    def open_archive(self, storage: Storage, folder: str) -> Archive:
        """The history, below the folder of the instants."""
        return HistoryArchive(storage, join(self.names.folder, folder))


LAYOUT_1: TimelineLayout = RequestTimeLayout()
LAYOUT_2: TimelineLayout = CompletionTimeLayout()
_LAYOUTS: Mapping[int, Callable[[str], TimelineLayout]] = MappingProxyType(
    {1: lambda _: LAYOUT_1, 2: CompletionTimeLayout}
)


def layout_of(version: int, timeline_folder: str = "timeline") -> TimelineLayout:
    """The layout of a version.

    Args:
        version: ``hoodie.timeline.layout.version``.
        timeline_folder: ``hoodie.timeline.path``; layout 1 ignores it.

    Raises:
        UnsupportedTableError: the version is unknown; the error names a remedy.
    """
    if version not in _LAYOUTS:
        known = ", ".join(map(str, _LAYOUTS))
        raise UnsupportedTableError(
            f"the table has hoodie.timeline.layout.version={version}; known are {known}: use Hudi for this table, or "
            "downgrade it to table version 6 with Hudi's CLI"
        )
    return _LAYOUTS[version](timeline_folder)


def name_instant(layout: TimelineLayout, time: str, action: Action, state: State) -> Instant:
    """An instant made from its time, for callers that know it from an end record, a plan or a marker."""
    return Instant(time, action, state, names=layout.names)
