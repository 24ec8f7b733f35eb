"""Tables of versions 8 and 9 that our writer and Hudi's write in turns: rows are equal after every batch.

Hudi 1.0.2 makes version 8, Hudi 1.2.0 version 9.
"""

import random
from unittest import mock

import pyarrow as pa
import pytest
from engine import OPTIONS, Engine, leave_a_dead_batch
from oracles.hudi import Hudi

from streaming.batch import opening
from table import read_table
from table.hudi_table import HudiTable
from table.options.groups import ArchiveSettings, CleanSettings
from table.services.archival.archival import archive
from table.services.clean.clean import clean
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint, delete_savepoint
from table.timeline.archived_timeline import read_archived_commits

pytestmark = pytest.mark.hudi

COLUMNS = ["id", "p", "ts", "v"]
THEIRS = {
    **{key: value for key, value in OPTIONS.items() if "automatic" not in key},
    "hoodie.table.name": "t",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.metadata.enable": "false",
}
SERVICES = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "1",
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
}
OURS = {"hoodie.datasource.write.operation": "upsert"}


@pytest.fixture(scope="module")
def writers(hudi):
    later = Hudi("1.2.0")
    yield {8: hudi, 9: later}
    later.stop()


class Model:
    """What an upserted table holds: of each key the record with the greater ordering value, the later one of equals."""

    def __init__(self, seed):
        self.rows, self._random, self._time = {}, random.Random(seed), 0

    def draw(self, count=12):
        """Records of as many keys, some of them known, some late."""
        self._time += 10
        numbers = self._random.sample(range(40), count)
        made = [(f"k{n}", f"p{n % 3}", self._time - self._random.choice((0, 0, 25)), f"v{self._time}") for n in numbers]
        for row in made:
            if row[0] not in self.rows or row[2] >= self.rows[row[0]][2]:
                self.rows[row[0]] = row
        return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in made])

    def draw_apart(self):
        """Records that never become visible."""
        return pa.Table.from_pylist([dict(zip(COLUMNS, ("lost", "p0", 1, "lost"), strict=True))])

    def delete(self, count=3):
        """Rows of as many keys, which are deleted."""
        gone = self._random.sample(sorted(self.rows), min(count, len(self.rows)))
        rows = [self.rows.pop(key) for key in gone]
        return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows])

    def check(self, path, hudi):
        wanted = sorted(self.rows.values())
        assert sorted(tuple(row[c] for c in COLUMNS) for row in read_table(path, COLUMNS).to_pylist()) == wanted
        assert sorted(tuple(row[c] for c in COLUMNS) for row in hudi.read(path, columns=COLUMNS)) == wanted


def write_theirs(hudi, path, version, rows, **more):
    hudi.write(path, rows, {**THEIRS, "hoodie.write.table.version": str(version), **more})


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("version", "first"),
    [(8, "ours"), (9, "theirs"), pytest.param(8, "theirs", marks=SLOW), pytest.param(9, "ours", marks=SLOW)],
)
def test_batches_in_turns(version, first, writers, tmp_path, utc):
    path, hudi, model = str(tmp_path / "t"), writers[version], Model(version)
    ours_next = first == "ours"
    for number in range(6):
        if ours_next:
            Engine(path, {**OURS, "hoodie.write.table.version": str(version)}).write(number, model.draw())
        else:
            write_theirs(hudi, path, version, model.draw())
        model.check(path, hudi)
        ours_next = not ours_next
    gone = model.delete()
    Engine(path, {"hoodie.datasource.write.operation": "delete"}).write(10, gone)
    model.check(path, hudi)
    write_theirs(hudi, path, version, model.delete(), **{"hoodie.datasource.write.operation": "delete"})
    model.check(path, hudi)
    assert HudiTable.open(path).config.version == version


@pytest.mark.parametrize("version", [pytest.param(8, marks=SLOW), 9])
def test_services_in_turns(version, writers, tmp_path, utc):
    """Cleans, failed batches, archivals, savepoints and restores of either, on a table that both write."""
    path, hudi, model = str(tmp_path / "t"), writers[version], Model(version + 1)
    settings = CleanSettings(commits_retained=1, grace_ms=0)
    options = {**OURS, "hoodie.write.table.version": str(version)}
    for number in range(4):
        Engine(path, options).write(number, model.draw())
    leave_a_dead_batch(Engine(path, options), 4, model.draw_apart())
    assert clean(HudiTable.open(path), settings)
    model.check(path, hudi)
    # Hudi ends our dead batch, cleans and archives after its own
    write_theirs(hudi, path, version, model.draw(), **SERVICES)
    model.check(path, hudi)
    assert not HudiTable.open(path).load_timeline().pending
    for number in range(4, 9):
        Engine(path, options).write(number, model.draw())
        clean(HudiTable.open(path), settings)
    outcome = archive(HudiTable.open(path), ArchiveSettings(min_commits=3, max_commits=4), settings)
    assert len(outcome.instants) > 3
    model.check(path, hudi)
    write_theirs(hudi, path, version, model.draw(), **SERVICES)
    model.check(path, hudi)
    table = HudiTable.open(path)
    held = create_savepoint(table)
    before = dict(model.rows)
    Engine(path, options).write(9, model.draw())
    write_theirs(hudi, path, version, model.draw())
    restore_to_savepoint(table, held, force=True)
    model.rows = before
    model.check(path, hudi)
    delete_savepoint(table, held)
    write_theirs(hudi, path, version, model.draw())
    model.check(path, hudi)
    Engine(path, options).write(9, model.draw())
    model.check(path, hudi)
    archived = {commit.time for commit in read_archived_commits(table.archived_timeline)}
    known = hudi.client(path, "archived_commits", options={"hoodie.write.table.version": str(version)})
    assert archived == {time for time in archived if any(time in line for line in known)} != set()


@pytest.mark.parametrize(("before", "after"), [(6, 8), pytest.param(6, 9, marks=SLOW), pytest.param(8, 9, marks=SLOW)])
def test_a_table_that_hudi_upgrades_under_a_running_stream(before, after, writers, tmp_path, utc, monkeypatch):
    """A job of Hudi with default options: it upgrades the table and gives it a metadata table; our stream goes on."""
    path, hudi, model = str(tmp_path / "t"), writers[after], Model(10 * before + after)
    options = {**OURS, "hoodie.write.table.version": str(before), "hoodie.metadata.enable": "false"}
    options |= {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
    stream = Engine(path, options)
    for number in range(3):
        stream.write(number, model.draw())
    defaults = {"hoodie.write.auto.upgrade": "true", "hoodie.metadata.enable": "true"}
    write_theirs(hudi, path, after, model.draw(), **defaults)
    config = HudiTable.open(path).config
    assert (config.version, bool(config.metadata_partitions)) == (after, True)
    warn = mock.Mock()
    monkeypatch.setattr(opening.log, "warning", warn)
    for number in range(3, 6):
        stream.write(number, model.draw())
        stream.writer.services.wait()
        model.check(path, hudi)
    config = HudiTable.open(path).config
    assert (config.version, config.metadata_partitions) == (after, "")
    told = [call for call in warn.call_args_list if call.args == ("table_version_changed",)]
    assert [(call.kwargs["before"], call.kwargs["now"]) for call in told] == [(before, after)]
    write_theirs(hudi, path, after, model.draw(), **defaults)
    stream.write(6, model.draw())
    model.check(path, hudi)
    stream.writer.stop()
