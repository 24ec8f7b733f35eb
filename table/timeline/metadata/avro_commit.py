"""The Avro of commit files in timeline layout 2 <-> CommitMetadata (CommitMetadataSerDeV2)."""

from table.errors import CorruptFileError
from table.timeline.metadata.avro_record import decode_record, encode_record
from table.timeline.metadata.commit import CommitMetadata, commit_of, decode_commit, document_of

_MAGIC = b"Obj\x01"


def encode_avro_commit(metadata: CommitMetadata, *, replaces: bool = False) -> bytes:
    """A commit file's content.

    Args:
        metadata: what the commit did, or what a pending one says of itself.
        replaces: of a completed replace commit, which has a record of its own (HoodieReplaceCommitMetadata).
    """
    return encode_record("replace_commit" if replaces else "commit", document_of(metadata, names_replaced=replaces))


def decode_avro_commit(data: bytes, name: str = "commit") -> CommitMetadata:
    """A commit file's content; an empty one means "nothing is known".

    A file that was moved here from layout 1 as it was holds JSON.

    Args:
        data: the file's bytes.
        name: for the error.

    Raises:
        CorruptFileError: it is neither an Avro file with a commit nor the JSON of one.
    """
    if not data.startswith(_MAGIC):
        return decode_commit(data, name)
    record = decode_record("commit", data, name)
    try:
        return commit_of(record)
    except (ValueError, AttributeError, TypeError) as error:
        raise CorruptFileError(f"{name} does not have the fields of a commit: {error}") from error
