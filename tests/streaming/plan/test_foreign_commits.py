"""Commits of other writers move the write profile by their write stats; what they do not tell makes it anew."""

from dataclasses import replace

import pytest
from counting import Counting
from engine import Engine, key_set, rows
from instants import completed
from snapshots import list_snapshot_files

from streaming.plan.live_files import base_files_of
from streaming.plan.write_profile import (
    CommitSize,
    PathProfile,
    WriteProfile,
    apply_foreign_commit,
    fresh_profile,
    is_understood,
)
from table import archive, read_table, roll_back
from table.hudi_table import HudiTable
from table.options.groups import ArchiveSettings, CleanSettings
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.timeline.instant import Action
from table.timeline.metadata.commit import CommitMetadata, WriteStat, decode_commit, encode_commit
from table.view.file_group import base_file_of

OPERATION = "hoodie.datasource.write.operation"
INSERT = {OPERATION: "insert"}


def newest_of(path, partition=None):
    """File group -> instant of its live file, in one partition or in all."""
    files = list_snapshot_files(HudiTable.open(path))
    return {file.file_id: file.instant_time for file in files if partition in (None, file.partition_path)}


def started(path, options=INSERT):
    """An engine in the steady state: it made the table, and nothing is left to be learned."""
    engine = Counting(path, options)
    engine.write(None, rows(range(30)))
    engine.take_listed()
    return engine


def new_files(path, options, batch, query_id="other"):
    """What another engine writes into file groups of its own: it tops nothing up."""
    before = {file.file_id for file in list_snapshot_files(HudiTable.open(path))}
    Engine(path, {**options, "hoodie.parquet.small.file.limit": "0"}, query_id=query_id).write(None, batch)
    return {file.file_id for file in list_snapshot_files(HudiTable.open(path))} - before


def assert_knows_what_is_there(engine, path):
    snapshot = Snapshot.load(HudiTable.open(path))
    profile = engine.profiles.load(snapshot)
    for partition, known in profile.paths.items():
        there = base_files_of(group.latest_slice for group in snapshot.list_file_groups(partition))
        assert sorted(known.files, key=str) == sorted(there, key=str)
    if profile.has_all_paths:
        assert profile.paths.keys() >= {p for p in snapshot.list_partition_paths() if snapshot.list_file_groups(p)}


def test_the_small_files_of_another_engine_are_filled_without_a_listing(tmp_path):
    path = str(tmp_path / "t")
    ours = started(path)
    theirs = new_files(path, INSERT, rows([1000, 1001], lambda number: f"p{number - 999}"))
    assert len(theirs) == 2  # one in p1, where we have a larger one, and one in a partition path of its own
    time = ours.write(None, rows([2000, 2001], lambda number: f"p{number - 1999}")).instant_time
    assert ours.take_listed() == [[], []]
    assert {newest_of(path)[file_id] for file_id in theirs} == {time}
    assert key_set(read_table(path)) == sorted(f"k{number}" for number in [*range(30), 1000, 1001, 2000, 2001])
    assert_knows_what_is_there(ours, path)


def test_their_commit_is_read_once_and_ours_never(tmp_path):
    path = str(tmp_path / "t")
    ours = started(path)
    Engine(path, INSERT, query_id="other").write(None, rows([1000]))
    theirs = HudiTable.open(path).load_timeline().completed_writes[-1]
    for number, expected in ((1, (theirs,)), (2, ())):
        ours.write(None, rows([2000 + number]))
        assert ours.commits_read() == expected
        ours.take_listed()


@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE", "GLOBAL_BLOOM", "GLOBAL_SIMPLE"])
def test_keys_are_found_in_files_that_another_engine_wrote(tmp_path, index):
    path = str(tmp_path / "t")
    upsert = {OPERATION: "upsert", "hoodie.index.type": index}
    ours = started(path, upsert)
    new_files(path, upsert, rows(range(100, 120)))
    Engine(path, upsert, query_id="other").write(None, rows(range(10), ts=1, v="theirs"))
    ours.write(None, rows([0, 5, 100, 101], ts=2, v="ours"))
    assert ours.take_listed() == [[], []]
    found = {row["id"]: row["v"] for row in read_table(path).to_pylist()}
    assert len(found) == read_table(path).num_rows == 50
    assert [found[key] for key in ("k0", "k1", "k5", "k20", "k100", "k101", "k102")] == [
        "ours", "theirs", "ours", "v", "ours", "ours", "v",
    ]  # fmt: skip
    assert_knows_what_is_there(ours, path)


