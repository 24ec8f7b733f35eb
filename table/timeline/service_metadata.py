"""Plans and outcomes of table services <-> Avro container files (TimelineMetadataUtils).

One record a file, no codec. The schemas in ``table/schemas`` carry the record and field names that
Hudi resolves by; plain ``string`` is accepted where Java annotates its own string class.
"""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import fastavro

from table.errors import CorruptFileError


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """What a rollback deletes in one partition (HoodieRollbackRequest).

    Attributes:
        partition_path: the partition.
        file_id: file group, or "" where it does not matter.
        latest_base_instant: instant of the slice.
        files: absolute paths of files to delete.
    """

    partition_path: str
    file_id: str
    latest_base_instant: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """What is to be undone (HoodieRollbackPlan).

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
    """What was undone (HoodieRollbackMetadata).

    Attributes:
        start_time: instant of the rollback.
        duration_ms: how long it took.
        instant_time: the instant that was undone.
        action: its action.
        deleted: partition path to absolute paths of deleted files (those already gone included).
    """

    start_time: str
    duration_ms: int
    instant_time: str
    action: str
    deleted: Mapping[str, tuple[str, ...]]


@cache
def load_schema_text(name: str) -> str:
    """The schema ``table/schemas/<name>.avsc``."""
    return resources.files("table").joinpath("schemas", f"{name}.avsc").read_text("utf-8")


@cache
def _schema(name: str) -> Any:
    return fastavro.parse_schema(json.loads(load_schema_text(name)), named_schemas={})


def encode_record(name: str, record: Mapping[str, Any]) -> bytes:
    """An Avro container file with one record of the schema ``table/schemas/<name>.avsc``."""
    out = io.BytesIO()
    fastavro.writer(out, _schema(name), [record], codec="null")
    return out.getvalue()


def decode_record(name: str, data: bytes) -> dict[str, Any]:
    """The one record of a container file.

    Raises:
        CorruptFileError: when it is no Avro file, or holds no record.
    """
    try:
        record: Any = next(iter(fastavro.reader(io.BytesIO(data))))
    except (ValueError, EOFError, KeyError, StopIteration, IndexError) as error:
        raise CorruptFileError(f"not an Avro file with a {name}: {error}") from error
    return dict(record)


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


def decode_rollback_plan(data: bytes) -> RollbackPlan:
    """A rollback plan, ours or Hudi's.

    Raises:
        CorruptFileError: when it is none, or it names log blocks, which only merge-on-read tables have.
    """
    record = decode_record("rollback_plan", data)
    target = record.get("instantToRollback")
    if not target:
        raise CorruptFileError("a rollback plan does not say what to roll back")
    requests = []
    for entry in record.get("RollbackRequests") or []:
        if entry.get("logBlocksToBeDeleted"):
            raise CorruptFileError(
                "a rollback plan names log blocks: merge-on-read tables are not written here; "
                "finish it with the writer that began it"
            )
        requests.append(
            RollbackRequest(
                entry["partitionPath"],
                entry.get("fileId") or "",
                entry.get("latestBaseInstant") or "",
                tuple(entry.get("filesToBeDeleted") or ()),
            )
        )
    return RollbackPlan(target["commitTime"], target["action"], tuple(requests))


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


def decode_rollback_metadata(data: bytes) -> RollbackMetadata:
    """What a rollback did, ours or Hudi's."""
    record = decode_record("rollback_metadata", data)
    undone = record.get("instantsRollback") or [
        {"commitTime": time, "action": "commit"} for time in record["commitsRollback"]
    ]
    deleted = {
        path: tuple(of_path["successDeleteFiles"]) for path, of_path in (record["partitionMetadata"] or {}).items()
    }
    return RollbackMetadata(
        record["startRollbackTime"],
        int(record["timeTakenInMillis"]),
        undone[0]["commitTime"] if undone else "",
        undone[0]["action"] if undone else "",
        deleted,
    )
