"""Merge-on-read: archival, rollback and restore, stopped at storage calls, are finished by whoever comes."""

import os
import shutil
from contextlib import suppress

import pytest
from engine import Engine, rows
from faults import FaultyStorage, Fuse, PowerCut, dying_process
from snapshots import assert_clean

from table import read_table
from table.errors import HudiError, InvalidConfigError
from table.files.names import parse_base_file, parse_log_file
from table.hudi_table import HudiTable
from table.options.groups import ArchiveSettings, BaseFileSettings, CleanSettings, CompactionSettings
from table.services.archival.archival import archive
from table.services.compaction.compaction import compact, request_compaction
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint
from table.timeline.archived_timeline import read_archived_commits
from table.timeline.instant import Action

OPTIONS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.datasource.compaction.async.enable": "false",
}
NARROW, CLEAN = ArchiveSettings(min_commits=1, max_commits=2, batch=4), CleanSettings(commits_retained=1, grace_ms=0)
SOON, FILES = CompactionSettings(delta_commits=1, tasks=1), BaseFileSettings()
# every so manieth call, which one is first, and whether the power goes after the call
PLACES = [pytest.param(17, 5, False, id="some calls")]
PLACES += [pytest.param(1, 1, late, id="all calls", marks=pytest.mark.slow) for late in (False, True)]


