"""What Hudi's own commands say of tables that we wrote: commits, files, statistics, services, log blocks.

Each procedure of its Spark bundle that reads, and its table functions, look at a table on which all services have run.
What they say is compared with the table's own files and with what we say.
"""

import os
import uuid
from collections import Counter

import pyarrow.parquet as pq
import pytest
from engine import STATISTICS, Engine, form_of, rows

from hudistream import HudiTable
from table import read_table
from table.options.groups import ArchiveSettings, CleanSettings
from table.snapshot import Snapshot
from table.storage.interface import METAFOLDER
from table.timeline.instant import Action

pytestmark = pytest.mark.hudi

SERVICES = {
    "COPY_ON_WRITE": {
        "hoodie.clustering.inline": "true",
        "hoodie.clustering.inline.max.commits": "4",
        "hoodie.clustering.plan.strategy.sort.columns": "v",
    },
    "MERGE_ON_READ": {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "4"},
}
# version of the table and its type; who looks
FORMS = {
    "8 MERGE_ON_READ": 8,
    "9 COPY_ON_WRITE": 9,
    "6 COPY_ON_WRITE": 6,
    "6 MERGE_ON_READ": 6,
    "8 COPY_ON_WRITE": 8,
    "9 MERGE_ON_READ": 9,
}


class Eyes:
    """A table of ours as the commands of one Hudi see it."""

    def __init__(self, hudi, path):
        self._hudi, self.path = hudi, path
        self._name = f"seen_{uuid.uuid4().hex}"
        hudi.sql(f"create table {self._name} using hudi location '{path}'")

    def call(self, procedure, **given):
        """The rows of a procedure."""
        named = {"table": self._name, "limit": 1000, **given}
        arguments = ", ".join(f"{key} => {value!r}" for key, value in named.items() if value is not None)
        (found,) = self._hudi.sql(f"call {procedure}({arguments})")
        return found

    def select(self, what):
        """The rows of a query."""
        (found,) = self._hudi.sql(f"select {what}")
        return found

    def close(self):
        self._hudi.sql(f"drop table {self._name}")


def build(path, version, table_type):
    """A table on which each service has run: compaction or clustering, clean, archival, savepoint, rollback."""
    engine = Engine(path, {**form_of(version, table_type), **STATISTICS, **SERVICES[table_type]})
    for number in range(7):
        keys = range(4 * number, 4 * number + 8) if number % 2 == 0 else range(4 * number - 3, 4 * number)
        engine.write(number, rows(keys, ts=number, v=f"v{number}"))
    engine.writer.stop()
    table = HudiTable.open(path)
    undone = table.load_timeline().completed_writes[-1]
    table.roll_back(undone.time, force=True)
    table.create_savepoint(comment="seen")
    cleaning = CleanSettings(commits_retained=2, grace_ms=0)
    table.clean(cleaning)
    table.archive(ArchiveSettings(min_commits=4, max_commits=5), cleaning)
    engine = Engine(path, {**form_of(version, table_type), **STATISTICS})
    engine.write(None, rows(range(2, 5), ts=8, v="v8"))
    engine.writer.stop()
    return HudiTable.open(path)


@pytest.fixture(params=FORMS)
def seen(request, partners, tmp_path, utc):
    version, table_type = request.param.split()
    table = build(str(tmp_path / "t"), version, table_type)
    eyes = Eyes(partners[FORMS[request.param]], str(tmp_path / "t"))
    yield table, eyes
    eyes.close()


def summed(stats, name):
    return sum(getattr(stat, name) for stat in stats)


@pytest.mark.slow
def test_hudis_commands_say_of_our_table_what_is_there(seen):
    """One test for all of them: to make the table takes longer than to look at it."""
    table, eyes = seen
    snapshot = Snapshot.load(table)
    timeline, is_log_table = snapshot.timeline, table.config.table_type == "MERGE_ON_READ"
    check_commits(eyes, commits_of(snapshot))
    check_files(eyes, snapshot)
    check_statistics(eyes, snapshot)
    check_services(eyes, snapshot, is_log_table=is_log_table)
    check_properties(eyes)
    if is_log_table:
        check_logs(eyes, snapshot)
    check_functions(eyes, table, timeline)


def check_commits(eyes, commits):
    shown = {row["commit_time"]: row for row in eyes.call("show_commits")}
    # a table's compactions are commits; its clusterings are shown apart
    assert shown.keys() <= commits.keys()
    assert {time for time, commit in commits.items() if commit.operation not in ("CLUSTER", "")} <= shown.keys()
    for time, row in shown.items():
        stats = commits[time].stats
        assert row["total_bytes_written"] == summed(stats, "total_write_bytes")
        assert row["total_records_written"] == summed(stats, "num_writes")
        assert row["total_update_records_written"] == summed(stats, "num_update_writes")
        assert row["total_partitions_written"] == len({stat.partition_path for stat in stats})
        assert row["total_errors"] == 0
        files = eyes.call("show_commit_files", instant_time=time)
        assert Counter(row["file_id"] for row in files) == Counter(stat.file_id for stat in stats)
        assert sum(row["file_size"] for row in files) == summed(stats, "file_size_bytes")
        paths = eyes.call("show_commit_partitions", instant_time=time)
        assert {row["partition_path"] for row in paths} == {stat.partition_path for stat in stats}
        (schema,) = eyes.call("show_commit_extra_metadata", instant_time=time, metadata_key="schema")
        assert schema["metadata_value"] == commits[time].extra["schema"]


