"""A cleaner that remembers folders plans what a cleaner plans that lists each of them."""

import collections
import random
from dataclasses import replace

import pytest
from engine import Engine, form_of, rows
from faults import FaultyStorage, Fuse

from table.errors import HudiError
from table.hudi_table import HudiTable
from table.options.groups import ArchiveSettings, CleanSettings
from table.services.archival.archival import archive
from table.services.clean import clean as cleaning
from table.services.clean import known_folders
from table.services.clean.clean import carry_out_cleans, clean, schedule_clean
from table.services.clean.judgement import plan_clean
from table.services.clean.known_folders import Followed, KnownFolders
from table.services.clean.memory import CleanerMemory
from table.services.clustering.command import cluster
from table.services.compaction.compaction import compact
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint, delete_savepoint
from table.snapshot import Snapshot
from table.storage.interface import FileInfo
from table.timeline.instant import Action
from table.view.file_group import CommittedInstants, parse_data_files

AT_ONCE = CleanSettings(commits_retained=2, grace_ms=0)
HELD = CleanSettings(commits_retained=1, grace_ms=3_600_000, readers_share=0.6)


def do_something(path, number, draw, form):
    """One action of some process on the table. Returns its name."""
    table = HudiTable.open(path)
    writes = table.load_timeline().writes_by_time
    saved = table.load_timeline().completed_of(Action.SAVEPOINT)
    action = draw.choices(
        ("write", "overwrite", "delete_partition", "clean", "archive", "roll_back", "savepoint", "restore", "service"),
        (12, 2, 1, 3, 2, 1, 1, 1, 2),
    )[0]
    operation = {"overwrite": "insert_overwrite", "delete_partition": "delete_partition"}.get(action)
    if action in ("write", "overwrite", "delete_partition"):
        drawn = draw.sample(range(60), draw.choice((2, 9, 30)))
        engine = Engine(path, {**form, **({"hoodie.datasource.write.operation": operation} if operation else {})})
        batch = rows(drawn, ts=number)
        engine.write(None, batch.select(["id", "p"]) if action == "delete_partition" else batch)
    elif action == "clean":
        clean(table, draw.choice((AT_ONCE, HELD)))
    elif action == "archive":
        archive(table, ArchiveSettings(min_commits=4, max_commits=6), AT_ONCE)
    elif action == "roll_back":
        roll_back(table, writes[-1].time)
    elif action == "savepoint":
        create_savepoint(table)
    elif action == "restore" and saved:
        restore_to_savepoint(table, saved[-1].time)
        delete_savepoint(table, saved[-1].time)
    elif action == "service":
        compact(table) if form["hoodie.datasource.write.table.type"] == "MERGE_ON_READ" else cluster(table)
    return action


def names(snapshot, partition_path):
    """Log files in a folder, and base files of completed writes."""
    bases, logs = parse_data_files(partition_path, snapshot.storage.list_dir(partition_path))
    return {base.name for base in bases if snapshot.committed.includes(base.instant_time)} | {log.name for log in logs}


@pytest.mark.parametrize("version", [6, 8])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_plans_are_those_of_fresh_listings(tmp_path, table_type, version):
    """Beside other writers, cleaners and archival, rollbacks, restores, savepoints, compactions and clusterings."""
    done, remembered = collections.Counter(), 0
    for seed in range(3):
        path, draw = str(tmp_path / str(seed)), random.Random(f"{table_type} {version} {seed}")
        Engine(path, form_of(version, table_type)).write(None, rows(range(30)))
        memories = {settings: CleanerMemory() for settings in (AT_ONCE, HELD)}
        for number in range(1, 36):
            try:
                action = do_something(path, number, draw, form_of(version, table_type))
            except HudiError as error:
                action = type(error).__name__
            done[action] += 1
            for settings, memory in memories.items():
                snapshot = Snapshot.load(HudiTable.open(path))
                fresh = plan_clean(snapshot, settings)
                assert plan_clean(snapshot, settings, memory) == fresh, (seed, number, action)
                memory.follow(snapshot)
                for partition in ("p0", "p1", "p2"):
                    known = memory.folders.find(partition)
                    if known is not None:
                        remembered += 1
                        assert {one.name for one in known} == names(snapshot, partition), (seed, number, action)
                if draw.random() < 0.3:
                    carry_out_cleans(schedule_clean(snapshot.table, settings, known=memory), settings, memory)
    assert remembered > 100
    assert set(done) >= {"write", "overwrite", "clean", "archive", "savepoint", "service"}
    assert set(done) & {"roll_back", "restore"}


