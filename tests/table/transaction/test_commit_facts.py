"""A compaction that another engine requests while a batch runs: which batches go on beside it."""

import pytest
from engine import Engine, rows

from table import read_table
from table.hudi_table import HudiTable
from table.options.groups import BaseFileSettings, CompactionSettings
from table.services.compaction.compaction import compact
from table.snapshot import Snapshot
from table.timeline.active_timeline import request_and_list
from table.timeline.instant import Action
from table.timeline.metadata.compaction import CompactionOperation, CompactionPlan, encode_compaction_plan
from table.view.file_system_view import walk_file_groups

LOGS = {
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.datasource.write.streaming.disable.compaction": "true",
}
ANOTHER = {"hoodie.datasource.write.streaming.checkpoint.identifier": "other"}
TO_LOGS = {"hoodie.parquet.small.file.limit": "0"}


def request_as_others_do(path):
    """Plans a compaction of every file slice, whatever is being written."""
    snapshot = Snapshot.load(HudiTable.open(path))
    newest = [group.slices[0] for _, groups in walk_file_groups(snapshot.listing, snapshot.slicing) for group in groups]
    operations = [
        CompactionOperation(
            one.partition_path,
            one.file_id,
            one.base_instant_time,
            one.base_file.name,
            tuple(log.name for log in one.log_files),
        )
        for one in newest
    ]
    content = encode_compaction_plan(CompactionPlan(tuple(operations), is_ours=False))
    table = snapshot.table
    return request_and_list(table.storage, snapshot.timeline, Action.COMPACTION, table.instant_clock, content)[0]


@pytest.mark.parametrize("ends", [False, True], ids=["requested", "completed"])
@pytest.mark.parametrize(
    ("version", "during", "plans"),
    [("8", TO_LOGS, 1), ("9", TO_LOGS, 1), ("6", TO_LOGS, 2), ("8", {}, 2)],
    ids=["8", "9", "layout 1", "a base file"],
)
def test_log_files_lie_above_a_compaction_that_was_requested_beside_them(tmp_path, version, during, plans, ends):
    """A batch goes on if it wrote log files alone. In layout 1, or with a base file, it is planned anew."""
    path, options = str(tmp_path / "t"), {**LOGS, "hoodie.write.table.version": version}
    first = Engine(path, {**options, **TO_LOGS})
    first.write(0, rows(range(6), partition=lambda _: "p"))
    first.writer.stop()
    stream, requested = Engine(path, {**options, **during, **ANOTHER}, query_id="other"), []
    inner = stream.distribute

    def meanwhile(plan, given):
        if not requested:
            requested.append(request_as_others_do(path))
            if ends:
                compact(HudiTable.open(path), CompactionSettings(), BaseFileSettings(), schedules=False)
        return inner(plan, given)

    stream.distribute = meanwhile
    stream.write(0, rows([0, 1, 10], partition=lambda _: "p", ts=3, v="3"))  # without log files a base file takes k10
    assert len(stream.plans) == plans
    stream.writer.stop()
    compact(HudiTable.open(path), CompactionSettings(), BaseFileSettings(), schedules=False)
    assert not HudiTable.open(path).load_timeline().pending
    found = {row["id"]: row["v"] for row in read_table(path).to_pylist()}
    assert found == {f"k{n}": "v" for n in range(2, 6)} | {f"k{n}": "3" for n in (0, 1, 10)}