@pytest.mark.parametrize("operation", ["insert_overwrite", "insert_overwrite_table", "delete_partition"])
def test_replaced_file_groups_are_forgotten_without_a_listing(tmp_path, operation):
    path = str(tmp_path / "t")
    ours = started(path)
    replaced = set(newest_of(path, "p1"))
    Engine(path, {OPERATION: operation}, query_id="other").write(None, rows([1000], lambda _: "p1"))
    ours.write(None, rows([2000], lambda _: "p1"))
    assert ours.take_listed() == [[], []]
    assert not replaced & newest_of(path, "p1").keys()
    left = {"insert_overwrite": [1000], "insert_overwrite_table": [1000], "delete_partition": []}[operation]
    assert [key for key in key_set(read_table(path)) if len(key) == 5] == [f"k{n}" for n in [*left, 2000]]
    assert_knows_what_is_there(ours, path)


def rewrite(path, change):
    """Makes the newest commit say something else."""
    storage, timeline = LocalStorage(path), HudiTable.open(path).load_timeline()
    instant = timeline.completed_writes[-1]
    metadata = decode_commit(storage.read(instant.path))
    storage.put(instant.path, encode_commit(change(metadata)))


@pytest.mark.parametrize(
    "change",
    [
        lambda metadata: replace(metadata, operation="CLUSTER"),
        lambda metadata: replace(metadata, operation="UNKNOWN"),
        lambda metadata: replace(metadata, stats=tuple(replace(s, file_size_bytes=0) for s in metadata.stats)),
        lambda metadata: replace(metadata, stats=tuple(replace(s, path="") for s in metadata.stats)),
    ],
)
def test_a_commit_that_is_not_understood_makes_the_profile_anew(tmp_path, change):
    path = str(tmp_path / "t")
    ours = started(path)
    new_files(path, INSERT, rows([1000], lambda _: "p1"))
    rewrite(path, change)
    ours.write(None, rows([2000], lambda _: "p1"))
    assert ours.take_listed() == [[], ["p1"]]
    assert_knows_what_is_there(ours, path)


def test_a_commit_that_was_undone_makes_the_profile_anew(tmp_path):
    path = str(tmp_path / "t")
    ours = started(path)
    Engine(path, INSERT, query_id="other").write(None, rows([1000], lambda _: "p1"))
    table = HudiTable.open(path)
    ours.profiles.load(Snapshot.load(table))
    roll_back(HudiTable.open(path), HudiTable.open(path).load_timeline().completed_writes[-1].time)
    ours.write(None, rows([2000], lambda _: "p1"))
    assert ours.take_listed() == [[], ["p1"]]
    assert key_set(read_table(path)) == sorted(f"k{number}" for number in [*range(30), 2000])


def test_commits_that_were_archived_unseen_make_the_profile_anew(tmp_path):
    path = str(tmp_path / "t")
    ours = started(path)
    theirs = new_files(path, INSERT, rows([1000], lambda _: "p1"))
    for number in range(6):
        Engine(path, INSERT, query_id="other").write(None, rows([3000 + number], lambda _: "p2"))
    archive(
        HudiTable.open(path),
        ArchiveSettings(min_commits=2, max_commits=3),
        CleanSettings(commits_retained=1, grace_ms=0),
    )
    time = ours.write(None, rows([2000], lambda _: "p1")).instant_time
    assert ours.take_listed() == [[], ["p1"]]
    assert [newest_of(path)[file_id] for file_id in theirs] == [time]


@pytest.mark.parametrize(
    "name", ["cow_insert_partitioned", "cow_upsert_delete", "cow_insert_overwrite", "streaming_sink"]
)
@pytest.mark.parametrize("everywhere", [True, False])
def test_what_hudis_commits_say_is_what_a_listing_shows(golden, name, everywhere):
    table = HudiTable.open(golden(name)[0])
    timeline = table.load_timeline()
    instants = timeline.completed_writes

    def listed(time):
        snapshot = Snapshot(table, timeline, as_of=time)
        return {path: base_files_of(g.latest_slice for g in groups) for path, groups in snapshot.walk_file_groups()}

    profile = fresh_profile(frozenset({instants[0].time}), [], listed(instants[0].time) if everywhere else None)
    for instant in instants[1:]:
        metadata = decode_commit(table.storage.read(instant.path))
        assert is_understood(instant, metadata)
        profile = apply_foreign_commit(profile, instant, metadata, 0, None)
        known = {path: sorted(of_path.files, key=str) for path, of_path in profile.paths.items()}
        expected = {path: sorted(files, key=str) for path, files in listed(instant.time).items()}
        assert known == (expected if everywhere else {})
    assert profile.seen == timeline.committed_times


