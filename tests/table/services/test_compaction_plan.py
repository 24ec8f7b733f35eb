"""When a table is compacted, and which slices a strategy takes: by table."""

import pytest

from table.options.choices import CompactionStrategy, CompactionTrigger
from table.options.groups import CompactionSettings
from table.services.compaction.plan import is_due, plan_compaction
from table.view.file_group import BaseFile, FileGroup, FileSlice, LogFile

MB = 1 << 20
TRIGGERS = CompactionTrigger


@pytest.mark.parametrize(
    ("trigger", "commits", "elapsed_s", "expected"),
    [
        (TRIGGERS.NUM_COMMITS, 4, 9999, False),
        (TRIGGERS.NUM_COMMITS, 5, 0, True),
        (TRIGGERS.TIME_ELAPSED, 99, 59, False),
        (TRIGGERS.TIME_ELAPSED, 1, 60, True),
        (TRIGGERS.NUM_AND_TIME, 5, 59, False),
        (TRIGGERS.NUM_AND_TIME, 5, 60, True),
        (TRIGGERS.NUM_OR_TIME, 4, 59, False),
        (TRIGGERS.NUM_OR_TIME, 4, 60, True),
        *((trigger, 0, 9999, False) for trigger in TRIGGERS if trigger is not TRIGGERS.NUM_COMMITS),
    ],
)
def test_when(trigger, commits, elapsed_s, expected):
    settings = CompactionSettings(trigger=trigger, delta_commits=5, delta_seconds=60)
    assert is_due(commits, elapsed_s, settings) is expected


def group(path, file_id, base_mb, *log_mb, suffix=""):
    """A file group of one slice."""
    base = BaseFile(path, f"{file_id}_0_1.parquet", file_id, "1", base_mb * MB) if base_mb else None
    logs = tuple(
        LogFile(path, f".{file_id}_1.log.{n}{suffix}", file_id, "1", n, "", suffix, size * MB)
        for n, size in enumerate(log_mb, 1)
    )
    return FileGroup(path, file_id, (FileSlice(path, file_id, "1", base, *((), logs) if suffix else (logs,)),))


GROUPS = [
    group("2026/01/03", "few", 10, 9),
    group("2026/01/01", "many", 20, 1, 1, 1),
    group("2026/01/02", "alone", 0, 4),
    group("2026/01/02", "none", 50),
    group("2026/01/02", "changes", 50, 1, suffix=".cdc"),
]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["few", "alone", "many"]),
        ({"log_bytes": 4 * MB}, ["few", "alone"]),
        ({"strategy": CompactionStrategy.LOG_FILE_NUM}, ["many", "alone", "few"]),
        ({"strategy": CompactionStrategy.LOG_FILE_NUM, "log_files": 2}, ["many"]),
        ({"strategy": CompactionStrategy.BOUNDED_IO}, ["many", "alone", "few"]),
        # read and written: many 23 + 20, alone 4 + 4, few 19 + 10
        ({"strategy": CompactionStrategy.BOUNDED_IO, "target_io_mb": 51}, ["many", "alone"]),
        ({"strategy": CompactionStrategy.BOUNDED_IO, "target_io_mb": 50}, ["many"]),
        ({"strategy": CompactionStrategy.BOUNDED_IO, "target_io_mb": 1}, ["many"]),
        ({"strategy": CompactionStrategy.UNBOUNDED, "target_io_mb": 1}, ["many", "alone", "few"]),
        ({"strategy": CompactionStrategy.DAY_BASED, "days": 2, "target_io_mb": 1}, ["few", "alone"]),
    ],
)
def test_which_slices(settings, expected):
    plan = plan_compaction(GROUPS, CompactionSettings(**settings))
    assert [one.file_id for one in plan.operations] == expected
    assert all(one.log_files for one in plan.operations)


def test_a_slice_without_a_base_file_is_written_as_large_as_its_logs():
    (found,) = plan_compaction([GROUPS[2]], CompactionSettings()).operations
    assert (found.base_file, found.metrics["TOTAL_IO_READ_MB"], found.metrics["TOTAL_IO_WRITE_MB"]) == (None, 4.0, 4.0)
