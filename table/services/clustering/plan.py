"""Which slices of a table are clustered (pure; PartitionAwareClusteringPlanStrategy and the classes below it)."""

import math
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence

from table.files.names import BaseFileName, parse_base_file
from table.options.clustering_settings import ClusteringSettings, Layout, PartitionFilter
from table.timeline.metadata.clustering import ClusteredSlice, ClusteringGroup, ClusteringPlan
from table.view.file_group import FileSlice

_MB = 1024 * 1024
_CLUSTERED = 1_000_000_000  # from here on, the number of a stage in a write token stands for an order


def choose_partitions(paths: Iterable[str], settings: ClusteringSettings, hour: int = 0) -> list[str]:
    """The partition paths that a plan looks at, in order (ClusteringPlanPartitionFilter).

    Args:
        paths: the partition paths of the table.
        settings: the filter and its bounds.
        hour: the hour of the day, in the table's time zone. By it DAY_ROLLING takes one of 24 parts of the partitions.
    """
    found = sorted(paths)
    if settings.partitions:
        wanted = set(settings.partitions)
        found = [path for path in found if path in wanted]
    if settings.partition_pattern is not None:
        pattern = re.compile(settings.partition_pattern)
        found = [path for path in found if pattern.fullmatch(path)]
    mode = settings.partition_filter
    if mode is PartitionFilter.RECENT_DAYS:
        newest = sorted(found, reverse=True)[settings.days_skipped : settings.days_skipped + settings.days]
        return sorted(newest)
    if mode is PartitionFilter.SELECTED_PARTITIONS:
        first, last = settings.first_partition, settings.last_partition
        return [path for path in found if (first is None or path >= first) and (last is None or path <= last)]
    if mode is PartitionFilter.DAY_ROLLING:
        return [path for number, path in enumerate(found) if number % 24 == hour]
    return found


def plan_clustering(slices: Iterable[FileSlice], settings: ClusteringSettings) -> ClusteringPlan:
    """Plans which slices are rewritten together.

    Slices are left alone if one clustering of the same order made all of them, and nothing was added to them. Hudi
    rewrites such slices again and again.

    Args:
        slices: the newest slice of each file group, without file groups that a pending service will rewrite.
        settings: bounds of files and groups, and the order.
    """
    by_path: dict[str, list[FileSlice]] = {}
    for one in slices:
        if _base_bytes(one) < settings.small_file_bytes:
            by_path.setdefault(one.partition_path, []).append(one)
    groups: list[ClusteringGroup] = []
    for path in sorted(by_path):
        for members in _packed(by_path[path], settings.group_bytes):
            if _is_worth_it(members, settings):
                groups.append(_group_of(members, settings))
            if len(groups) == settings.most_groups:
                return ClusteringPlan(tuple(groups), settings.sort_columns)
    return ClusteringPlan(tuple(groups), settings.sort_columns)


def _packed(slices: Sequence[FileSlice], most_bytes: int) -> Iterator[list[FileSlice]]:
    """Fills groups, the largest slice first."""
    held: list[FileSlice] = []
    held_bytes = 0
    for one in sorted(slices, key=lambda found: (-slice_bytes(found), found.file_id)):
        if held and held_bytes + slice_bytes(one) > most_bytes:
            yield held
            held, held_bytes = [], 0
        held.append(one)
        held_bytes += slice_bytes(one)
    if held:
        yield held


def _is_worth_it(members: Sequence[FileSlice], settings: ClusteringSettings) -> bool:
    is_single, has_logs = len(members) == 1, any(one.log_files for one in members)
    if is_single and (not settings.takes_single or not (settings.sort_columns or has_logs)):
        return False
    names = [parse_base_file(one.base_file.name) if one.base_file is not None else None for one in members]
    written = {None if name is None else name.instant_time for name in names}
    return has_logs or len(written) > 1 or not all(name is not None and _is_in_order(name, settings) for name in names)


def order_number(columns: Sequence[str], layout: Layout) -> int:
    """The number of an order of rows, for the write tokens of the files that have it.

    So the name of a file says that a clustering has made it, and in which order. The name lasts as long as the file.
    The timeline forgets. Spark numbers its stages from 0, and never reaches such a number.

    Args:
        columns: the sort columns.
        layout: of several columns; of one there is only one order.
    """
    text = f"{layout if len(columns) > 1 else ''}:{','.join(columns)}"
    return _CLUSTERED + zlib.crc32(text.encode()) % _CLUSTERED


def _is_in_order(name: BaseFileName, settings: ClusteringSettings) -> bool:
    """Whether a clustering has made the file in this order. Without sort columns, any order counts."""
    stage = name.write_token.split("-")[1:2]
    number = int(stage[0]) if stage and stage[0].isdigit() else 0
    if not settings.sort_columns:
        return number >= _CLUSTERED
    return number == order_number(settings.sort_columns, settings.layout)


def _group_of(members: Sequence[FileSlice], settings: ClusteringSettings) -> ClusteringGroup:
    size, log_bytes = sum(map(slice_bytes, members)), sum(log.size_bytes for one in members for log in one.log_files)
    logs = sum(len(one.log_files) for one in members)
    read_mb = float(size // _MB)
    metrics = {
        "TOTAL_LOG_FILES": float(logs),
        "TOTAL_LOG_FILES_SIZE": float(log_bytes),
        "TOTAL_IO_READ_MB": read_mb,
        "TOTAL_IO_WRITE_MB": read_mb,
        "TOTAL_IO_MB": 2 * read_mb,
    }
    planned = tuple(
        ClusteredSlice(
            one.partition_path,
            one.file_id,
            one.base_file.name if one.base_file is not None else None,
            tuple(log.name for log in one.log_files),
        )
        for one in sorted(members, key=lambda found: found.file_id)
    )
    return ClusteringGroup(planned, max(1, math.ceil(size / settings.target_bytes)), metrics)


def slice_bytes(found: FileSlice) -> int:
    """Bytes of a slice's files."""
    return _base_bytes(found) + sum(log.size_bytes for log in found.log_files)


def _base_bytes(found: FileSlice) -> int:
    return found.base_file.size_bytes if found.base_file is not None else 0
