"""Savepoints <-> Avro (HoodieSavepointMetadata)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from table.timeline.metadata.avro_record import decode_record, encode_record, read_as, text_of
from table.timeline.metadata.places import name_of, partition_of


@dataclass(frozen=True)
class SavepointMetadata:
    """What a savepoint holds.

    Attributes:
        user: name of the user who made the savepoint.
        made_ms: when it was made, in milliseconds since the epoch.
        comment: why it was made.
        files: partition path -> names of the files that must stay.
    """

    user: str
    made_ms: int
    comment: str
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def encode_savepoint(metadata: SavepointMetadata) -> bytes:
    """Content of ``<time>.savepoint``."""
    return encode_record(
        "savepoint_metadata",
        {
            "savepointedBy": metadata.user,
            "savepointedAt": metadata.made_ms,
            "comments": metadata.comment,
            "partitionMetadata": {
                path: {"partitionPath": path, "savepointDataFile": list(files)}
                for path, files in metadata.files.items()
            },
            "version": 1,
        },
    )


def decode_savepoint(data: bytes, file: str = "") -> SavepointMetadata:
    """A savepoint, ours or Hudi's.

    Args:
        data: the file's bytes.
        file: name of the file, for the error.

    Raises:
        CorruptFileError: when it is damaged.
    """
    record = decode_record("savepoint_metadata", data, file)
    with read_as("savepoint_metadata", file):
        partitions = record.get("partitionMetadata") or {}
        files = {
            partition_of(path): tuple(map(name_of, entry["savepointDataFile"] or ()))
            for path, entry in partitions.items()
        }
        user, comment = text_of(record["savepointedBy"]), text_of(record["comments"])
        return SavepointMetadata(user, int(record["savepointedAt"]), comment, files)
