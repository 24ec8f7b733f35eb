"""What a table folder holds: rows, files of the snapshot, files on disk."""

import os

from table import read_table
from table.files.names import parse_base_file
from table.hudi_table import HudiTable
from table.snapshot import Snapshot
from table.storage.interface import TEMPORARY_PREFIX
from table.timeline.archived_timeline import read_archived_commits


def contents(path, columns=("id", "p", "ts", "v")):
    """The snapshot's rows as sorted tuples of these columns."""
    found = read_table(path, list(columns)).to_pylist()
    return sorted(tuple(row.values()) for row in found)


def base_files(path):
    """All base files on disk, below the table's path, sorted."""
    return sorted(
        os.path.relpath(os.path.join(folder, name), path)
        for folder, folders, names in os.walk(path)
        for name in names
        if name.endswith(".parquet") and ".hoodie" not in folder
    )


def snapshot_files(path):
    """The base files of the snapshot, below the table's path, sorted."""
    return sorted(file.path for file in list_snapshot_files(HudiTable.open(path)))


def live_files(path):
    """The base files of the snapshot as whole paths, in the view's order."""
    return [os.path.join(path, file.path) for file in list_snapshot_files(HudiTable.open(path))]


def assert_clean(path):
    """No marker, no temporary, no heartbeat, and no data file that no commit references."""
    hoodie = os.path.join(path, ".hoodie")
    assert os.listdir(os.path.join(hoodie, ".temp")) == []
    assert [name for name in os.listdir(hoodie) if name.startswith(TEMPORARY_PREFIX)] == []
    heartbeats = os.path.join(hoodie, ".heartbeat")
    assert not os.path.isdir(heartbeats) or os.listdir(heartbeats) == []
    table = HudiTable.open(path)
    timeline = table.load_timeline()
    assert timeline.pending == ()
    archived = {commit.time for commit in read_archived_commits(table.archived_timeline)}
    for folder, _, names in os.walk(path):
        for name in names:
            base = parse_base_file(name)
            if base is not None and not folder.startswith(hoodie):
                assert base.instant_time in timeline.committed_times | archived, f"{name} belongs to no commit"


def list_snapshot_files(table):
    """`base_files_of` the newest snapshot."""
    return base_files_of(Snapshot.load(table))


def base_files_of(snapshot):
    """The base files of a snapshot, by partition path and file group; none has log files on top of it."""
    walked = sorted(snapshot.walk_file_groups(), key=lambda found: found[0])
    slices = [group.merged_slice for _, groups in walked for group in groups]
    assert not any(found.log_files for found in slices)
    return [found.base_file for found in slices if found.base_file is not None]