def check_files(eyes, snapshot):
    for path in snapshot.list_partition_paths():
        ours = {group.file_id: group.latest_slice for group in snapshot.list_file_groups(path)}
        theirs = {row["file_id"]: row for row in eyes.call("show_fsview_latest", partition_path=path)}
        assert theirs.keys() == ours.keys()
        for file_id, found in ours.items():
            row = theirs[file_id]
            assert os.path.basename(row["data_file"]) == found.base_file.name
            assert row["data_file_size"] == found.base_file.size_bytes
            assert row["num_delta_files"] == len(found.log_files)
            assert row["total_delta_file_size"] == sum(log.size_bytes for log in found.log_files)
    assert eyes.call("show_invalid_parquet", table=None, path=eyes.path, limit=None) == []


def check_statistics(eyes, snapshot):
    assert {row["partition"] for row in eyes.call("show_metadata_table_partitions")} == set(
        snapshot.list_partition_paths()
    )
    for path in snapshot.list_partition_paths():
        listed = {row["file_path"] for row in eyes.call("show_metadata_table_files", partition=path)}
        there = os.listdir(os.path.join(eyes.path, path))
        assert listed == {name for name in there if not name.startswith(".hoodie")}
        bounds = eyes.call("show_metadata_table_column_stats", partition=path, targetColumns="ts", limit=None)
        for row in bounds:
            if row["file_name"].endswith(".parquet"):
                stored = pq.read_table(os.path.join(eyes.path, path, row["file_name"])).column("ts").to_pylist()
                assert (row["min_value"], row["max_value"]) == (str(min(stored)), str(max(stored)))
        is_log_table = snapshot.config.table_type == "MERGE_ON_READ"
        assert bounds or is_log_table  # of those it shows none
    assert all(
        row["is_present_in_fs"] and row["is_present_in_metadata"] and row["fs_size"] == row["metadata_size"]
        for row in eyes.call("validate_metadata_table_files", verbose=True, limit=None)
    )


def check_services(eyes, snapshot, *, is_log_table):
    timeline = snapshot.timeline
    savepoints = {row["savepoint_time"] for row in eyes.call("show_savepoints", limit=None)}
    assert savepoints == {instant.time for instant in timeline.completed_of(Action.SAVEPOINT)}
    rollbacks = {row["instant"]: row for row in eyes.call("show_rollbacks")}
    assert rollbacks.keys() == {instant.time for instant in timeline.completed_of(Action.ROLLBACK)}
    for time in rollbacks:
        assert eyes.call("show_rollback_detail", instant_time=time)
    years = {"start_ts": "2000", "end_ts": "2999"}
    archived = {row["commit_time"] for row in eyes.call("show_archived_commits", **years)}
    ours = {commit.time for commits in snapshot.table.archived_timeline.read_files() for commit in commits}
    assert archived == ours
    assert ours
    if not is_log_table:
        assert any(commit.operation == "CLUSTER" for commit in commits_of(snapshot).values())
        return
    (compaction,) = eyes.call("show_compaction")
    assert (compaction["state"], compaction["timestamp"] in commits_of(snapshot)) == ("COMPLETED", True)


def commits_of(snapshot):
    return {instant.time: snapshot.commits.find(instant) for instant in snapshot.timeline.completed_writes}


def check_properties(eyes):
    shown = {row["key"]: row["value"] for row in eyes.call("show_table_properties")}
    with open(os.path.join(eyes.path, METAFOLDER, "hoodie.properties")) as file:
        lines = [line.strip().split("=", 1) for line in file if line.strip() and not line.startswith("#")]
    assert shown.keys() == {key for key, _ in lines}


def check_logs(eyes, snapshot):
    groups = [group for path in snapshot.list_partition_paths() for group in snapshot.list_file_groups(path)]
    logs = [log for group in groups for log in group.latest_slice.log_files]
    assert logs
    for log in logs:
        pattern = os.path.join(eyes.path, log.path)
        blocks = eyes.call("show_logfile_metadata", log_file_path_pattern=pattern)
        assert blocks
        assert eyes.call("show_logfile_records", log_file_path_pattern=pattern, merge=False)


def check_functions(eyes, table, timeline):
    (counted,) = eyes.select(f"count(*) c from hudi_table_changes('{eyes.path}', 'latest_state', 'earliest')")
    times = read_table(eyes.path, ["_hoodie_commit_time"]).column(0).to_pylist()
    # in copy-on-write tables of version 6 the earliest commit is the first one that is not archived
    is_cut = table.config.version == 6 and table.config.table_type == "COPY_ON_WRITE"
    first = timeline.first_active_time if is_cut else ""
    assert counted["c"] == sum(time >= first for time in times)
    shown = {row["Timestamp"] for row in eyes.select(f"* from hudi_query_timeline('{eyes.path}', 'false')")}
    assert shown >= {instant.time for instant in timeline.completed_writes}
    view = eyes.select(f"* from hudi_filesystem_view('{eyes.path}', '*')")
    assert {row["Partition_Path"] for row in view} == set(Snapshot.load(table).list_partition_paths())
    assert eyes.select(f"count(*) c from hudi_metadata('{eyes.path}')")[0]["c"] > 0