def write(path, first, last):
    engine = Engine(str(path), OPTIONS)
    for number in range(first, last):
        engine.write(number, rows(range(2), lambda _: "p", ts=number, v=f"v{number}"))
    engine.writer.stop()


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Batches 0 and 1, a savepoint; batch 2, a compaction, batch 3; a compaction that is requested, batch 4."""
    path = str(tmp_path_factory.mktemp("stopped") / "t")
    write(path, 0, 2)
    table = HudiTable.open(path)
    create_savepoint(table)
    write(path, 2, 3)
    compact(table, SOON, FILES)
    write(path, 3, 4)
    request_compaction(table, SOON)
    write(path, 4, 5)
    return path


def value(path):
    found = read_table(path).to_pylist()
    assert sorted(row["id"] for row in found) == ["k0", "k1"]
    [value] = {row["v"] for row in found}
    return value


def data_files(path):
    names = [os.path.relpath(os.path.join(f, n), path) for f, _, ns in os.walk(path) for n in ns]
    return sorted(n for n in names if parse_base_file(os.path.basename(n)) or parse_log_file(os.path.basename(n)))


def times(path):
    return [instant.time for instant in HudiTable.open(path).load_timeline().completed_writes]


def stopped(base, tmp_path, act, places):
    """The table after each of some power cuts within an operation."""
    step, first, late = places
    fuse, counted = Fuse(), shutil.copytree(base, str(tmp_path / "count"))
    act(HudiTable(FaultyStorage(HudiTable.open(counted).storage, fuse), HudiTable.open(counted).config))
    for number in range(first, len(fuse.calls) + 1, step):
        path = shutil.copytree(base, str(tmp_path / f"{number}-{late}"))
        table = HudiTable.open(path)
        # how often a lease is looked at differs
        with suppress(PowerCut) if number > len(fuse.calls) - 3 else pytest.raises(PowerCut), dying_process():
            act(HudiTable(FaultyStorage(table.storage, Fuse(number, late)), table.config))
        yield path, fuse.calls[number - 1], data_files(counted)
        shutil.rmtree(path)


@pytest.mark.parametrize("places", [pytest.param(p.values, id=p.id, marks=p.marks) for p in PLACES])
def test_a_restore_is_finished_by_the_same_command(base, tmp_path, places):
    savepoint = times(base)[1]
    seen = set()
    for path, call, wanted in stopped(base, tmp_path, lambda t: restore_to_savepoint(t, savepoint, force=True), places):
        seen.add(value(path))
        restore_to_savepoint(HudiTable.open(path), savepoint, force=True)
        assert value(path) == "v1", call
        assert data_files(path) == wanted, call
        assert times(path)[-1] == savepoint
        write(path, 2, 4)
        compact(HudiTable.open(path), SOON, FILES)
        assert value(path) == "v3", call
        os.unlink(f"{path}/.hoodie/{savepoint}.savepoint.inflight")
        assert_clean(path)
    assert seen >= {"v4", "v1"}


@pytest.mark.parametrize("places", [pytest.param(p.values, id=p.id, marks=p.marks) for p in PLACES])
def test_a_rollback_is_finished_by_the_next_batch(base, tmp_path, places):
    newest = times(base)[-1]
    for path, call, wanted in stopped(base, tmp_path, lambda t: roll_back(t, newest, force=True), places):
        assert value(path) in ("v3", "v4"), call
        with suppress(InvalidConfigError):  # it is gone
            roll_back(HudiTable.open(path), newest, force=True)
        assert value(path) == "v3", call
        write(path, 4, 5)
        assert len(data_files(path)) == len(wanted) + 1, call
        assert value(path) == "v4", call
        compact(HudiTable.open(path), SOON, FILES, schedules=False)
        assert_clean(path)


@pytest.mark.parametrize("places", [pytest.param(p.values, id=p.id, marks=p.marks) for p in PLACES])
def test_a_compaction_that_is_withdrawn_is_withdrawn_or_pending(base, tmp_path, places):
    before = shutil.copytree(base, str(tmp_path / "before"))
    roll_back(HudiTable.open(before), times(before)[-1], force=True)
    [pending] = HudiTable.open(before).load_timeline().pending_of(Action.COMPACTION)
    for path, call, wanted in stopped(before, tmp_path, lambda t: roll_back(t, pending.time), places):
        assert value(path) == "v3", call
        with suppress(InvalidConfigError):
            roll_back(HudiTable.open(path), pending.time)
        write(path, 4, 5)
        assert value(path) == "v4", call
        assert len(data_files(path)) == len(wanted) + 1, call
        assert_clean(path)


@pytest.mark.parametrize("places", [pytest.param(p.values, id=p.id, marks=p.marks) for p in PLACES])
def test_a_compaction_that_is_half_withdrawn_hides_no_row(base, tmp_path, places):
    before = shutil.copytree(base, str(tmp_path / "before"))
    roll_back(HudiTable.open(before), times(before)[-1], force=True)
    [pending] = HudiTable.open(before).load_timeline().pending_of(Action.COMPACTION)
    for path, call, _ in stopped(before, tmp_path, lambda t: roll_back(t, pending.time), places):
        write(path, 4, 5)
        assert_no_slice_lacks_its_base_file(path)
        with suppress(HudiError):  # whoever carries out what was requested
            compact(HudiTable.open(path), SOON, FILES, schedules=False)
        assert_no_slice_lacks_its_base_file(path)
        write(path, 5, 6)
        assert value(path) == "v5", call
        assert_no_slice_lacks_its_base_file(path)


def assert_no_slice_lacks_its_base_file(path):
    """Hudi shows nothing below log files that have no base file, unless a compaction is to make it."""
    names = [os.path.basename(name) for name in data_files(path)]
    bases = {name.instant_time for name in map(parse_base_file, names) if name is not None}
    bases |= {i.time for i in HudiTable.open(path).load_timeline().pending_of(Action.COMPACTION)}
    assert {name.base_instant_time for name in map(parse_log_file, names) if name is not None} <= bases


@pytest.mark.parametrize("places", [pytest.param(p.values, id=p.id, marks=p.marks) for p in PLACES])
def test_an_archival_leaves_every_instant_on_one_side(base, tmp_path, places):
    whole = shutil.copytree(base, str(tmp_path / "whole"))
    table = HudiTable.open(whole)
    for file in table.load_timeline().files_of(times(whole)[1], Action.SAVEPOINT):
        os.unlink(os.path.join(whole, file.path))
    compact(table, SOON, FILES, schedules=False)
    before = times(whole)
    for path, call, _ in stopped(whole, tmp_path, lambda t: archive(t, NARROW, CLEAN, SOON), places):
        assert value(path) == "v4", call
        write(path, 5, 6)  # rolls back what looks failed: nothing may
        compact(HudiTable.open(path), SOON, FILES)
        archive(HudiTable.open(path), NARROW, CLEAN, SOON)
        assert value(path) == "v5", call
        known = {commit.time for commit in read_archived_commits(HudiTable.open(path).archived_timeline)}
        assert set(before) <= known | set(times(path)), call
        assert not HudiTable.open(path).load_timeline().pending, call