def at(*numbers):
    return frozenset(str(number) for number in numbers)


@pytest.mark.parametrize(
    ("now", "leads"),
    [
        ({}, True),
        ({"writes": at(1, 2, 3, 4), "cleans": at(5)}, True),
        ({"writes": at(2, 3), "first": "2"}, True),  # archival
        ({"undoing": frozenset()}, True),  # archival
        ({"writes": at(1, 2), "first": "1"}, False),  # the newest was undone, or all that was known is archived
        ({"writes": at(4, 5), "first": "4"}, False),
        ({"writes": at(1, 3), "first": "1"}, False),  # one in the middle is gone, and not by archival
        ({"undoing": at(9, 10)}, False),
        ({"layout": 2}, False),
        ({"writes": at(1, 2, 3, *range(100, 100 + known_folders.MOST_COMMITS))}, True),
        ({"writes": at(1, 2, 3, *range(100, 101 + known_folders.MOST_COMMITS))}, False),
    ],
)
def test_what_a_timeline_tells_of_the_files_since_another_one(now, leads):
    before = Followed(at(1, 2, 3), "1", at(4), at(9), 1)
    assert before.leads_to(replace(before, **now)) is leads


NOTHING = CommittedInstants(frozenset(), None, {})


def file(number, time=1):
    return FileInfo(f"f{number}-0_0-0-0_{time}.parquet", 1, 0, False)


def test_no_more_files_are_remembered_than_allowed():
    folders = KnownFolders(most_files=5)
    seen = replace(NOTHING, times=frozenset({"1"}))
    for path in "abc":
        folders.keep(path, [file(1), file(2)], seen)
    assert [folders.count(path) for path in "abc"] == [0, 2, 2]
    folders.find("b")  # now the one that was looked at last
    folders.keep("d", [file(1), file(2)], seen)
    assert [folders.count(path) for path in "abcd"] == [0, 2, 0, 2]
    folders.keep("d", [file(1)], seen)
    folders.keep("e", [file(number) for number in range(9)], seen)
    assert [folders.count(path) for path in "bde"] == [0, 0, 0]


def test_a_folder_is_remembered_without_what_may_be_deleted_untold_and_listed_again_in_the_end():
    folders = KnownFolders()
    others = [FileInfo(".hoodie_partition_metadata", 9, 0, False), FileInfo("2026", 0, 0, True)]
    log = FileInfo(".f1-0_1.log.1_1-0-1", 1, 0, False)
    folders.keep("p", [file(1), file(2, time=2), log, *others], replace(NOTHING, times=frozenset({"1"})))
    for _ in range(known_folders.MOST_LOOKS):
        assert folders.find("p") == [file(1), log]
    assert folders.find("p") is None
    assert folders.find("unknown") is None


class _PrefixStorage(FaultyStorage):
    """As a store of objects: a listing by prefix is one request."""

    lists_by_prefix = True

    def list_prefix(self, path, prefix):
        return self._call("list_prefix", path, prefix)


@pytest.mark.parametrize(
    ("table_type", "is_long", "listed"),
    [
        ("COPY_ON_WRITE", False, {"list_prefix": 1}),
        ("MERGE_ON_READ", False, {"list_dir": 1}),  # one request: those for base files and for log files would be two
        ("MERGE_ON_READ", True, {"list_prefix": 2}),
    ],
)
def test_a_steady_clean_lists_the_file_groups_that_it_deletes_from(tmp_path, monkeypatch, table_type, is_long, listed):
    path = str(tmp_path / "t")
    if is_long:
        monkeypatch.setattr(cleaning, "_FILES_PER_REQUEST", 1)
    engine, fuse, memory = Engine(path, form_of(6, table_type)), Fuse(), CleanerMemory()
    for number in range(8):
        engine.write(None, rows([1], ts=number))
        table = HudiTable.open(path)
        if table_type == "MERGE_ON_READ":
            compact(table)
        table = HudiTable(_PrefixStorage(table.storage, fuse), table.config)
        fuse.calls.clear()
        done = carry_out_cleans(schedule_clean(table, AT_ONCE, known=memory), AT_ONCE, memory)
    assert len(done) == 1
    calls = [call.split(" ") for call in fuse.calls if call.startswith("list") and ".hoodie" not in call]
    assert collections.Counter(name for name, *_ in calls) == listed
    assert plan_clean(Snapshot.load(table), AT_ONCE) is None
