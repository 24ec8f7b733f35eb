"""Plans and outcomes of cleaning <-> Avro (HoodieCleanerPlan, HoodieCleanMetadata)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from table.timeline.metadata.avro_record import decode_record, encode_record, read_as, text_of, texts_of
from table.timeline.metadata.places import partition_of

SAVEPOINTED_KEY = "savepointed_timestamps"
LEFT_KEY = "hudistream.left"
EMPTIED_KEY = "hudistream.emptied"
KEPT_KEY = "hudistream.kept.from"


@dataclass(frozen=True)
class CleanPlan:
    """What a clean deletes.

    Attributes:
        policy: name of the cleaning policy.
        earliest: (time, action) of the earliest commit that keeps its files, or None.
        last_commit: newest completed commit when the clean was planned, or "".
        files: partition path -> absolute paths.
        partitions: partition paths whose folders are deleted, too.
        savepoints: savepointed commits whose files it keeps.
        left: partition paths with files that are still too young to delete; the next clean looks at them again.
        emptied: partition paths without remaining files; a writer removes their folders between two batches.
        kept_from: the first commit whose files no clean up to this one was allowed to delete; "" where it is not said.
    """

    policy: str
    earliest: tuple[str, str] | None
    last_commit: str
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    savepoints: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()
    kept_from: str = ""

    @property
    def bound(self) -> str:
        """The first commit whose files this clean was not allowed to delete, nor those before it as far as it says.

        A policy that counts versions keeps what is there when the clean is planned. "" where nothing is said.
        """
        return max(self.earliest[0] if self.earliest is not None else self.last_commit, self.kept_from)

    @property
    def file_count(self) -> int:
        """Number of files that it deletes."""
        return sum(map(len, self.files.values()))


@dataclass(frozen=True)
class CleanMetadata:
    """What a clean did.

    Attributes:
        start_time: instant time of the clean.
        plan: the plan that it carried out.
        deleted: partition path -> names of the files that no longer exist.
        failed: partition path -> names of files that could not be deleted.
    """

    start_time: str
    duration_ms: int
    plan: CleanPlan
    deleted: Mapping[str, tuple[str, ...]]
    failed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def encode_clean_plan(plan: CleanPlan) -> bytes:
    """Content of ``<time>.clean.requested`` and ``<time>.clean.inflight``."""
    earliest = None
    if plan.earliest is not None:
        earliest = {"timestamp": plan.earliest[0], "action": plan.earliest[1], "state": "COMPLETED"}
    return encode_record(
        "clean_plan",
        {
            "earliestInstantToRetain": earliest,
            "lastCompletedCommitTimestamp": plan.last_commit,
            "policy": plan.policy,
            "filesToBeDeletedPerPartition": {},
            "version": 2,
            "filePathsToBeDeletedPerPartition": {
                path: [{"filePath": file, "isBootstrapBaseFile": False} for file in files]
                for path, files in plan.files.items()
            },
            "partitionsToBeDeleted": list(plan.partitions),
            "extraMetadata": _extra(plan),
        },
    )


def _extra(plan: CleanPlan) -> dict[str, str]:
    extra = {SAVEPOINTED_KEY: ",".join(plan.savepoints)} if plan.savepoints else {}
    for key, paths in ((LEFT_KEY, plan.left), (EMPTIED_KEY, plan.emptied)):
        if paths:
            extra[key] = json.dumps(paths)
    return extra | ({KEPT_KEY: plan.kept_from} if plan.kept_from else {})


def _savepoints(extra: Mapping[str, str] | None) -> tuple[str, ...]:
    return tuple(filter(None, (extra or {}).get(SAVEPOINTED_KEY, "").split(",")))


def _paths(extra: Mapping[str, str] | None, key: str) -> tuple[str, ...]:
    try:
        found = json.loads((extra or {}).get(key, "[]"))
    except ValueError:
        return ()
    return tuple(path for path in found if isinstance(path, str)) if isinstance(found, list) else ()


def decode_clean_plan(data: bytes, file: str = "") -> CleanPlan:
    """A clean plan, ours or Hudi's.

    Args:
        data: the file's bytes.
        file: name of the file, for the error.

    Raises:
        CorruptFileError: when it is damaged.
    """
    record = decode_record("clean_plan", data, file)
    with read_as("clean_plan", file):
        files = {
            partition_of(path): texts_of(info["filePath"] for info in infos)
            for path, infos in (record.get("filePathsToBeDeletedPerPartition") or {}).items()
        }
        # plans of version 1 name files within their partition
        for path, names in (record.get("filesToBeDeletedPerPartition") or {}).items():
            files.setdefault(partition_of(path), texts_of(names))
        earliest = record.get("earliestInstantToRetain")
        return CleanPlan(
            text_of(record["policy"]),
            (text_of(earliest["timestamp"]), text_of(earliest["action"])) if earliest else None,
            text_of(record.get("lastCompletedCommitTimestamp") or ""),
            files,
            texts_of(record.get("partitionsToBeDeleted")),  # each is checked where its folder is removed
            _savepoints(record.get("extraMetadata")),
            _paths(record.get("extraMetadata"), LEFT_KEY),
            _paths(record.get("extraMetadata"), EMPTIED_KEY),
            (record.get("extraMetadata") or {}).get(KEPT_KEY, ""),
        )


def encode_clean_metadata(metadata: CleanMetadata) -> bytes:
    """Content of ``<time>.clean``."""
    plan = metadata.plan
    partitions = {
        path: {
            "partitionPath": path,
            "policy": plan.policy,
            "deletePathPatterns": [*metadata.deleted.get(path, ()), *metadata.failed.get(path, ())],
            "successDeleteFiles": list(metadata.deleted.get(path, ())),
            "failedDeleteFiles": list(metadata.failed.get(path, ())),
            "isPartitionDeleted": False,  # a writer removes the folder, between two batches
        }
        for path in sorted({*plan.files, *plan.partitions})
    }
    return encode_record(
        "clean_metadata",
        {
            "startCleanTime": metadata.start_time,
            "timeTakenInMillis": metadata.duration_ms,
            "totalFilesDeleted": sum(map(len, metadata.deleted.values())),
            "earliestCommitToRetain": plan.earliest[0] if plan.earliest else "",
            "lastCompletedCommitTimestamp": plan.last_commit,
            "partitionMetadata": partitions,
            "version": 2,
            "bootstrapPartitionMetadata": {},
            "extraMetadata": _extra(plan),
        },
    )


def decode_clean_metadata(data: bytes, file: str = "") -> CleanMetadata:
    """What a clean did, ours or Hudi's.

    Args:
        data: the file's bytes.
        file: name of the file, for the error.

    Raises:
        CorruptFileError: when it is damaged.
    """
    record = decode_record("clean_metadata", data, file)
    with read_as("clean_metadata", file):
        partitions = record.get("partitionMetadata") or {}
        earliest = text_of(record.get("earliestCommitToRetain") or "")
        plan = CleanPlan(
            text_of(next((entry["policy"] for entry in partitions.values()), "")),
            (earliest, "commit") if earliest else None,
            text_of(record.get("lastCompletedCommitTimestamp") or ""),
            partitions=tuple(partition_of(path) for path, one in partitions.items() if one.get("isPartitionDeleted")),
            savepoints=_savepoints(record.get("extraMetadata")),
            left=_paths(record.get("extraMetadata"), LEFT_KEY),
            emptied=_paths(record.get("extraMetadata"), EMPTIED_KEY),
            kept_from=(record.get("extraMetadata") or {}).get(KEPT_KEY, ""),
        )
        return CleanMetadata(
            text_of(record["startCleanTime"]),
            int(record["timeTakenInMillis"]),
            plan,
            {partition_of(path): texts_of(entry["successDeleteFiles"]) for path, entry in partitions.items()},
            {partition_of(path): texts_of(entry["failedDeleteFiles"]) for path, entry in partitions.items()},
        )
