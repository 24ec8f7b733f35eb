"""Plans of clusterings <-> Avro (HoodieRequestedReplaceMetadata with a HoodieClusteringPlan)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from table.timeline.metadata.avro_record import decode_record, encode_record, read_as, text_of, texts_of
from table.timeline.metadata.places import name_of, partition_of
from table.version import VERSION

OPERATION = "CLUSTER"
"""Hudi's name of the operation, in commits and in plans."""

_PLANNER = "hudistream.version"
_SCHEDULER, _LAYOUT = "hudistream.scheduled.by", "hudistream.layout"
_SORT_COLUMNS = "hoodie.clustering.plan.strategy.sort.columns"
_STRATEGY = "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class ClusteredSlice:
    """One slice that a clustering rewrites (HoodieSliceInfo).

    Attributes:
        partition_path: "" in a non-partitioned table.
        file_id: id of the file group.
        base_file: name of the base file; None if the slice has only log files.
        log_files: names of the log files, oldest first.
    """

    partition_path: str
    file_id: str
    base_file: str | None
    log_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    """Slices of one partition path whose rows are sorted together (HoodieClusteringGroup).

    Attributes:
        slices: at least one.
        files: number of file groups to which the rows are distributed.
        metrics: the numbers of the planner.
    """

    slices: tuple[ClusteredSlice, ...]
    files: int = 1
    metrics: Mapping[str, float] = field(default_factory=dict)

    @property
    def partition_path(self) -> str:
        """The partition path of all slices."""
        return self.slices[0].partition_path


@dataclass(frozen=True)
class ClusteringPlan:
    """What a clustering does (HoodieClusteringPlan).

    Attributes:
        groups: groups of slices.
        sort_columns: columns by which the rows of a group are sorted.
        is_ours: whether the process that planned it carries it out in the same turn. False for the plans of other
            engines, and for those that hudistream leaves to a later process: all writers treat them alike.
        scheduled_by: id of the sink that planned it, and carries it out beside its batches; None for any other plan.
        layout: the order of several sort columns (``hoodie.layout.optimize.strategy``); None: it is not named.
    """

    groups: tuple[ClusteringGroup, ...] = ()
    sort_columns: tuple[str, ...] = ()
    is_ours: bool = True
    scheduled_by: str | None = None
    layout: str | None = None

    @property
    def file_groups(self) -> frozenset[tuple[str, str]]:
        """(partition path, file id) of the slices that it reads."""
        return frozenset((one.partition_path, one.file_id) for group in self.groups for one in group.slices)

    @property
    def replaced(self) -> dict[str, tuple[str, ...]]:
        """Partition path -> the file ids that the clustering replaces."""
        found: dict[str, list[str]] = {}
        for group in self.groups:
            found.setdefault(group.partition_path, []).extend(one.file_id for one in group.slices)
        return {path: tuple(ids) for path, ids in found.items()}


def encode_clustering_plan(plan: ClusteringPlan, address: str) -> bytes:
    """Content of the request of a clustering.

    Args:
        plan: the plan.
        address: the table's address. Hudi's plans name files by whole addresses.
    """

    def whole(path: str, name: str | None) -> str:
        return "/".join(part for part in (address.rstrip("/"), path, name) if part) if name else ""

    groups = [
        {
            "slices": [
                {
                    "dataFilePath": whole(one.partition_path, one.base_file),
                    "deltaFilePaths": [whole(one.partition_path, name) for name in one.log_files],
                    "fileId": one.file_id,
                    "partitionPath": one.partition_path,
                    "bootstrapFilePath": "",
                    "version": _VERSION,
                }
                for one in group.slices
            ],
            "metrics": dict(group.metrics),
            "numOutputFileGroups": group.files,
            "extraMetadata": None,
            "version": _VERSION,
        }
        for group in plan.groups
    ]
    params = {_SORT_COLUMNS: ",".join(plan.sort_columns)} if plan.sort_columns else {}
    record = {
        "operationType": OPERATION,
        "clusteringPlan": {
            "inputGroups": groups,
            "strategy": {"strategyClassName": _STRATEGY, "strategyParams": params, "version": _VERSION},
            "extraMetadata": _extra_of(plan),
            "version": _VERSION,
            "preserveHoodieMetadata": True,
            "missingSchedulePartitions": [],
        },
        "extraMetadata": {},
        "version": _VERSION,
    }
    return encode_record("requested_replace", record)


def decode_clustering_plan(data: bytes, name: str = "") -> ClusteringPlan | None:
    """The inverse of `encode_clustering_plan`; None: the request is not one of a clustering.

    Args:
        data: the file's bytes.
        name: file name, for the error.

    Raises:
        CorruptFileError: the bytes are not the request of a replace commit, or name files outside of the table.
    """
    if not data:
        return None
    record = decode_record("requested_replace", data, name)
    plan = record.get("clusteringPlan")
    if plan is None:
        return None
    with read_as("requested_replace", name):
        params = (plan.get("strategy") or {}).get("strategyParams") or {}
        extra = plan.get("extraMetadata") or {}
        return ClusteringPlan(
            tuple(
                ClusteringGroup(
                    tuple(
                        ClusteredSlice(
                            partition_of(one["partitionPath"] or ""),
                            name_of(one["fileId"]),
                            _base_name(one["dataFilePath"]) if one["dataFilePath"] else None,
                            tuple(_base_name(path) for path in texts_of(one["deltaFilePaths"])),
                        )
                        for one in group["slices"] or ()
                    ),
                    int(group["numOutputFileGroups"] or 1),
                    dict(group["metrics"] or {}),
                )
                for group in plan.get("inputGroups") or ()
            ),
            tuple(column.strip() for column in str(params.get(_SORT_COLUMNS, "")).split(",") if column.strip()),
            _PLANNER in extra,
            extra.get(_SCHEDULER),
            extra.get(_LAYOUT),
        )


def _extra_of(plan: ClusteringPlan) -> dict[str, str]:
    if plan.is_ours:
        return {_PLANNER: VERSION}
    named = {_SCHEDULER: plan.scheduled_by, _LAYOUT: plan.layout}
    return {key: value for key, value in named.items() if value is not None}


def is_of_others(data: bytes, name: str = "") -> bool:
    """Whether the request of a replace commit holds the plan of a clustering that another engine made.

    Args:
        data: the file's bytes. Requests of overwrites are empty, or hold no plan.
        name: file name, for the error.

    Raises:
        CorruptFileError: the bytes are not the request of a replace commit.
    """
    plan = decode_record("requested_replace", data, name).get("clusteringPlan") if data else None
    if plan is None:
        return False
    return not (isinstance(plan, Mapping) and _PLANNER in (plan.get("extraMetadata") or {}))


def _base_name(path: str) -> str:
    return name_of(text_of(path).rpartition("/")[2])
