"""A cleaner that remembers folders plans what a cleaner plans that lists each of them."""

import collections
import random
from dataclasses import replace
from types import SimpleNamespace
from unittest import mock

import pytest
from engine import Engine, form_of, rows
from faults import FaultyStorage, Fuse
from instants import inflight

from table.errors import HudiError
from table.files.names import parse_base_file
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
from table.timeline.active_timeline import request_instant
from table.timeline.instant import Action, Instant, State
from table.timeline.layout import LAYOUT_1, LAYOUT_2
from table.timeline.metadata.clean import encode_clean_plan
from table.timeline.timeline import build_timeline
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


FORMS = [("MERGE_ON_READ", 8), ("COPY_ON_WRITE", 6), ("COPY_ON_WRITE", 8), ("MERGE_ON_READ", 6)]


@pytest.mark.slow
@pytest.mark.parametrize(("table_type", "version"), FORMS)
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
    assert (remembered > 100) is (version == 8 or table_type == "COPY_ON_WRITE")
    assert set(done) >= {"write", "overwrite", "clean", "archive", "savepoint", "service"}
    assert set(done) & {"roll_back", "restore"}


def at(*numbers):
    return frozenset(str(number) for number in numbers)


@pytest.mark.parametrize(
    ("now", "leads"),
    [
        ({}, True),
        ({"writes": at(1, 2, 3, 4), "cleans": at(4, 5)}, True),
        ({"writes": at(2, 3)}, True),  # archival
        ({"undoing": frozenset()}, True),  # archival
        ({"pending": at(8), "writes": at(1, 2, 3, 7)}, True),
        ({"pending": at(8)}, False),  # one was completed and archived
        ({"cleans": at(5, 6)}, False),  # more of them may have been archived
        ({"is_undoing": True}, False),
        ({"writes": at(1, 2)}, False),  # the newest was undone, or all that was known is archived
        ({"writes": at(4, 5)}, False),
        ({"writes": at(1, 3)}, False),  # one in the middle is gone, and not by archival
        ({"undoing": at(9, 10)}, False),
        ({"layout": 2}, False),
        ({"writes": at(1, 2, 3, *range(100, 100 + known_folders.MOST_COMMITS))}, True),
        ({"writes": at(1, 2, 3, *range(100, 101 + known_folders.MOST_COMMITS))}, False),
    ],
)
def test_what_a_timeline_tells_of_the_files_since_another_one(now, leads):
    before = Followed(at(1, 2, 3), at(7), at(4), at(9), False, 1)
    assert before.leads_to(replace(before, **now)) is leads


FIRST = CommittedInstants(frozenset({"1"}), None, {}, layout_version=2)


def folders_of(*writes, most_files=known_folders.MOST_FILES, layout=LAYOUT_2):
    """A memory that has followed a timeline with these files, and knows no folder."""
    folders = KnownFolders(most_files)
    folders.follow(SimpleNamespace(timeline=build_timeline(writes, layout)), None)
    return folders


def file(number, time=1):
    return FileInfo(f"f{number}-0_0-0-0_{time}.parquet", 1, 0, False)


def test_no_more_files_are_remembered_than_allowed():
    folders = folders_of(most_files=7)
    for path in "abc":
        folders.keep(path, [file(1), file(2)], FIRST, has_logs=True)
    assert [folders.count(path) for path in "abc"] == [0, 2, 2]
    folders.find("b")  # now the one that was looked at last
    folders.keep("d", [file(1), file(2)], FIRST, has_logs=True)
    assert [folders.count(path) for path in "abcd"] == [0, 2, 0, 2]
    for path in "efgh":  # a folder without files counts, too
        folders.keep(path, [], FIRST, has_logs=True)
    assert [folders.count(path) for path in "bd"] == [0, 2]
    folders.keep("d", [file(1)], FIRST, has_logs=True)
    folders.keep("e", [file(number) for number in range(9)], FIRST, has_logs=True)
    assert [folders.find(path) for path in "bdefgh"] == [None] * 6


def log(time):
    return FileInfo(f".f1-0_{time}.log.1_1-0-1", 1, 0, False)


