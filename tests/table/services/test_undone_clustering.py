"""A clustering that was undone stays undone, whatever its files and its end record are called."""

import os

import pytest
from engine import form_of, rows
from snapshots import assert_clean, contents

from hudistream import ArrowSink, HudiTable
from table.hudi_table import HudiTable as Bare
from table.options.clustering_settings import ClusteringSettings
from table.options.groups import BaseFileSettings
from table.services.clean.clean import clean
from table.services.clustering.command import execute_planned, schedule
from table.services.conversion.convert import convert_table
from table.services.rollback import undo_commit
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint
from table.timeline.end_record import end_path, find_end
from table.timeline.instant import Action

EACH_TYPE = pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
QUIET = {
    "hoodie.datasource.write.operation": "insert",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.datasource.compaction.async.enable": "false",
}


def write(path, version, table_type, number):
    options = {**form_of(version, table_type), **QUIET}
    with ArrowSink(path, options, key="id", partition_by="p", order_by="ts") as sink:
        sink.write(rows([number], lambda _: "p"))


def clustered(path, version, table_type):
    """A table of two commits and a savepoint, and a planned clustering that was carried out; the clustering's time."""
    for number in range(2):
        write(path, version, table_type, number)
    create_savepoint(Bare.open(path))
    planned = schedule(Bare.open(path), ClusteringSettings(sort_columns=("id",)))
    execute_planned(Bare.open(path), BaseFileSettings())
    return planned.time


def undo(path, way, time):
    if way == "rollback":
        roll_back(Bare.open(path), time)
    else:
        restore_to_savepoint(Bare.open(path), Bare.open(path).load_timeline().completed_of(Action.SAVEPOINT)[-1].time)


def check_undone(path, version, table_type, time):
    """The rows stay when a writer comes, files are cleaned, and the table is examined and repaired."""
    before, storage = contents(path), Bare.open(path).storage
    ends = [find_end(storage, time, action) for action in (Action.CLUSTERING, Action.REPLACE_COMMIT)]
    assert not any(end.is_commit for end in ends if end is not None)
    HudiTable.open(path).check(repair=True)
    assert contents(path) == before
    write(path, version, table_type, 2)
    clean(Bare.open(path))
    assert len(contents(path)) == len(before) + 1
    assert not [file for file in Bare.open(path).load_timeline().files if file.time == time]
    assert_clean(path)


@EACH_TYPE
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("way", ["rollback", "restore"])
def test_it_stays_undone(tmp_path, way, version, table_type):
    path = str(tmp_path / "t")
    time = clustered(path, version, table_type)
    undo(path, way, time)
    assert len(contents(path)) == 2
    check_undone(path, version, table_type, time)


@pytest.mark.parametrize("way", ["rollback", "restore"])
def test_one_of_another_engine_leaves_no_plan_behind(tmp_path, way):
    path = str(tmp_path / "t")
    time = clustered(path, 8, "COPY_ON_WRITE")
    os.remove(os.path.join(path, end_path(time, Action.CLUSTERING)))
    undo(path, way, time)
    check_undone(path, 8, "COPY_ON_WRITE", time)


@pytest.mark.parametrize(("version", "to"), [(6, 8), (8, 6), (9, 6)])
@pytest.mark.parametrize("way", ["rollback", "restore"])
def test_after_a_conversion_its_end_record_has_the_other_name(tmp_path, version, to, way):
    path = str(tmp_path / "t")
    time = clustered(path, version, "COPY_ON_WRITE")
    convert_table(Bare.open(path), to)
    undo(path, way, time)
    check_undone(path, to, "COPY_ON_WRITE", time)


def test_a_rollback_that_an_earlier_version_began_is_finished(tmp_path, monkeypatch):
    """Its plan names the clustering by its completed file."""
    path = str(tmp_path / "t")
    time = clustered(path, 8, "COPY_ON_WRITE")

    def plan_as_before(snapshot, time, _action):
        return plan_from_listing(snapshot, time, Action.REPLACE_COMMIT)

    def die(*_):
        raise KeyboardInterrupt

    plan_from_listing = undo_commit.plan_from_listing
    monkeypatch.setattr(undo_commit, "plan_from_listing", plan_as_before)
    monkeypatch.setattr(undo_commit, "undo_decided", die)
    with pytest.raises(KeyboardInterrupt):
        roll_back(Bare.open(path), time)
    write(path, 8, "COPY_ON_WRITE", 2)
    assert len(contents(path)) == 3
    assert not [file for file in Bare.open(path).load_timeline().files if file.time == time]
