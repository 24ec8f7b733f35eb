"""The end record of a completed write has the content of its completed file: it replaces a file that was damaged.

The completed file may be emptied or cut by others: a disk that lost its cache, an editor, a copy that broke off.
"""

from dataclasses import dataclass

from table.errors import CorruptFileError
from table.storage.interface import Storage
from table.timeline.end_record import DATA_ACTIONS, EndRecord, end_path, find_end
from table.timeline.instant import COMPLETED_AS, Action, Instant, State
from table.timeline.layout import TimelineLayout
from table.timeline.metadata.avro_commit import decode_avro_commit, is_avro
from table.timeline.metadata.commit import CommitMetadata

WRITER_KEY = "hudistream.writer"  # in the inflight file of a commit


@dataclass(frozen=True)
class Substitute:
    """What replaces the content of a damaged completed file.

    Attributes:
        metadata: what the commit did.
        content: bytes of the end record's content, in the encoding that the commit was decided in.
    """

    metadata: CommitMetadata
    content: bytes

    def encode(self, completed: Instant, layout: TimelineLayout) -> bytes:
        """The content of the completed file. Since the decision the table may have got another layout."""
        if is_avro(self.content) == layout.completes_in_order:
            return self.content
        return layout.encode_commit(self.metadata, replaces=completed.action is Action.REPLACE_COMMIT)


def decode_whole(instant: Instant, data: bytes) -> CommitMetadata | None:
    """What a commit did; None where the file of a completed write is empty or torn (pure).

    Args:
        instant: in the state of the file.
        data: the file's bytes, in the encoding of either layout: a table may change its layout.

    Raises:
        CorruptFileError: the file of a pending write is damaged.
    """
    try:
        metadata = decode_avro_commit(data, instant.file_name)
    except CorruptFileError:
        if not instant.is_completed:
            raise
        return None
    return None if instant.is_completed and metadata.is_empty else metadata


def find_substitute(storage: Storage, completed: Instant) -> Substitute | None:
    """What the end record of a completed write holds; None if it has none that says "commit".

    Args:
        storage: the table's.
        completed: the write; its completed file is empty, or cannot be decoded.

    Raises:
        CorruptFileError: the end record is damaged, too, or this project wrote the commit and the record is gone.
    """
    end = find_end_of(storage, completed)
    if end is None:
        if _is_ours(storage, completed):
            raise CorruptFileError(
                f"{completed.path} of {storage.base_uri!r} is damaged, and its end record is gone, which had the same "
                "content: what the commit wrote is not known. Bring one of the two back from a backup"
            )
        return None
    return Substitute(end.metadata, end.content) if end.is_commit else None


def find_end_of(storage: Storage, completed: Instant) -> EndRecord | None:
    """The end record of a completed write; None if it has none.

    Raises:
        CorruptFileError: the end record is damaged, or holds no commit.
    """
    for action in sorted(DATA_ACTIONS):
        if COMPLETED_AS.get(action, action) is not completed.action:
            continue
        try:
            end = find_end(storage, completed.time, action)
            holds_none = end is not None and end.is_commit and end.metadata.is_empty
        except CorruptFileError as error:
            raise _both_damaged(storage, completed, str(error)) from error
        if holds_none:
            raise _both_damaged(storage, completed, f"{end_path(completed.time, action)} holds no commit")
        if end is not None:
            return end
    return None


def _both_damaged(storage: Storage, completed: Instant, why: str) -> CorruptFileError:
    return CorruptFileError(
        f"{completed.path} of {storage.base_uri!r} is damaged, and so is its end record, which had the same content "
        f"({why}): what the commit wrote is not known. Bring one of the two back from a backup"
    )


def _is_ours(storage: Storage, completed: Instant) -> bool:
    """Whether the inflight file of a commit says that a writer of this project began it."""
    try:
        return WRITER_KEY.encode() in storage.read(completed.at(State.INFLIGHT).path)
    except FileNotFoundError:
        return False
