"""Plans of compactions <-> Avro (HoodieCompactionPlan, HoodieCompactionOperation)."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace

from table.storage.interface import join
from table.timeline.metadata.avro_record import decode_record, encode_record, read_as, text_of, texts_of
from table.timeline.metadata.places import name_of, partition_of
from table.version import VERSION

_PROVISIONAL = "hudistream.provisional"
_PLANNER = "hudistream.version"
_VERSION = 2  # files are named without their folders


@dataclass(frozen=True, slots=True)
class CompactionOperation:
    """One slice that a compaction merges into a base file (HoodieCompactionOperation).

    Attributes:
        partition_path: "" in a non-partitioned table.
        file_id: file group.
        base_instant_time: base instant of the slice.
        base_file: name of the base file; None where the slice has only log files.
        log_files: names, oldest first.
        metrics: the numbers by which the planner chose the slice.
    """

    partition_path: str
    file_id: str
    base_instant_time: str
    base_file: str | None
    log_files: tuple[str, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)

    @property
    def log_paths(self) -> tuple[str, ...]:
        """Paths of the log files, relative to the table."""
        return tuple(join(self.partition_path, name) for name in self.log_files)

    def without(self, gone: Container[str]) -> "CompactionOperation":
        """The operation without some files, paths relative to the table: their loss was accepted."""
        base = self.base_file if self.base_file and join(self.partition_path, self.base_file) not in gone else None
        logs = tuple(name for name, path in zip(self.log_files, self.log_paths, strict=True) if path not in gone)
        return replace(self, base_file=base, log_files=logs)


@dataclass(frozen=True)
class CompactionPlan:
    """What a compaction does (HoodieCompactionPlan).

    Attributes:
        operations: one for each slice.
        is_provisional: whether the plan counts only after its planner has kept it (`table.transaction.provisional`).
        is_ours: whether hudistream planned it, and no other engine.
    """

    operations: tuple[CompactionOperation, ...] = ()
    is_provisional: bool = False
    is_ours: bool = True


def encode_compaction_plan(plan: CompactionPlan) -> bytes:
    """Content of a ``.compaction.requested`` file."""
    operations = [
        {
            "baseInstantTime": operation.base_instant_time,
            "deltaFilePaths": list(operation.log_files),
            "dataFilePath": operation.base_file,
            "fileId": operation.file_id,
            "partitionPath": operation.partition_path,
            "metrics": dict(operation.metrics),
            "bootstrapFilePath": None,
        }
        for operation in plan.operations
    ]
    record = {
        "operations": operations,
        "extraMetadata": {
            **({_PLANNER: VERSION} if plan.is_ours else {}),
            **({_PROVISIONAL: "true"} if plan.is_provisional else {}),
        },
        "version": _VERSION,
        "strategy": None,
        "preserveHoodieMetadata": False,
        "missingSchedulePartitions": [],
    }
    return encode_record("compaction_plan", record)


def decode_compaction_plan(data: bytes, name: str = "") -> CompactionPlan:
    """The inverse of `encode_compaction_plan`; plans of version 1 hold whole paths.

    Args:
        data: the file's bytes.
        name: file name, for the error.

    Raises:
        CorruptFileError: the bytes are not a compaction plan.
    """
    record = decode_record("compaction_plan", data, name)
    extra = record.get("extraMetadata") or {}
    with read_as("compaction_plan", name):
        return CompactionPlan(
            tuple(
                CompactionOperation(
                    partition_of(operation["partitionPath"] or ""),
                    name_of(operation["fileId"]),
                    text_of(operation["baseInstantTime"]),
                    _base_name(operation["dataFilePath"]) if operation["dataFilePath"] else None,
                    tuple(_base_name(path) for path in texts_of(operation["deltaFilePaths"])),
                    dict(operation["metrics"] or {}),
                )
                for operation in record.get("operations") or ()
            ),
            _PROVISIONAL in extra,
            _PLANNER in extra or _PROVISIONAL in extra,
        )


def _base_name(path: str) -> str:
    return name_of(text_of(path).rpartition("/")[2])
