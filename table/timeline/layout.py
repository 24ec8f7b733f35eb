"""Timeline layouts: where instants are, how their files are named, what commits are encoded in, and which archive.

A table says its layout in ``hoodie.timeline.layout.version``. Layout 1 is that of table version 6, and the only one
here. A later one is a class like `RequestTimeLayout`, entered in `_LAYOUTS`.
"""

from typing import Protocol

from table.errors import UnsupportedTableError
from table.storage.interface import METAFOLDER, Storage, join
from table.timeline.archive_log import LogArchive
from table.timeline.archived_timeline import Archive
from table.timeline.instant import REQUEST_TIME_NAMES, Action, Instant, InstantNames, State
from table.timeline.metadata.commit import CommitMetadata, decode_commit, encode_commit


class TimelineLayout(Protocol):
    """What differs between the layouts of a timeline (TimelineLayout, TimelineFactory)."""

    @property
    def version(self) -> int:
        """As ``hoodie.timeline.layout.version`` says it."""

    @property
    def names(self) -> InstantNames:
        """The folder of the instants, and how their files are named."""

    def visible_since(self, instant: Instant) -> str:
        """The time by which completed instants are ordered: what is later was not visible to what is earlier."""

    def encode_commit(self, metadata: CommitMetadata) -> bytes:
        """Content of the file of a commit, delta commit or replace commit, inflight or completed."""

    def decode_commit(self, data: bytes, name: str) -> CommitMetadata:
        """The inverse of `encode_commit`.

        Args:
            data: the file's bytes.
            name: of the file, for the error.

        Raises:
            CorruptFileError: they are no commit.
        """

    def open_archive(self, storage: Storage, folder: str) -> Archive:
        """Where retired instants are.

        Args:
            storage: the table's.
            folder: ``hoodie.archivelog.folder`` of the table.
        """


class RequestTimeLayout:
    """Layout 1: ``.hoodie/``, names and order by the time of the request, commits in JSON, an archive log."""

    version = 1
    names: InstantNames = REQUEST_TIME_NAMES

    def visible_since(self, instant: Instant) -> str:
        """The time of the request: the layout has no other."""
        return instant.time

    def encode_commit(self, metadata: CommitMetadata) -> bytes:
        """JSON."""
        return encode_commit(metadata)

    def decode_commit(self, data: bytes, name: str) -> CommitMetadata:
        """From JSON."""
        return decode_commit(data, name)

    def open_archive(self, storage: Storage, folder: str) -> Archive:
        """The archive log, below ``.hoodie``."""
        return LogArchive(storage, join(METAFOLDER, folder))


LAYOUT_1: TimelineLayout = RequestTimeLayout()
_LAYOUTS = {LAYOUT_1.version: LAYOUT_1}


def layout_of(version: int) -> TimelineLayout:
    """The layout of a version.

    Raises:
        UnsupportedTableError: names the version and the way out.
    """
    if version not in _LAYOUTS:
        known = ", ".join(map(str, _LAYOUTS))
        raise UnsupportedTableError(
            f"the table has hoodie.timeline.layout.version={version}; known is {known}: use Hudi for this table, or "
            "downgrade it to table version 6 with Hudi's CLI"
        )
    return _LAYOUTS[version]


def name_instant(layout: TimelineLayout, time: str, action: Action, state: State) -> Instant:
    """An instant that is known by its time: what an end record, a plan or a marker speaks of."""
    return Instant(time, action, state, names=layout.names)
