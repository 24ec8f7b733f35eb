"""A cache of decoded commits, for processes that need the same completed commits again.

The content of a completed instant's file never changes, and a time is not used again after its instant was rolled back.
So an entry never becomes wrong. Entries are dropped to free memory, archived commits first: no caller reads
them again.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from table import threads
from table.errors import CorruptFileError, TimelineMovedError
from table.storage.interface import Storage
from table.timeline.active_timeline import find_instant
from table.timeline.instant import Instant
from table.timeline.late_writes import LateWrites
from table.timeline.metadata.avro_commit import decode_avro_commit, decode_outline
from table.timeline.metadata.commit import CommitMetadata, CommitOutline
from table.timeline.metadata.commit_totals import CommitTotals, decode_totals, totals_of
from table.timeline.named_files import FollowedNames, NamedFile, names_of
from table.timeline.same_content import Substitute, decode_whole, find_end_of, find_substitute
from table.timeline.timeline import Timeline

Found = TypeVar("Found")

CACHED_BYTES = 16 * 1024 * 1024
_BYTES_PER_STAT = 1_500
_WORTH_A_POOL = 3  # reads
_LARGE_BYTES = 256 * 1024  # of a file: outlines of larger ones are decoded without their stats
_OUTLINES = 64  # of large commits


class CommitCache:
    """Commits of one table by instant: time, action and state. For one thread.

    Args:
        most_bytes: largest estimated size. The least recently used commits are dropped first; the newest one stays.
        keeps_large: whether the file of a large commit is kept from its outline to its totals, which a first batch asks
            for next, and the names of its files to `find_named`.

    Attributes:
        late_writes: retired writes that a compaction passed, as read from the archive.
        named_files: the files that the commits of the active timeline name.
        damaged: completed writes whose file was found empty or torn, and what was taken in its place.
    """

    def __init__(self, storage: Storage, *, most_bytes: int = CACHED_BYTES, keeps_large: bool = False) -> None:
        self._storage, self._most_bytes, self._keeps_large = storage, most_bytes, keeps_large
        self.late_writes, self.named_files = LateWrites(), FollowedNames()
        self._named: dict[Instant, tuple[NamedFile, ...]] = {}  # of large commits, until they are asked for
        self.damaged: dict[Instant, Substitute] = {}
        self._kept: dict[Instant, CommitMetadata] = {}
        self._outlines: dict[Instant, CommitOutline] = {}
        self._bytes, self._first = 0, ""  # the least time that is kept
        # file of the large commit whose outline was decoded last
        self._large: tuple[Instant, bytes] | None = None

    def read(self, instant: Instant) -> CommitMetadata:
        """What a completed commit did.

        Raises:
            CorruptFileError: its file is damaged.
            TimelineMovedError: its file was archived or undone since the timeline was listed.
        """
        known = self._find_kept(instant)
        if known is not None:
            return known
        data = self._take_large(instant)
        return self.decode(instant, data if data is not None else self._read_data(instant))

    def find(self, instant: Instant) -> CommitMetadata | None:
        """What a completed commit did; None where it was archived since the timeline was listed.

        Raises:
            CorruptFileError: its file is damaged.
        """
        known = self._find_kept(instant)
        if known is not None:
            return known
        data = self._take_large(instant)
        data = data if data is not None else self._find_data(instant)
        return self.decode(instant, data) if data is not None else None

    def find_totals(self, instant: Instant) -> CommitTotals | None:
        """The sums of a completed commit; None where it was archived since the timeline was listed.

        Raises:
            CorruptFileError: its file is damaged.
        """
        known = self._find_kept(instant)
        if known is not None:
            return totals_of(known)
        data = self._take_large(instant)
        data = data if data is not None else self._find_data(instant)
        if data is None:
            return None
        if len(data) >= _LARGE_BYTES:
            with suppress(CorruptFileError):
                return decode_totals(data, instant.file_name)
        return totals_of(self.decode(instant, data))

    def read_outline(self, instant: Instant) -> CommitOutline:
        """What a completed commit says without its files.

        Raises:
            CorruptFileError: its file is damaged.
            TimelineMovedError: its file was archived or undone since the timeline was listed.
        """
        known = self._known_outline(instant)
        return known if known is not None else self._outline(instant, self._read_data(instant))

    def find_outlines(self, instants: Sequence[Instant]) -> Iterator[tuple[Instant, CommitOutline | None]]:
        """The outlines of many commits; None for those that were archived since the timeline was listed.

        If each read is a request, several files are read at a time.

        Raises:
            CorruptFileError: a file is damaged.
        """
        return self._find_all(instants, self._known_outline, self._outline)

    def find_named(self, instants: Sequence[Instant]) -> Iterator[tuple[Instant, tuple[NamedFile, ...] | None]]:
        """The files that many commits name; None for those that were archived, or whose file is not filled yet.

        Raises:
            CorruptFileError: a file is damaged.
        """
        return self._find_all(instants, self._known_names, self._names)

    def _find_all(
        self,
        instants: Sequence[Instant],
        known: Callable[[Instant], Found | None],
        decode: Callable[[Instant, bytes], Found | None],
    ) -> Iterator[tuple[Instant, Found | None]]:
        at_once = self._storage.calls_at_once
        if at_once == 1 or len(instants) < _WORTH_A_POOL:
            for instant in instants:
                found = known(instant)
                data = self._find_data(instant) if found is None else None
                yield instant, found if data is None else decode(instant, data)
            return
        with threads.make_pool(min(at_once, len(instants)), "hudistream-commits") as pool:
            # a part at a time: large commits need not fit into the cache together
            for at in range(0, len(instants), at_once):
                part = instants[at : at + at_once]
                kept = {instant: found for instant in part if (found := known(instant)) is not None}
                missing = [instant for instant in part if instant not in kept]
                read = dict(zip(missing, pool.map(self._find_data, missing), strict=True))
                for instant in part:
                    data = read.get(instant)
                    yield instant, kept.get(instant) if data is None else decode(instant, data)

    def _find_data(self, instant: Instant) -> bytes | None:
        """The content of a commit's file; None where the commit was archived or undone since the timeline was listed.

        If somebody deleted the file of a completed write, the end record of the write has the same content.

        Raises:
            CorruptFileError: the file is gone, and its end record is damaged.
        """
        data = find_instant(self._storage, instant)
        if data is None and instant.is_completed:
            end = find_end_of(self._storage, instant)
            data = end.content if end is not None and end.is_commit else None
        return data

    def _read_data(self, instant: Instant) -> bytes:
        data = self._find_data(instant)
        if data is None:
            raise TimelineMovedError(f"{instant.file_name} was archived or undone while the timeline was read")
        return data

    def _known_names(self, instant: Instant) -> tuple[NamedFile, ...] | None:
        whole = self._find_kept(instant)
        return self._named.pop(instant, None) if whole is None else names_of(instant.time, whole)

    def _names(self, instant: Instant, data: bytes) -> tuple[NamedFile, ...] | None:
        whole = decode_whole(instant, data)  # a large one is not kept
        if whole is None:
            whole = self.decode(instant, data)
        return None if whole.is_empty else names_of(instant.time, whole)

    def _known_outline(self, instant: Instant) -> CommitOutline | None:
        whole = self._find_kept(instant)
        return self._outlines.get(instant) if whole is None else CommitOutline(whole.operation, whole.extra)

    def _outline(self, instant: Instant, data: bytes) -> CommitOutline:
        outline = None
        if len(data) >= _LARGE_BYTES:
            with suppress(CorruptFileError):
                outline = decode_outline(data, instant.file_name)
        if outline is None:
            whole = self.decode(instant, data)
            return CommitOutline(whole.operation, whole.extra)
        self._large = (instant, data) if self._keeps_large else None
        if self._keeps_large and (names := self._names(instant, data)) is not None:
            self._named[instant] = names
        self._outlines[instant] = outline
        while len(self._outlines) > _OUTLINES:
            del self._outlines[next(iter(self._outlines))]
        return outline

    def _take_large(self, instant: Instant) -> bytes | None:
        """The file of a large commit, if its outline was the last one decoded; it is kept no longer then."""
        if self._large is None or self._large[0] != instant:
            return None
        data, self._large = self._large[1], None
        return data

    def find_filled(self, instant: Instant) -> CommitMetadata | None:
        """As `find`, for callers that delete files which a commit does not name. None also where nothing is known.

        An empty file without an end record does not say which files the commit wrote.
        """
        found = self.find(instant)
        return None if found is None or found.is_empty else found

    def keep(self, instant: Instant, metadata: CommitMetadata) -> None:
        """Remembers a commit that this process completed itself.

        Args:
            instant: the completed instant.
            metadata: the content of its file.
        """
        self._forget(instant)
        self._kept[instant] = metadata
        self._bytes += _size_bytes(metadata)
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            oldest = next(iter(self._kept))
            if self._keeps_large and not self.named_files.knows(oldest.time):
                self._named[oldest] = names_of(oldest.time, self._kept[oldest])
            self._forget(oldest)

    def forget_archived(self, timeline: Timeline) -> None:
        """Drops the commits that are earlier than a timeline.

        Args:
            timeline: the active timeline, as it was listed.
        """
        first = timeline.first_active_time
        if first is not None and first != self._first:
            self._first = first
            for instant in [instant for instant in self._kept if instant.time < first]:
                self._forget(instant)

    def _find_kept(self, instant: Instant) -> CommitMetadata | None:
        found = self._kept.pop(instant, None)
        if found is not None:
            self._kept[instant] = found  # now the most recently used entry
        return found

    def decode(self, instant: Instant, data: bytes) -> CommitMetadata:
        """What a commit did, from the content of its file, which the caller has read.

        If the file of a completed write is empty or torn, the end record of the write says the same. A store that
        creates a file before it writes the content may also show an empty file first.

        Raises:
            CorruptFileError: it is damaged, and its end record does not replace it.
        """
        metadata = decode_whole(instant, data)
        if metadata is None:
            substitute = find_substitute(self._storage, instant)
            if substitute is not None:
                metadata, self.damaged[instant] = substitute.metadata, substitute
        if metadata is None:
            metadata = decode_avro_commit(data, instant.file_name)
            if not data.strip():
                return metadata
        if instant.is_completed:
            self.keep(instant, metadata)
        return metadata

    def _forget(self, instant: Instant) -> None:
        metadata = self._kept.pop(instant, None)
        if metadata is not None:
            self._bytes -= _size_bytes(metadata)


def _size_bytes(metadata: CommitMetadata) -> int:
    """The estimated memory of a decoded commit."""
    extra = sum(len(key) + len(value) for key, value in metadata.extra.items())
    replaced = sum(100 * (1 + len(file_ids)) for file_ids in metadata.replaced.values())
    return _BYTES_PER_STAT * (1 + len(metadata.stats)) + extra + replaced
