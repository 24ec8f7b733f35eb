"""What our own commits teach: in the steady state no operation lists a data folder, and the results stay the same."""

import pickle
import random
from dataclasses import replace

import pyarrow as pa
import pytest
from counting import BUCKETS, Counting, data_folders, sent
from engine import Engine, key_set, rows
from faults import FaultyStorage, Fuse
from snapshots import contents
from tiers import quick, slow

from streaming.batch.profile_cache import ProfileCache
from streaming.plan import plan_tasks, write_profile
from streaming.plan.live_files import LiveFiles, base_files_of
from streaming.plan.write_profile import (
    PathProfile,
    WriteProfile,
    apply_commit,
    fresh_profile,
    learn_listed,
    sent_files,
)
from table import read_table, roll_back
from table.config.table_config import TableConfig
from table.hudi_table import HudiTable
from table.metadata_table.file_lists import FileLists
from table.metadata_table.metadata_listing import MetadataListing
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.timeline.metadata.commit import WriteStat
from table.timeline.timeline import Timeline
from table.view.file_group import base_file_of
from table.view.file_system_view import list_file_groups, list_latest_slices, walk_file_groups

OPERATION, INDEX = "hoodie.datasource.write.operation", "hoodie.index.type"
INDEXES = ["BLOOM", "SIMPLE", "BUCKET", "GLOBAL_BLOOM", "GLOBAL_SIMPLE"]
STREAMS = {
    "insert": {OPERATION: "insert"},
    "insert into buckets": {OPERATION: "insert", INDEX: "BUCKET"},
    "insert of new keys": {OPERATION: "insert", "hoodie.datasource.write.insert.drop.duplicates": "true"},
    **{f"upsert {index}": {OPERATION: "upsert", INDEX: index} for index in INDEXES},
    **{f"delete {index}": {OPERATION: "delete", INDEX: index} for index in INDEXES},
}


def batch_of(stream, number, parts=3):
    """Keys of which half are known: enough for several files a path."""
    start = number * (5 if stream.startswith("delete") else 20)
    return rows(range(start, start + 40), lambda key: f"p{key % parts}", ts=number, v=f"b{number}")


@pytest.mark.parametrize("parallelism", quick(1, [3, 1]))
@pytest.mark.parametrize("stream", STREAMS)
def test_in_the_steady_state_no_data_folder_is_listed(tmp_path, monkeypatch, stream, parallelism):
    monkeypatch.setattr("streaming.plan.routes.SMALL_BATCH_BYTES", 0)
    monkeypatch.setattr("streaming.plan.routes.HOT_SHARE", 0.9)
    path = str(tmp_path / "t")
    kind = {INDEX: STREAMS[stream].get(INDEX, "BLOOM"), "hoodie.parquet.max.file.size": "6000", **BUCKETS}
    Engine(path, {**kind, OPERATION: "upsert"}).write(None, rows(range(300), ts=-1))
    engine = Counting(path, {**kind, **STREAMS[stream]})
    listings, commits_read = [], []
    for number in range(1, 4):
        engine.write(number, batch_of(stream, number), parallelism)
        commits_read.append(engine.commits_read())
        listings.append(engine.take_listed())
    assert commits_read == [HudiTable.open(path).load_timeline().completed_writes[:1], (), ()]
    driver, workers = listings[0]
    if "GLOBAL" in stream:
        assert (driver, workers) == (["", "p0", "p1", "p2"], [])  # once, for all
    else:
        assert driver == []
        assert set(workers) == {"p0", "p1", "p2"}
    assert listings[1:] == [[[], []]] * 2


@pytest.mark.parametrize("stream", [name for name in STREAMS if not name.startswith("delete")])
def test_who_makes_a_table_never_lists_it(tmp_path, stream):
    engine = Counting(str(tmp_path / "t"), STREAMS[stream])
    engine.write(0, batch_of(stream, 0))
    assert engine.take_listed()[1] == []
    for number in range(1, 3):
        engine.write(number, batch_of(stream, number, 3 + number))
        assert engine.take_listed() == [[], []]


