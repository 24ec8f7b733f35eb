"""Savepoints <-> Avro (HoodieSavepointMetadata)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from table.timeline.service_metadata import decode_record, encode_record


@dataclass(frozen=True)
class SavepointMetadata:
    """What a savepoint holds.

    Attributes:
        user: who made it.
        made_ms: when.
        comment: why.
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


def decode_savepoint(data: bytes) -> SavepointMetadata:
    """A savepoint, ours or Hudi's."""
    record = decode_record("savepoint_metadata", data)
    files = {path: tuple(entry["savepointDataFile"]) for path, entry in (record.get("partitionMetadata") or {}).items()}
    return SavepointMetadata(record["savepointedBy"], int(record["savepointedAt"]), record["comments"], files)
