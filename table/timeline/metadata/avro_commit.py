"""The Avro of commit files in timeline layout 2 <-> CommitMetadata (CommitMetadataSerDeV2)."""

from table.errors import CorruptFileError
from table.timeline.metadata.avro_record import decode_record, encode_record
from table.timeline.metadata.commit import CommitMetadata, commit_of, decode_commit, document_of

_MAGIC = b"Obj\x01"


def encode_avro_commit(metadata: CommitMetadata, *, replaces: bool = False) -> bytes:
    """Encodes the content of a commit file.

    Args:
        metadata: of the completed or pending commit.
        replaces: whether it is a completed replace commit, which has its own record (HoodieReplaceCommitMetadata).
    """
    return encode_record("replace_commit" if replaces else "commit", document_of(metadata, names_replaced=replaces))


def decode_avro_commit(data: bytes, name: str = "commit") -> CommitMetadata:
    """Decodes the content of a commit file; empty content means "nothing is known".

    A file that was moved here unchanged from layout 1 holds JSON.

    Args:
        data: the file's bytes.
        name: file name, for the error.

    Raises:
        CorruptFileError: the content is neither an Avro file with a commit nor the JSON of a commit.
    """
    if not data.startswith(_MAGIC):
        return decode_commit(data, name)
    record = decode_record("commit", data, name)
    try:
        return commit_of(record)
    except (ValueError, AttributeError, TypeError) as error:
        raise CorruptFileError(f"{name} does not have the fields of a commit: {error}") from error