@pytest.mark.parametrize("index", ["BLOOM", "BUCKET", "GLOBAL_BLOOM"])
def test_a_batch_that_changes_nothing_teaches_too(tmp_path, index):
    path = str(tmp_path / "t")
    Counting(path, {OPERATION: "upsert", INDEX: index}).write(None, rows(range(30), ts=5))
    engine = Counting(path, {OPERATION: "delete", INDEX: index})
    assert engine.write(1, rows(range(100, 120))).instant_time is None
    engine.take_listed()
    assert engine.write(2, rows(range(100, 120))).instant_time is None
    assert engine.take_listed() == [[], []]


def test_inserts_with_a_global_index_do_not_walk_the_table(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(None, rows(range(30)))
    engine = Counting(path, {INDEX: "GLOBAL_BLOOM"})
    engine.write(1, rows(range(30, 60)))
    assert engine.take_listed() == [[], ["p0", "p1", "p2"]]


@pytest.mark.parametrize("index", INDEXES)
def test_another_operation_of_the_same_sink_is_seen(tmp_path, index):
    path = str(tmp_path / "t")
    stream = Counting(path, {OPERATION: "upsert", INDEX: index})
    delete = Counting(path, {OPERATION: "delete", INDEX: index})
    for number in range(0, 4, 2):
        stream.write(None, rows(range(60), ts=number))
        delete.write(None, rows(range(30), ts=number))
        stream.take_listed()
        stream.write(None, rows(range(20, 60), ts=number + 1))
        assert stream.take_listed() == [[], []]
        assert_knows_what_is_there(stream, path)
        assert len(contents(path)) == 40
    stream.write(None, rows(range(60), ts=9))
    assert stream.take_listed() == [[], []]


@pytest.mark.parametrize(
    ("index", "bounds"),
    [
        *(pytest.param(index, (50_000, 250_000, 20_000), marks=pytest.mark.slow) for index in INDEXES),
        slow(("BLOOM", (50_000, 9, 3))),
        slow(("GLOBAL_SIMPLE", (2, 250_000, 20_000))),
        slow(("BUCKET", (2, 250_000, 20_000))),
        slow(("GLOBAL_BLOOM", (50_000, 4, 20_000))),
        ("BLOOM from the metadata table", (50_000, 250_000, 20_000)),
        slow(("SIMPLE from the metadata table", (50_000, 9, 3))),
    ],
)
def test_random_operations_give_what_a_dictionary_gives(tmp_path, monkeypatch, index, bounds):
    """Two cached engines take turns by luck; now and then another writer, with an engine of its own, comes between."""
    index, _, with_lists = index.partition(" from ")
    monkeypatch.setattr("streaming.batch.profile_cache.PATHS_WORTH_THE_LISTS", 0)
    monkeypatch.setattr("streaming.plan.routes.SMALL_BATCH_BYTES", 0)
    monkeypatch.setattr(write_profile, "PATHS_REMEMBERED", bounds[0])
    for module in ("plan.write_profile", "plan.plan_tasks", "batch.profile_cache", "task.report"):
        monkeypatch.setattr(f"streaming.{module}.FILES_REMEMBERED", bounds[1])
    monkeypatch.setattr("streaming.plan.plan_tasks.FILES_SENT", bounds[2])
    rng = random.Random(f"{index} {bounds}")
    kind = {INDEX: index, "hoodie.parquet.max.file.size": "5000", "hoodie.metadata.enable": str(bool(with_lists))}
    cached, fresh = str(tmp_path / "cached"), str(tmp_path / "fresh")

    def make(path, operation):
        return Counting(path, {**kind, OPERATION: operation})

    kept = {operation: make(cached, operation) for operation in ("upsert", "delete")}
    known = {}
    for number in range(10):
        operation = "delete" if number and rng.random() < 0.25 else "upsert"
        batch = random_batch(rng, number)
        ours = kept[operation] if rng.random() < 0.85 else make(cached, operation)
        ours.write(None, batch, 2)
        make(fresh, operation).write(None, batch, 2)
        change(known, batch, operation, everywhere=index.startswith("GLOBAL"))
        assert contents(cached) == contents(fresh) == sorted(known.values())
        assert_knows_what_is_there(ours, cached)


def random_batch(rng, number):
    records = {}
    for row in range(rng.randrange(1, 120)):
        key = f"k{rng.randrange(150)}"
        records[key] = (key, f"p{rng.choice('aaabcd')}", number, f"b{number}-{row}")
    names = ("id", "p", "ts", "v")
    return pa.table(dict(zip(names, zip(*records.values(), strict=True), strict=True)))


def change(known, batch, operation, everywhere):
    for row in batch.to_pylist():
        key = row["id"] if everywhere else (row["id"], row["p"])
        if operation == "upsert":
            known[key] = tuple(row.values())
        else:
            known.pop(key, None)


def assert_knows_what_is_there(engine, path):
    table = HudiTable.open(path)
    committed = Snapshot.load(table).committed
    paths = table.listing.list_partition_paths()
    there = {p: base_files_of(list_latest_slices(table.listing, p, committed)) for p in paths}
    profile = engine.profiles._profile
    for partition, known in profile.paths.items():
        if known.files is not None:
            assert sorted(known.files, key=str) == sorted(there.get(partition, ()), key=str)
    if profile.has_all_paths:
        assert {partition for partition, files in there.items() if files} <= profile.paths.keys()
    assert sum(len(known.files or ()) for known in profile.paths.values()) <= write_profile.FILES_REMEMBERED
    assert len(profile.paths) <= write_profile.PATHS_REMEMBERED


def test_a_table_that_is_too_large_to_remember_is_listed_as_before(tmp_path, monkeypatch):
    monkeypatch.setattr("streaming.batch.profile_cache.FILES_REMEMBERED", 2)
    monkeypatch.setattr(write_profile, "FILES_REMEMBERED", 2)
    path = str(tmp_path / "t")
    engine = Counting(path, {OPERATION: "upsert", INDEX: "GLOBAL_SIMPLE"})
    for number in range(4):
        engine.write(number, rows(range(60), ts=number, v=f"b{number}"))
        listed = engine.take_listed()
    assert listed[0] == ["", "p0", "p1", "p2"]
    assert len(contents(path)) == 60


def test_what_the_archival_retired_is_forgotten(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, {"hoodie.clean.automatic": "true", "hoodie.clean.async.enabled": "true",
                           "hoodie.archive.automatic": "true", "hoodie.clean.commits.retained": "1",
                           "hoodie.keep.min.commits": "2",
                           "hoodie.keep.max.commits": "3"})  # fmt: skip
    for number in range(12):
        engine.write(number, rows(range(number, number + 2)))
        engine.writer.services.wait()
    timeline = HudiTable.open(path).load_timeline()
    assert len(engine.profiles._profile.seen) <= len(timeline.committed_times) + 2 < 12


def file(name, size=1, path="p"):
    return base_file_of(path, f"{name}_0-0-0_1.parquet", size)


def test_a_plan_carries_files_as_columns():
    apart = {path: (file("c", 1, path),) for path in ("tag=ü/x", "")}
    files = {"p": (file("b", 7), file("a", 2**40)), "empty": (), **apart}
    for is_complete in (False, True):
        live = LiveFiles(files, is_complete=is_complete)
        for arrived in (live, sent(live), sent(sent(live))):
            assert {path: arrived.of(path) for path in arrived} == files
            assert (len(arrived), arrived.is_complete) == (4, is_complete)
            assert arrived.of("unknown") == (() if is_complete else None)
    assert len(sent(LiveFiles())) == 0


def test_ten_thousand_paths_go_to_a_task_in_two_megabytes():
    rng = random.Random(1)

    def one(path):
        file_id = f"{rng.getrandbits(128):032x}-0"
        token = f"{rng.randrange(99)}-{rng.randrange(9999)}-{rng.randrange(99999)}"
        name = f"{file_id}_{token}_2024011{path % 9}123456789.parquet"
        return base_file_of(f"day={path}", name, rng.randrange(10**8))

    files = LiveFiles({f"day={path}": tuple(one(path) for _ in range(5)) for path in range(10_000)})
    assert len(pickle.dumps(files)) < 2_500_000
    profile = WriteProfile(paths={path: PathProfile(files.of(path)) for path in files})
    assert len(pickle.dumps(sent_files(profile, write_profile.FILES_SENT))) < 1 << 20


def test_the_paths_written_last_are_sent_as_far_as_there_is_room():
    paths = {"old": (file("a"),), "large": (file("b"), file("c")), "none": (), "new": (file("d"),)}
    profile = fresh_profile(frozenset("1"), [], paths)
    everything = sent_files(profile, 4)
    assert everything.is_complete
    assert everything.of("elsewhere") == ()
    part = sent_files(profile, 2)
    assert (list(part), part.is_complete, part.of("elsewhere")) == (["new", "none", "old"], False, None)


def test_small_files_that_do_not_fit_into_a_plan_are_found_by_the_task_that_writes_there(tmp_path, monkeypatch):
    monkeypatch.setattr(plan_tasks, "FILES_SENT", 2)
    sink = Engine(str(tmp_path / "t"))
    for number in range(3):
        summary = sink.write(number, rows(range(number * 12, number * 12 + 12), lambda n: f"p{n % 4}"))
    assert (summary.files_created, summary.files_topped_up) == (0, 4)
    assert key_set(read_table(str(tmp_path / "t"))) == sorted(f"k{number}" for number in range(36))


def stat(path, file_id, size):
    return WriteStat(file_id, f"{path}/{file_id}_0-0-0_2.parquet", path, num_inserts=1, file_size_bytes=size)


def test_a_path_that_nobody_listed_is_empty_where_all_paths_are_known():
    empty = fresh_profile(frozenset(), [])
    assert empty.is_complete
    after = apply_commit(empty, "1", [stat("p", "a", 9)], 0, {}, None)
    assert after.paths["p"].files == (base_file_of("p", "a_0-0-0_2.parquet", 9),)
    assert after.is_complete
    assert not fresh_profile(frozenset("1"), []).is_complete


def test_bounds_forget_what_was_written_least_recently(monkeypatch):
    monkeypatch.setattr(write_profile, "FILES_REMEMBERED", 3)
    monkeypatch.setattr(write_profile, "PATHS_REMEMBERED", 3)
    profile = fresh_profile(frozenset(), [])
    for number, path in enumerate("abcc"):
        profile = apply_commit(profile, str(number), [stat(path, f"f{number}", 9)], 0, {}, None)
    assert [known.files and len(known.files) for known in profile.paths.values()] == [None, 1, 2]
    assert (profile.has_all_paths, profile.is_complete) == (True, False)
    profile = apply_commit(profile, "9", [stat("d", "f9", 9)], 0, {}, None)
    assert list(profile.paths) == ["b", "c", "d"]
    assert not profile.has_all_paths


def test_a_commit_of_somebody_else_while_the_batch_ran_is_seen():
    after = apply_commit(fresh_profile(frozenset("1"), []), "3", [stat("p", "a", 9)], 0, {"p": ()}, None)
    assert after.find_unseen(frozenset("123")) is None


def test_listings_without_a_commit_are_kept():
    profile = replace(fresh_profile(frozenset("1"), []), paths={"p": PathProfile(None, 8.0)}, batches=3)
    after = learn_listed(profile, {"p": (file("a", 50), file("b", 900)), "q": ()}, 800)
    assert after.paths == {"p": PathProfile((file("a", 50),), 8.0), "q": PathProfile((), 0.0)}
    assert (after.batches, after.seen) == (3, profile.seen)


LISTS = {"hoodie.metadata.enable": "true", OPERATION: "upsert"}


def twenty_paths(number):
    return rows(range(number * 20, number * 20 + 40), lambda key: f"p{key % 20:02}", ts=number)


def restarted(tmp_path, batches=twenty_paths, **options):
    """A table of two batches, and a writer that begins with the third one."""
    path, kind = str(tmp_path / "t"), {**LISTS, **options}
    for number in range(2):
        Engine(path, kind).write(None, batches(number))
    engine = Counting(path, kind)
    engine.take_listed()
    return path, engine


@pytest.mark.parametrize("options", [{}, {OPERATION: "insert"}, {INDEX: "SIMPLE"}], ids=str)
def test_after_a_start_the_metadata_table_says_which_small_files_many_paths_have(tmp_path, options):
    path, engine = restarted(tmp_path, **options)
    engine.write(2, twenty_paths(2))
    assert engine.take_listed() == [[], []]
    assert_knows_what_is_there(engine, path)
    table = HudiTable.open(path)
    assert all(len(list_file_groups(table.listing, f"p{n:02}", Snapshot.load(table).committed)) == 1 for n in range(20))
    known = {row[0] for row in contents(path)}
    assert known == {f"k{number}" for number in range(80)}
    assert len(contents(path)) == (120 if options.get(OPERATION) == "insert" else 80)


@pytest.mark.parametrize(
    ("batches", "options"),
    [
        (lambda number: rows(range(number * 20, number * 20 + 40), ts=number), {}),
        (twenty_paths, {"hoodie.metadata.enable": "false"}),
        (twenty_paths, {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}),
    ],
    ids=["few paths", "no metadata table", "log files"],
)
def test_tasks_list_where_the_metadata_table_is_of_no_use(tmp_path, batches, options):
    _, engine = restarted(tmp_path, batches, **options)
    engine.write(2, batches(2))
    driver, workers = engine.take_listed()
    assert driver == []
    assert set(workers) == set(batches(2).column("p").to_pylist())


def test_a_path_whose_list_does_not_contain_a_file_that_a_commit_names_is_listed(tmp_path, monkeypatch):
    path, engine = restarted(tmp_path)
    whole = FileLists.files
    with monkeypatch.context() as patched:
        patched.setattr(FileLists, "files", lambda lists, path: {} if path == "p03" else whole(lists, path))
        engine.write(2, twenty_paths(2))
    assert engine.take_listed() == [[], ["p03"]]
    assert len(contents(path)) == 80


def test_bulk_inserts_ask_for_no_small_files(tmp_path, monkeypatch):
    path, _ = restarted(tmp_path)
    monkeypatch.setattr(MetadataListing, "load", lambda _: pytest.fail("lists were read"))
    bulk = Counting(path, {**LISTS, OPERATION: "bulk_insert"})
    bulk.write(2, twenty_paths(2))


def test_a_walk_finds_what_a_listing_of_each_path_finds(tmp_path):
    path = str(tmp_path / "t")
    for number in range(3):
        Engine(path).write(None, rows(range(30), lambda key: f"a/{key % 2}" if key % 3 else "a", ts=number))
    table = HudiTable.open(path)
    committed = Snapshot.load(table).committed
    walked = dict(walk_file_groups(table.listing, committed))
    assert walked == {p: list_file_groups(table.listing, p, committed) for p in ("a", "a/0", "a/1")}


def test_a_commit_that_was_taken_back_makes_the_profile_anew(tmp_path):
    path = str(tmp_path / "t")
    engine = Counting(path, {OPERATION: "upsert", INDEX: "GLOBAL_BLOOM"})
    engine.write(None, rows(range(20), ts=0))
    last = engine.write(None, rows(range(10, 40), ts=1))
    roll_back(HudiTable.open(path), last.instant_time)
    engine.take_listed()
    engine.write(None, rows(range(15, 30), ts=2))
    assert engine.take_listed()[0] == ["", "p0", "p1", "p2"]
    assert sorted(row[0] for row in contents(path)) == sorted(f"k{number}" for number in range(30))


def test_a_profile_of_nothing_asks_for_nothing(tmp_path):
    storage = FaultyStorage(LocalStorage(str(tmp_path / "t")), Fuse())
    table = HudiTable(storage, TableConfig("t", ("id",)))
    profile = ProfileCache(storage, None, everywhere=True).load(Snapshot(table, Timeline()))
    assert profile.is_complete
    assert data_folders(storage._fuse.calls) == []
