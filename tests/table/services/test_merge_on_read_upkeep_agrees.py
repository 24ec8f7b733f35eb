"""Merge-on-read: Hudi 1.0.2 reads and goes on after our archival, restores and rollbacks, and we after its own."""

import pytest
from engine import Engine, rows
from oracles.hudi import JVM

from table import read_table
from table.hudi_table import HudiTable
from table.options.groups import ArchiveSettings, BaseFileSettings, CleanSettings, CompactionSettings
from table.services.archival.archival import archive
from table.services.clean.clean import clean
from table.services.compaction.compaction import compact
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint
from table.timeline.archived_timeline import read_archived_commits
from table.timeline.instant import Action

pytestmark = [pytest.mark.hudi, pytest.mark.usefixtures("utc")]

OPTIONS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.datasource.compaction.async.enable": "false",
}
THEIRS = {
    **JVM,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
}
NARROW = ArchiveSettings(min_commits=3, max_commits=4, batch=4)
CLEAN = CleanSettings(commits_retained=1, grace_ms=0)
SOON = CompactionSettings(delta_commits=1)
FILES = BaseFileSettings()
KEYS = range(6)


def batch(number):
    return rows(KEYS, ts=number, v=f"v{number}")


class Both:
    """One table, and who writes its next batch."""

    def __init__(self, hudi, path):
        self.hudi, self.path, self.count = hudi, str(path), 0
        self.ours(1)

    @property
    def table(self):
        return HudiTable.open(self.path)

    @property
    def times(self):
        return [instant.time for instant in self.table.load_timeline().completed_writes]

    def ours(self, batches=1):
        engine = Engine(self.path, OPTIONS)
        for _ in range(batches):
            engine.write(None, batch(self.count))
            self.count += 1

    def theirs(self, batches=1, **options):
        for _ in range(batches):
            self.hudi.write(self.path, batch(self.count), {**THEIRS, **options})
            self.count += 1

    def values(self):
        """What both read."""
        seen = {row["id"]: row["v"] for row in read_table(self.path).to_pylist()}
        told = self.hudi.read(self.path, columns=["id", "v"])
        assert sorted((row["id"], row["v"]) for row in told) == sorted(seen.items())
        return seen

    def check(self, number):
        assert self.values() == {f"k{key}": f"v{number}" for key in KEYS}


@pytest.mark.slow
def test_hudi_goes_on_after_our_archival_and_we_after_its_own(hudi, tmp_path):
    both = Both(hudi, tmp_path / "t")
    both.theirs(2)
    compact(both.table, SOON, FILES)
    both.ours(2)
    both.theirs(2)
    before = both.times
    outcome = archive(both.table, NARROW, CLEAN, SOON)
    assert [i.time for i in outcome.instants if i.action is not Action.CLEAN] == before[:-3]
    both.check(6)
    shown = hudi.client(both.path, "archived_commits")
    assert all(any(instant.time in text for text in shown) for instant in outcome.instants)
    options = {
        "hoodie.archive.automatic": "true",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "1",
        "hoodie.clean.automatic": "true",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
    }
    both.theirs(4, **options)
    assert len({commit.time for commit in read_archived_commits(both.table.archived_timeline)}) > len(before) - 3
    both.check(10)
    both.ours(3)
    compact(both.table, SOON, FILES)
    clean(both.table, CLEAN)
    assert archive(both.table, ArchiveSettings(min_commits=2, max_commits=3), CLEAN, SOON).instants
    both.check(13)
    both.theirs(1)
    both.check(14)


@pytest.mark.slow  # test_savepoint.py has the quick one
@pytest.mark.parametrize(
    ("maker", "restorer"), [("ours", "theirs"), ("theirs", "ours"), ("ours", "ours"), ("theirs", "theirs")]
)
def test_a_savepoint_of_one_is_restored_by_the_other(hudi, tmp_path, maker, restorer):
    both = Both(hudi, tmp_path / "t")
    both.theirs(1)
    both.ours(1)
    time = both.times[-1]
    if maker == "ours":
        create_savepoint(both.table)
    else:
        hudi.client(both.path, "savepoint", time, "test", "why not")
    both.ours(1)
    both.theirs(1)
    compact(both.table, SOON, FILES)
    both.theirs(1)
    both.ours(1)
    both.check(6)
    if restorer == "ours":
        restore_to_savepoint(both.table, time, force=True)
    else:
        hudi.client(both.path, "restoreToSavepoint", time)
    assert both.times[-1] == time
    both.check(2)
    both.theirs(1)
    both.ours(1)
    compact(both.table, SOON, FILES)
    both.check(8)


@pytest.mark.slow  # test_merge_on_read_agrees.py has the quick one
@pytest.mark.parametrize(
    ("last", "undoer"), [("theirs", "ours"), ("ours", "theirs"), ("ours", "ours"), ("theirs", "theirs")]
)
def test_a_delta_commit_of_one_is_rolled_back_by_the_other(hudi, tmp_path, last, undoer):
    both = Both(hudi, tmp_path / "t")
    both.theirs(1)
    both.ours(1)
    getattr(both, last)(1)
    time = both.times[-1]
    if undoer == "ours":
        roll_back(both.table, time, force=True)
    else:
        assert hudi.client(both.path, "rollback", time) == "True"
    assert time not in both.times
    both.check(2)
    both.theirs(1)
    both.check(4)
    both.ours(4)
    clean(both.table, CLEAN)
    assert archive(both.table, NARROW, CLEAN, SOON).instants
    both.check(8)
    compact(both.table, SOON, FILES)
    both.theirs(1)
    both.check(9)