def stat(path, file_id, size, name=None):
    name = name or f"{file_id}_0-0-0_3.parquet"
    return WriteStat(file_id, f"{path}/{name}" if path else name, path, num_writes=4, num_inserts=4,
                     total_write_bytes=size, file_size_bytes=size)  # fmt: skip


def live(file_id, size, time=3, path="known"):
    return base_file_of(path, f"{file_id}_0-0-0_{time}.parquet", size)


def test_a_commit_of_others_changes_files_and_sizes_and_no_expectation():
    paths = {
        "known": PathProfile((live("a", 10, 1), live("b", 20, 1), live("c", 30, 1)), 8.0),
        "unknown": PathProfile(None, 4.0),
        "apart": PathProfile((live("z", 1, 1, "apart"),), 2.0),
    }
    profile = WriteProfile(frozenset("12"), (CommitSize(1, 1),), paths, 3, has_all_paths=True)
    stats = (
        stat("known", "a", 15),
        stat("known", "b", 99),
        stat("known", "d", 5),
        stat("unknown", "u", 5),
        stat("new", "n", 7),
    )
    metadata = CommitMetadata(stats, "UPSERT")
    after = apply_foreign_commit(profile, completed("3"), metadata, 12, 50)
    assert after == WriteProfile(
        frozenset("123"),
        (CommitSize(131, 20, 12), CommitSize(1, 1)),
        {
            **paths,
            "known": PathProfile((live("a", 15), live("c", 30, 1), live("d", 5)), 8.0),
            "new": PathProfile((live("n", 7, path="new"),), 0.0),
        },
        3,
        has_all_paths=True,
    )
    partly = apply_foreign_commit(replace(profile, has_all_paths=False), completed("3"), metadata, 12, 50)
    assert "new" not in partly.paths
    replaced = CommitMetadata(
        stats[2:3], "INSERT_OVERWRITE", {}, {"known": ("a", "c"), "apart": ("z",), "unknown": ("u",)}
    )
    after = apply_foreign_commit(profile, completed("3", Action.REPLACE_COMMIT), replaced, 0, None)
    assert after.paths == {
        "known": PathProfile((live("b", 20, 1), live("d", 5)), 8.0),
        "unknown": PathProfile(None, 4.0),
        "apart": PathProfile((), 2.0),
    }
    assert after.sizes == profile.sizes  # as in a profile that is made anew


@pytest.mark.parametrize(
    ("understood", "action", "metadata"),
    [
        (True, Action.COMMIT, CommitMetadata((stat("p", "a", 9), stat("", "b", 9)), "BULK_INSERT")),
        (True, Action.COMMIT, CommitMetadata((), "DELETE")),
        (True, Action.REPLACE_COMMIT, CommitMetadata((), "DELETE_PARTITION", {}, {"p": ("a",)})),
        (False, Action.DELTA_COMMIT, CommitMetadata((stat("p", "a", 9),), "UPSERT")),
        (False, Action.REPLACE_COMMIT, CommitMetadata((stat("p", "a", 9),), "CLUSTER", {}, {"p": ("b",)})),
        (False, Action.COMMIT, CommitMetadata((stat("p", "a", 9),), "COMPACT")),
        (False, Action.COMMIT, CommitMetadata((), "UNKNOWN")),
        (False, Action.REPLACE_COMMIT, CommitMetadata((stat("p", "a", 9),), "INSERT_OVERWRITE", {}, {"p": ("a",)})),
        (False, Action.COMMIT, CommitMetadata((stat("p", "a", 0),), "INSERT")),
        (False, Action.COMMIT, CommitMetadata((stat("p", "a", 9, ".a_3.log.1_0-0-0"),), "INSERT")),
        (False, Action.COMMIT, CommitMetadata((stat("p", "a", 9, "a_0-0-0_2.parquet"),), "INSERT")),
        (False, Action.COMMIT, CommitMetadata((stat("p", "a", 9, "b_0-0-0_3.parquet"),), "INSERT")),
        (False, Action.COMMIT, CommitMetadata((stat("p", "a", 9, "a_0-0-0_3.orc"),), "INSERT")),
        (False, Action.COMMIT, CommitMetadata((stat("p", "a", 9, "q/a_0-0-0_3.parquet"),), "INSERT")),
    ],
)
def test_only_what_a_commit_tells_whole_is_understood(understood, action, metadata):
    assert is_understood(completed("3", action), metadata) is understood
