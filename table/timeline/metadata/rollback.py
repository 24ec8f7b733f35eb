"""Plans and outcomes of rollbacks <-> Avro (HoodieRollbackPlan, HoodieRollbackMetadata; pure)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from table.errors import CorruptFileError
from table.timeline.instant import Action
from table.timeline.metadata.avro_record import decode_record, encode_record, read_as, text_of, texts_of
from table.timeline.metadata.places import name_of, partition_of


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """What a rollback deletes in one partition (HoodieRollbackRequest).

    Attributes:
        file_id: file group, or "" where it does not matter.
        latest_base_instant: base instant of the slice.
        files: absolute paths of files to delete.
    """

    partition_path: str
    file_id: str
    latest_base_instant: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """The instant that a rollback undoes, and the files that it deletes (HoodieRollbackPlan).

    Attributes:
        instant_time: the failed instant.
        action: its action, as in file names.
        requests: files to delete.
    """

    instant_time: str
    action: str
    requests: tuple[RollbackRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class RollbackMetadata:
    """What a rollback did (HoodieRollbackMetadata).

    Attributes:
        start_time: instant of the rollback.
        instant_time: the instant that was undone.
        action: action of the undone instant.
        deleted: partition path to absolute paths of deleted files, and of files that did not exist.
    """

    start_time: str
    duration_ms: int
    instant_time: str
    action: str
    deleted: Mapping[str, tuple[str, ...]]


def encode_rollback_plan(plan: RollbackPlan) -> bytes:
    """Content of ``<time>.rollback.requested``."""
    requests = [
        {
            "partitionPath": request.partition_path,
            "fileId": request.file_id,
            "latestBaseInstant": request.latest_base_instant,
            "filesToBeDeleted": list(request.files),
            "logBlocksToBeDeleted": {},
        }
        for request in plan.requests
    ]
    return encode_record(
        "rollback_plan",
        {
            "instantToRollback": {"commitTime": plan.instant_time, "action": plan.action},
            "RollbackRequests": requests,
            "version": 1,
        },
    )


def decode_rollback_plan(data: bytes, file: str = "") -> RollbackPlan:
    """A rollback plan, ours or Hudi's.

    Args:
        data: the file's bytes.
        file: name of the file, for the error.

    Raises:
        CorruptFileError: when it is no plan, or names log blocks, which only merge-on-read tables have.
    """
    record = decode_record("rollback_plan", data, file)
    with read_as("rollback_plan", file):
        target = record.get("instantToRollback")
        if not target:
            raise CorruptFileError(f"{file or 'a rollback plan'} does not say what to roll back")
        requests = tuple(_request_of(entry, file) for entry in record.get("RollbackRequests") or [])
        return RollbackPlan(text_of(target["commitTime"]), Action(target["action"]).value, requests)


def decode_named_files(data: bytes, file: str = "") -> tuple[str, tuple[str, ...]]:
    """The instant that a plan undoes, and the files that it deletes. Hudi's plans may also name log blocks.

    Args:
        data: the file's bytes.
        file: name of the file, for the error.

    Raises:
        CorruptFileError: when it is no plan.
    """
    record = decode_record("rollback_plan", data, file)
    with read_as("rollback_plan", file):
        target = record.get("instantToRollback") or {}
        lists = (texts_of(entry.get("filesToBeDeleted")) for entry in record.get("RollbackRequests") or [])
        return text_of(target.get("commitTime") or ""), tuple(path for paths in lists for path in paths)


def _request_of(entry: Mapping[str, Any], file: str) -> RollbackRequest:
    if entry.get("logBlocksToBeDeleted"):
        raise CorruptFileError(
            f"{file or 'a rollback plan'} names log blocks, which this project does not write: "
            "finish it with the writer that began it"
        )
    return RollbackRequest(
        partition_of(entry["partitionPath"]),
        name_of(entry.get("fileId") or ""),
        text_of(entry.get("latestBaseInstant") or ""),
        texts_of(entry.get("filesToBeDeleted")),
    )


def encode_rollback_metadata(metadata: RollbackMetadata) -> bytes:
    """Content of ``<time>.rollback``."""
    partitions = {
        path: {
            "partitionPath": path,
            "successDeleteFiles": list(files),
            "failedDeleteFiles": [],
            "rollbackLogFiles": {},
            "logFilesFromFailedCommit": {},
        }
        for path, files in metadata.deleted.items()
    }
    return encode_record(
        "rollback_metadata",
        {
            "startRollbackTime": metadata.start_time,
            "timeTakenInMillis": metadata.duration_ms,
            "totalFilesDeleted": sum(len(files) for files in metadata.deleted.values()),
            "commitsRollback": [metadata.instant_time],
            "partitionMetadata": partitions,
            "version": 1,
            "instantsRollback": [{"commitTime": metadata.instant_time, "action": metadata.action}],
        },
    )


def decode_rollback_metadata(data: bytes, file: str = "") -> RollbackMetadata:
    """What a rollback did, ours or Hudi's.

    Args:
        data: the file's bytes.
        file: name of the file, for the error.

    Raises:
        CorruptFileError: when it is damaged.
    """
    record = decode_record("rollback_metadata", data, file)
    with read_as("rollback_metadata", file):
        undone = record.get("instantsRollback") or [
            {"commitTime": time, "action": "commit"} for time in record["commitsRollback"]
        ]
        partitions = record["partitionMetadata"] or {}
        return RollbackMetadata(
            text_of(record["startRollbackTime"]),
            int(record["timeTakenInMillis"]),
            text_of(undone[0]["commitTime"]) if undone else "",
            text_of(undone[0]["action"]) if undone else "",
            {partition_of(path): texts_of(of_path["successDeleteFiles"]) for path, of_path in partitions.items()},
        )
