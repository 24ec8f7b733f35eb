"""Hudi compacts a merge-on-read table of version 8 or 9 while a batch of ours runs, which goes on above it."""

import pyarrow as pa
import pytest
from engine import SCHEMA, Engine
from oracles import hudi_rs
from turns import COLUMNS, LOGS, OURS, Model, write_theirs

from table import read_table
from table.hudi_table import HudiTable
from table.timeline.instant import Action

pytestmark = pytest.mark.hudi

SHARED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.num.retries.on.conflict.failures": "0",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.parquet.small.file.limit": "0",  # updates go to log files
}
PLANS = {"hoodie.compact.inline.max.delta.commits": "1"}


@pytest.mark.parametrize(
    "executes",
    [pytest.param(True, marks=pytest.mark.slow), pytest.param(False, marks=pytest.mark.slow)],
    ids=["executed beside it, too", "requested alone"],
)
@pytest.mark.parametrize("version", [8, pytest.param(9, marks=pytest.mark.slow)])
def test_a_batch_goes_on_above_a_compaction_that_hudi_requested_beside_it(version, executes, partners, tmp_path, utc):
    """Its log files belong to the slices to come, whether Hudi carries the compaction out at once or later."""
    # Hudi 1.0.2 fails on a delete and a later record of one key in one log
    path, hudi, model = str(tmp_path / "t"), partners[version], Model(version, revives=version != 8)
    shared = {**SHARED, **LOGS, "hoodie.write.table.version": str(version)}
    stream = Engine(path, {**OURS, **shared, "hoodie.datasource.write.streaming.disable.compaction": "true"})
    for number in range(3):
        stream.write(number, model.draw())
    inner, during = stream.distribute, model.draw()

    def meanwhile(plan, given):
        written = inner(plan, given)
        rows = [{**dict.fromkeys(COLUMNS), "id": f"b{n}", "p": "beside", "ts": 1, "v": "theirs"} for n in range(3)]
        how = {
            "hoodie.compact.inline": str(executes).lower(),
            "hoodie.compact.schedule.inline": str(not executes).lower(),
        }
        write_theirs(hudi, path, version, pa.Table.from_pylist(rows, SCHEMA), **shared, **PLANS, **how)
        model.rows |= {row["id"]: tuple(row[name] for name in COLUMNS) for row in rows}
        return written

    stream.distribute = meanwhile
    before = len(stream.plans)
    stream.write(3, during)
    assert len(stream.plans) == before + 1  # it was not planned anew
    stream.distribute = inner
    timeline = HudiTable.open(path).load_timeline()
    ours = timeline.completed_of(Action.DELTA_COMMIT)[-1]
    compactions = (*timeline.pending_of(Action.COMPACTION), *timeline.completed_of(Action.COMMIT))
    assert [ours.time < one.time < ours.completion_time for one in compactions] == [True]
    assert bool(timeline.pending_of(Action.COMPACTION)) == (not executes)
    model.check(path, hudi)
    write_theirs(hudi, path, version, model.draw(), **shared, **PLANS, **{"hoodie.compact.inline": "true"})
    model.check(path, hudi)
    assert not HudiTable.open(path).load_timeline().pending
    stream.write(4, model.draw())
    stream.writer.stop()
    model.check(path, hudi)
    found = {row["id"]: row["v"] for row in hudi_rs.read(path).to_pylist()}
    assert found == {row["id"]: row["v"] for row in read_table(path).to_pylist()}