def test_a_folder_is_remembered_without_what_may_be_deleted_untold_and_listed_again_in_the_end():
    folders = folders_of(inflight("1"))
    others = [FileInfo(".hoodie_partition_metadata", 9, 0, False), FileInfo("2026", 0, 0, True)]
    committed = replace(FIRST, times=frozenset({"3"}), first_time="3")
    entries = [file(1, time=0), file(1), file(2, time=2), file(2, time=4), log(0), log(1), log(4)]
    folders.keep("p", [*entries, *others], committed, has_logs=True)
    for _ in range(known_folders.MOST_LOOKS):
        assert folders.find("p") == [file(1, time=0), file(2, time=2), log(0)]
    assert folders.find("p") is None
    assert folders.find("unknown") is None


def test_nothing_is_remembered_where_log_files_do_not_name_their_writers_or_commits_are_being_undone():
    for has_logs in (True, False):
        folders = folders_of(layout=LAYOUT_1)
        folders.keep("p", [file(1)], replace(FIRST, layout_version=1), has_logs=has_logs)
        assert folders.count("p") == (0 if has_logs else 1)
    folders = folders_of(Instant("5", Action.ROLLBACK, State.INFLIGHT))
    folders.keep("p", [file(1)], FIRST, has_logs=False)
    assert folders.count("p") == 0


def stream(path, memory, numbers, **options):
    """Batches that change one key, each with a clean behind it. Returns the last clean's outcomes."""
    engine = Engine(path, {**form_of(6, "COPY_ON_WRITE"), **options})
    for number in numbers:
        engine.write(None, rows([1], ts=number))
        done = carry_out_cleans(schedule_clean(HudiTable.open(path), AT_ONCE, known=memory), AT_ONCE, memory)
    return done


@pytest.mark.parametrize("content", [b"", b"{"])
def test_a_commit_whose_file_is_not_filled_yet_is_not_taken_for_one_without_files(tmp_path, content):
    path, memory = str(tmp_path / "t"), CleanerMemory()
    stream(path, memory, range(6))
    Engine(path, form_of(6, "COPY_ON_WRITE")).write(None, rows([1], ts=9))
    table = HudiTable.open(path)
    newest = f".hoodie/{table.load_timeline().completed_writes[-1].file_name}"
    whole = table.storage.read(newest)
    table.storage.put(newest, content)
    snapshot = Snapshot.load(table)
    assert plan_clean(snapshot, AT_ONCE, memory) == plan_clean(snapshot, AT_ONCE) is not None
    table.storage.put(newest, whole)
    stream(path, memory, range(10, 14))
    assert plan_clean(Snapshot.load(table), AT_ONCE) is None


def test_what_a_retained_commit_shows_stays_whatever_is_remembered(tmp_path):
    """A version that is not there passes for the one that readers of the earliest retained commit see."""
    path, memory = str(tmp_path / "t"), CleanerMemory()
    stream(path, memory, range(6))
    table = HudiTable.open(path)
    oldest, before, newest = sorted(
        map(parse_base_file, names(Snapshot.load(table), "p1")), key=lambda one: one.instant_time
    )
    ghost = str(replace(before, instant_time=str(int(before.instant_time) + 1)))
    Engine(path, form_of(6, "COPY_ON_WRITE")).write(None, rows([2], ts=9))  # moves the retained commits by one
    memory.follow(Snapshot.load(table))
    memory.folders._folders["p1"].files[ghost] = FileInfo(ghost, 1, 0, False)
    with mock.patch.object(CommittedInstants, "includes", return_value=True):
        planned = plan_clean(Snapshot.load(table), AT_ONCE, memory)
    assert sorted(file.rpartition("/")[2] for file in planned.files["p1"]) == sorted((str(oldest), str(before)))
    request_instant(table.storage, table.load_timeline(), Action.CLEAN, table.instant_clock, encode_clean_plan(planned))
    [done] = carry_out_cleans(Snapshot.load(table), AT_ONCE, memory)
    assert (done.deleted["p1"], done.failed["p1"]) == ((str(oldest),), (str(before),))
    assert names(Snapshot.load(table), "p1") == {str(before), str(newest)}
    assert memory.folders.count("p1") == 0  # it is listed again


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
    version = 8 if table_type == "MERGE_ON_READ" else 6
    engine, fuse, memory = Engine(path, form_of(version, table_type)), Fuse(), CleanerMemory()
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
