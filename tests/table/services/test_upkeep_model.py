"""Any sequence of batches, cleans, rollbacks, savepoints, restores and power cuts, against a model.

The model remembers what each commit's snapshot is made of. Whatever happens, a commit that cleaning
still retains, or a savepoint, finds all its files with the rows they had; and after a clean nothing is
left that no retained commit or savepoint needs.
"""

import shutil
import tempfile

import pyarrow.parquet as pq
from engine import Engine, key_set, rows
from faults import FaultyStorage, Fuse, PowerCut, dying_process
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from snapshots import base_files, snapshot_files
from tiers import examples

from table import read_table
from table.hudi_table import HudiTable
from table.options.groups import CleanSettings
from table.services.clean.clean import clean
from table.services.clean.plan import earliest_to_retain
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint, delete_savepoint
from table.timeline.active_timeline import load_timeline
from table.timeline.instant import Action

RETAINED = 2
SETTINGS = CleanSettings(commits_retained=RETAINED, grace_ms=0)
OPTIONS = {"hoodie.parquet.max.file.size": "12000"}


class Upkeep(RuleBasedStateMachine):
    """The table beside its model."""

    @initialize()
    def begin(self):
        self.folder = tempfile.mkdtemp()
        self.path = f"{self.folder}/t"
        self.snapshots = {}  # commit -> (files, keys)
        self.savepoints = set()
        self.floor = ""  # the earliest commit that some clean retained
        self.next_key = 0
        self.batch(3)

    def teardown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def table(self):
        return HudiTable.open(self.path)

    def commits(self):
        return [i.time for i in load_timeline(self.table.storage).completed_writes]

    def _observe(self):
        known = self.commits()
        for time in [t for t in self.snapshots if t not in known]:
            del self.snapshots[time]
        if known and known[-1] not in self.snapshots:
            self.snapshots[known[-1]] = (snapshot_files(self.path), key_set(read_table(self.path)))

    @rule(count=st.integers(1, 30))
    def batch(self, count):
        numbers = range(self.next_key, self.next_key + count)
        self.next_key += count
        Engine(self.path, OPTIONS).write(None, rows(numbers))
        self._observe()

    def _cut(self, at, after, act):
        """Does it on a store whose power goes at some call. Returns whether it went."""
        real = self.table
        try:
            with dying_process():
                act(HudiTable(FaultyStorage(real.storage, Fuse(at, after)), real.config))
        except PowerCut:
            return True
        return False

    @rule(at=st.integers(1, 60), after=st.booleans())
    def batch_that_dies(self, at, after):
        numbers = range(self.next_key, self.next_key + 5)
        self.next_key += 5
        self._cut(at, after, lambda table: Engine(table.storage, OPTIONS).write(None, rows(numbers)))
        self._observe()  # the power may have gone after the commit
        self.batch(1)  # undoes it, or finds it whole

    @rule(at=st.integers(1, 60), after=st.booleans(), dies=st.booleans())
    def clean(self, at, after, dies):
        line = load_timeline(self.table.storage)
        earliest = earliest_to_retain(line, SETTINGS, "")
        cut = dies and self._cut(at, after, lambda table: clean(table, SETTINGS))
        if earliest is not None:
            self.floor = max(self.floor, earliest.time)
        clean(self.table, SETTINGS)
        if cut:
            clean(self.table, SETTINGS)
        self._check_nothing_is_left_over()

    def _check_nothing_is_left_over(self):
        commits = self.commits()
        earliest = earliest_to_retain(load_timeline(self.table.storage), SETTINGS, "")
        if earliest is None:
            return
        # the version before the earliest commit retained stays with it, as Hudi has it
        at = commits.index(earliest.time)
        wanted = set()
        for time in [*commits[max(0, at - 1) :], *self.savepoints]:
            wanted |= set(self.snapshots[time][0]) if time in self.snapshots else set()
        older = [t for t in commits[:at] if t in self.snapshots]
        for time in older:
            wanted |= {f for f in self.snapshots[time][0] if self._is_newest_before(f, earliest.time)}
        assert set(base_files(self.path)) <= wanted

    def _is_newest_before(self, file, time):
        group = file.split("_")[0]
        versions = [f for f in base_files(self.path) if f.split("_")[0] == group]
        before = [f for f in versions if f.rsplit("_", 1)[1].split(".")[0] < time]
        return bool(before) and file == max(before, key=lambda f: f.rsplit("_", 1)[1])

    @precondition(lambda self: self.savepoints != {self.commits()[-1]} and len(self.commits()) > 1)
    @rule(at=st.integers(1, 60), after=st.booleans(), dies=st.booleans())
    def undo_the_newest(self, at, after, dies):
        newest = self.commits()[-1]
        if newest in self.savepoints:
            return
        cut = dies and self._cut(at, after, lambda table: roll_back(table, newest))
        if not cut and newest in self.commits():
            roll_back(self.table, newest)
        self.batch(1)  # finishes what was begun

    @rule()
    def make_savepoint(self):
        self.savepoints.add(create_savepoint(self.table))

    @precondition(lambda self: self.savepoints)
    @rule()
    def drop_savepoint(self):
        time = min(self.savepoints)
        self.savepoints.discard(time)
        delete_savepoint(self.table, time)

    @precondition(lambda self: self.savepoints)
    @rule(at=st.integers(1, 80), after=st.booleans(), dies=st.booleans())
    def restore(self, at, after, dies):
        time = max(self.savepoints)
        if dies:
            self._cut(at, after, lambda table: restore_to_savepoint(table, time))
        restore_to_savepoint(self.table, time)
        self._observe()
        assert snapshot_files(self.path) == self.snapshots[time][0]
        assert key_set(read_table(self.path)) == self.snapshots[time][1]

    @invariant()
    def what_is_retained_is_there(self):
        there = set(base_files(self.path))
        for time in self.commits():
            if time not in self.snapshots or (time < self.floor and time not in self.savepoints):
                continue
            files, keys = self.snapshots[time]
            assert set(files) <= there, f"{time} lost files"
            found = [key for file in files for key in pq.read_table(f"{self.path}/{file}").column("id").to_pylist()]
            assert sorted(found) == keys
        assert not load_timeline(self.table.storage).pending_of(Action.RESTORE)


TestUpkeep = Upkeep.TestCase
TestUpkeep.settings = settings(max_examples=examples(12), stateful_step_count=14, deadline=None)
