"""What a long-lived cleaner remembers from one clean to the next."""

from table.services.clean.known_folders import KnownFolders
from table.services.clean.readers import HeldPartitions
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.timeline.active_timeline import read_instant
from table.timeline.commit_cache import CommitCache
from table.timeline.instant import Action, Instant
from table.timeline.metadata.clean import CleanMetadata, decode_clean_metadata

_COMMITS_BYTES = 4 * 1024 * 1024


class CleanerMemory:
    """What the cleaner of one table remembers. For one thread.

    Attributes:
        last_clean: the last completed clean that was read; a completed clean does not change.
        held: partitions of which nothing can go yet.
        folders: what the folders of partition paths contain.
    """

    def __init__(self) -> None:
        self.last_clean: CleanMetadata | None = None
        self.held = HeldPartitions()
        self.folders = KnownFolders()
        self._commits: CommitCache | None = None

    def commits_of(self, storage: Storage) -> CommitCache:
        """Decoded commits: one that is new to this clean says ten cleans later what it superseded."""
        if self._commits is None:
            self._commits = CommitCache(storage, most_bytes=_COMMITS_BYTES)
        return self._commits

    def load_last_clean(self, snapshot: Snapshot) -> CleanMetadata | None:
        """What the last completed clean did; None without one.

        Raises:
            CorruptFileError: its file is damaged.
            TimelineMovedError: its file was archived since the timeline was listed.
        """
        cleans = snapshot.timeline.completed_of(Action.CLEAN)
        if not cleans:
            return None
        if self.last_clean is None or self.last_clean.start_time != cleans[-1].time:
            self.last_clean = _read(snapshot, cleans[-1])
        return self.last_clean

    def follow(self, snapshot: Snapshot) -> None:
        """Brings the folders up to a snapshot.

        Raises:
            HudiError: an instant cannot be read.
        """

        def read_clean(instant: Instant) -> CleanMetadata:
            known = self.last_clean
            return known if known is not None and known.start_time == instant.time else _read(snapshot, instant)

        self.folders.follow(snapshot, read_clean)


def _read(snapshot: Snapshot, clean: Instant) -> CleanMetadata:
    return decode_clean_metadata(read_instant(snapshot.storage, clean), clean.file_name)
