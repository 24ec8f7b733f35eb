"""The Avro of commit files in timeline layout 2 <-> CommitMetadata (CommitMetadataSerDeV2)."""

from table.errors import CorruptFileError
from table.timeline.metadata.avro_record import decode_fields, decode_record, encode_record
from table.timeline.metadata.commit import (
    CommitMetadata,
    CommitOutline,
    commit_of,
    decode_commit,
    document_of,
    outline_of_json,
)

_MAGIC = b"Obj\x01"


def encode_avro_commit(metadata: CommitMetadata, *, replaces: bool = False) -> bytes:
    """Encodes the content of a commit file.

    Args:
        metadata: of the completed or pending commit.
        replaces: whether it is a completed replace commit, which has its own record (HoodieReplaceCommitMetadata).
    """
    return encode_record("replace_commit" if replaces else "commit", document_of(metadata, names_replaced=replaces))


def is_avro(data: bytes) -> bool:
    """Whether the content of a commit file is Avro, as in timeline layout 2; else it is JSON, or empty (pure)."""
    return data.startswith(_MAGIC)


def decode_avro_commit(data: bytes, name: str = "commit") -> CommitMetadata:
    """Decodes the content of a commit file; empty content means "nothing is known".

    A file that was moved here unchanged from layout 1 holds JSON.

    Args:
        data: the file's bytes.
        name: file name, for the error.

    Raises:
        CorruptFileError: the content is neither an Avro file with a commit nor the JSON of a commit.
    """
    if not is_avro(data):
        return decode_commit(data, name)
    record = decode_record("commit", data, name)
    try:
        return commit_of(record)
    except (ValueError, AttributeError, TypeError) as error:
        raise CorruptFileError(f"{name} does not have the fields of a commit: {error}") from error


def decode_outline(data: bytes, name: str = "commit") -> CommitOutline:
    """As `decode_avro_commit`, without the files of the commit.

    Raises:
        CorruptFileError: see `decode_avro_commit`.
    """
    if not is_avro(data):
        outline = outline_of_json(data)
        if outline is not None:
            return outline
    fields = decode_fields(data, ("extraMetadata", "operationType")) if is_avro(data) else None
    whole = decode_avro_commit(data, name) if fields is None else commit_of(fields)
    return CommitOutline(whole.operation, whole.extra)
