"""Compaction: when, what, stopped at every storage call, beside a stream, and with Hudi's plans."""

import os
import shutil
from dataclasses import replace
from threading import Thread

import pytest
from command_line import said
from engine import Engine, rows
from faults import FaultyStorage, Fuse, PowerCut, dying_process
from instants import completed
from snapshots import assert_clean, base_files, contents
from tiers import quick

import hudistream
from table import (
    CommitConflictError,
    InvalidConfigError,
    LostDataError,
    StorageError,
    UnsupportedTableError,
    check,
    read_table,
)
from table.clock import InstantClock
from table.config.table_config import load_table_config
from table.files.names import parse_base_file, parse_log_file
from table.hudi_table import HudiTable
from table.options.choices import COMPACTION_STRATEGY_CLASSES, CompactionTrigger
from table.options.groups import BaseFileSettings, CleanSettings, CompactionSettings
from table.options.write_options import parse_options
from table.services.clean.clean import clean
from table.services.compaction import compact_slice as compact_slice_module
from table.services.compaction import compaction, execution
from table.services.compaction.compaction import compact, request_compaction
from table.services.compaction.plan import commits_since_compaction, is_due, plan_compaction
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.timeline.active_timeline import request_instant
from table.timeline.commit_cache import CommitCache
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.compaction import CompactionPlan, decode_compaction_plan, encode_compaction_plan
from table.timeline.timeline import build_timeline
from table.transaction.lease import hold_table
from table.view.file_group import BaseFile, CommittedInstants, LogFile, group_files

MERGE_ON_READ = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.datasource.compaction.async.enable": "false",
}
# threads would make the order of storage calls a matter of luck
SETTINGS, FILES = CompactionSettings(tasks=1), BaseFileSettings()


@pytest.mark.parametrize(
    ("trigger", "commits", "seconds", "due"),
    [
        ("NUM_COMMITS", 4, 9999, False),
        ("NUM_COMMITS", 5, 0, True),
        ("TIME_ELAPSED", 9, 99, False),
        ("TIME_ELAPSED", 1, 100, True),
        ("NUM_AND_TIME", 5, 99, False),
        ("NUM_AND_TIME", 5, 100, True),
        ("NUM_OR_TIME", 4, 99, False),
        ("NUM_OR_TIME", 4, 100, True),
        ("NUM_OR_TIME", 0, 100, False),
    ],
)
def test_when_a_compaction_is_due(trigger, commits, seconds, due):
    settings = CompactionSettings(trigger=CompactionTrigger(trigger), delta_commits=5, delta_seconds=100)
    assert is_due(commits, seconds, settings) is due


def test_delta_commits_count_from_the_last_compaction():
    instants = [Instant(str(n) * 17, Action.DELTA_COMMIT, State.COMPLETED) for n in (1, 2, 4, 5)]
    assert len(commits_since_compaction(build_timeline(instants))) == 4
    done = build_timeline([*instants, completed("3" * 17)])
    assert [instant.time[0] for instant in commits_since_compaction(done)] == ["4", "5"]


def group(file_id, base_mb, *log_mbs, path="p"):
    base = [BaseFile(path, f"{file_id}_0-0-0_1.parquet", file_id, "1", base_mb << 20)] if base_mb else []
    logs = [
        LogFile(path, f".{file_id}_1.log.{n}_0-0-0", file_id, "1", n, "0-0-0", "", mb << 20)
        for n, mb in enumerate(log_mbs, 1)
    ]
    return group_files(path, base, logs, CommittedInstants(frozenset("1"), "1", {}))[0]


def test_slices_with_the_most_log_bytes_go_first_until_enough_is_read_and_written():
    groups = [group("a", 10, 1), group("b", 10, 3, 4), group("c", 10), group("d", 0, 2)]
    plan = plan_compaction(groups, CompactionSettings(target_io_mb=1000))
    assert [operation.file_id for operation in plan.operations] == ["b", "d", "a"]
    first, second, _ = plan.operations
    assert (first.base_instant_time, first.base_file, first.log_files) == (
        "1", "b_0-0-0_1.parquet", (".b_1.log.1_0-0-0", ".b_1.log.2_0-0-0"),
    )  # fmt: skip
    assert (first.metrics["TOTAL_LOG_FILES"], first.metrics["TOTAL_IO_MB"]) == (2.0, 27.0)
    assert second.base_file is None
    bounded = plan_compaction(groups, CompactionSettings(target_io_mb=30))
    assert [operation.file_id for operation in bounded.operations] == ["b"]
    assert len(plan_compaction(groups, CompactionSettings(target_io_mb=1)).operations) == 1
    assert decode_compaction_plan(encode_compaction_plan(plan)) == plan
    assert plan_compaction([group("c", 10)], SETTINGS) == CompactionPlan()


STRATEGY_GROUPS = [
    group("a", 10, 5, path="2026/01/01"), group("b", 10, 1, 1, 1, path="2026/01/03"),
    group("c", 10, 9, path="2025/12/31"), group("d", 10, path="2026/01/04"), group("e", 0, 2, path="2026/01/03"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "taken"), [
    ({}, "cabe"),
    ({"strategy": "LOG_FILE_SIZE", "log_bytes": 3 << 20}, "cab"),
    ({"strategy": "LOG_FILE_NUM"}, "bcae"),
    ({"strategy": "LOG_FILE_NUM", "log_files": 2}, "b"),
    ({"strategy": "BOUNDED_IO"}, "cabe"),
    ({"strategy": "BOUNDED_IO", "target_io_mb": 54}, "ca"),
    ({"strategy": "UNBOUNDED", "target_io_mb": 1}, "cabe"),
    ({"strategy": "DAY_BASED", "days": 2, "target_io_mb": 1}, "bea"),
])  # fmt: skip
def test_a_strategy_says_which_slices_are_compacted(options, taken):
    plan = plan_compaction(STRATEGY_GROUPS, CompactionSettings(**options))
    assert "".join(operation.file_id for operation in plan.operations) == taken


def test_strategies_by_the_names_of_hudis_classes():
    for name, strategy in COMPACTION_STRATEGY_CLASSES.items():
        for spelled in (name, f"org.apache.hudi.table.action.compact.strategy.{name}"):
            parsed = parse_options({"hoodie.table.name": "t", "hoodie.compaction.strategy": spelled}).options
            assert parsed.compaction.strategy is strategy
    with pytest.raises(InvalidConfigError, match="this compaction strategy is not supported; use one of LOG_FILE_SIZE"):
        CompactionSettings(strategy="Mine")


def engine_of(storage, **options):
    return Engine(storage, {**MERGE_ON_READ, **options})


def write(path, number, batch, **options):
    engine = engine_of(path, **options)
    engine.write(number, batch)
    engine.writer.stop()


def after(batches):
    found = {}
    for batch in batches:
        found.update({row["id"]: tuple(row.values()) for row in batch.to_pylist()})
    return sorted(found.values())


BATCHES = [rows(range(12)), rows(range(3, 9), ts=1, v="w"), rows(range(6, 15), ts=2, v="x")]


@pytest.fixture
def path(tmp_path):
    made = str(tmp_path / "made")
    for number, batch in enumerate(BATCHES):
        write(made, number, batch)
    return made


def files_of(path, parse):
    return sorted(name for _, _, names in os.walk(path) for name in names if parse(name) is not None)


def test_rows_keep_their_commits_and_a_clean_takes_the_log_files(path):
    before = read_table(path, meta_columns=True).drop_columns("_hoodie_file_name").sort_by("id").to_pylist()
    [instant] = compact(HudiTable.open(path), SETTINGS, FILES)
    now = read_table(path, meta_columns=True)
    assert now.drop_columns("_hoodie_file_name").sort_by("id").to_pylist() == before
    assert {parse_base_file(name).instant_time for name in now.column("_hoodie_file_name").to_pylist()} >= {
        instant.time
    }
    assert files_of(path, parse_log_file)
    metadata = CommitCache(LocalStorage(path)).read(instant)
    assert (metadata.operation, metadata.compacted) == ("COMPACT", True)
    assert all(stat.prev_base_file and stat.num_writes for stat in metadata.stats)
    more = rows([99], ts=3)
    write(path, 3, more)
    clean(HudiTable.open(path), CleanSettings(commits_retained=1, grace_ms=0))
    assert files_of(path, parse_log_file) == []
    assert contents(path) == after([*BATCHES, more])
    assert compact(HudiTable.open(path), SETTINGS, FILES) == []


def test_a_compaction_without_settings_is_that_of_a_sink(path, monkeypatch):
    given = []
    place = "table.services.compaction.compaction"
    monkeypatch.setattr(f"{place}.request_compaction", lambda _, settings: given.append(settings))
    monkeypatch.setattr(f"{place}.carry_out_compactions", lambda _, base_file, __: given.append(base_file) or [])
    assert hudistream.HudiTable.open(path).compact() == ()
    options = parse_options({}).options
    assert given == [options.compaction, options.file_settings]
    assert options.file_settings.full_bytes, "filters have no room for more keys than a full file has"


def test_what_is_written_beside_a_compaction_stays_above_it(path):
    table = HudiTable.open(path)
    [pending] = request_compaction(table, SETTINGS)
    later = [rows(range(2), ts=3, v="y"), rows(range(1, 4), ts=4, v="z"), rows(range(40, 43), ts=4)]
    for number, batch in enumerate(later, 3):
        write(path, number, batch)
        assert contents(path) == after([*BATCHES, *later[: number - 2]])
    clean(table, CleanSettings(commits_retained=1, grace_ms=0))
    assert contents(path) == after([*BATCHES, *later]), "a clean keeps what the compaction reads"
    assert [instant.time for instant in compact(table, SETTINGS, FILES, schedules=False)] == [pending.time]
    assert contents(path) == after([*BATCHES, *later])
    compact(table, SETTINGS, FILES)
    later.append(rows([99], ts=9))
    write(path, 6, later[-1])
    clean(table, CleanSettings(commits_retained=1, grace_ms=0))
    assert contents(path) == after([*BATCHES, *later])
    assert files_of(path, parse_log_file) == []


def on(storage):
    return HudiTable(storage, load_table_config(storage._inner))


@pytest.mark.parametrize(
    ("step", "late"),
    [
        pytest.param(11, False, id="some calls"),
        pytest.param(1, False, id="before the call", marks=pytest.mark.slow),
        pytest.param(1, True, id="after the call", marks=pytest.mark.slow),
    ],
)
def test_a_compaction_stopped_at_a_call_is_carried_out_again(path, tmp_path, step, late):
    counted, fuse = shutil.copytree(path, str(tmp_path / "counted")), Fuse()
    compact(on(FaultyStorage(LocalStorage(counted), fuse)), SETTINGS, FILES)
    calls = list(fuse.calls)
    for number in range(1, len(calls) + 1, step):
        mine = shutil.copytree(path, str(tmp_path / f"{number}"))
        try:
            with dying_process():
                compact(on(FaultyStorage(LocalStorage(mine), Fuse(number, late))), SETTINGS, FILES)
        except PowerCut:
            assert contents(mine) == after(BATCHES), calls[number - 1]
        batch = rows(range(5), ts=9, v="new")
        write(mine, 3, batch)
        assert contents(mine) == after([*BATCHES, batch]), calls[number - 1]
        compact(HudiTable.open(mine), SETTINGS, FILES)
        compact(HudiTable.open(mine), SETTINGS, FILES)
        assert contents(mine) == after([*BATCHES, batch]), calls[number - 1]
        write(mine, 4, rows([7], ts=10))
        assert_clean(mine)
        named = {stat.path.rpartition("/")[2] for stat in stats_of(mine)}
        assert set(files_of(mine, parse_base_file)) <= named, "a stray base file of a compaction is left"


def stats_of(path):
    commits = CommitCache(LocalStorage(path))
    done = HudiTable.open(path).load_timeline().completed_writes
    return [stat for instant in done for stat in commits.read(instant).stats]


def test_nothing_is_planned_while_somebody_writes(path):
    table = HudiTable.open(path)
    request_instant(table.storage, table.load_timeline(), Action.DELTA_COMMIT, InstantClock())
    with pytest.raises(CommitConflictError, match="is pending"):
        request_compaction(table, SETTINGS)
    assert table.load_timeline().pending_of(Action.COMPACTION) == ()


def test_a_copy_on_write_table_has_nothing_to_compact(tmp_path):
    Engine(str(tmp_path / "t")).write(0, rows(range(3)))
    with pytest.raises(UnsupportedTableError, match="copy-on-write"):
        request_compaction(HudiTable.open(str(tmp_path / "t")), SETTINGS)


@pytest.mark.parametrize("inline", ["true", "false"])
@pytest.mark.parametrize("index", quick(1, ["BLOOM", "BUCKET"]))
def test_a_stream_compacts_and_cleans_beside_itself(tmp_path, index, inline):
    path = str(tmp_path / "t")
    engine = engine_of(
        path,
        **{
            "hoodie.index.type": index,
            "hoodie.bucket.index.num.buckets": "2",
            "hoodie.datasource.compaction.async.enable": "true",
            "hoodie.compact.inline": inline,
            "hoodie.compact.inline.max.delta.commits": "2",
            "hoodie.clean.automatic": "true",
            "hoodie.clean.commits.retained": "2",
        },
    )
    done = []
    engine.writer.services.listeners.append(done.append)
    batches = []
    for number in range(10):
        batches.append(rows(range(number, number + 9), ts=number, v=str(number)))
        engine.write(number, batches[-1])
        assert contents(path) == after(batches)
    engine.writer.stop()
    assert [summary.error for summary in done] == [None] * len(done)
    assert sum(summary.compactions for summary in done) >= 2
    assert sum(summary.cleans for summary in done) >= 1
    assert contents(path) == after(batches)


def test_a_compaction_that_hudi_planned_is_carried_out(golden, utc):
    path, expected = golden("mor_compaction_pending")
    table = HudiTable.open(path)
    [pending] = table.load_timeline().pending_of(Action.COMPACTION)
    [done] = compact(table, SETTINGS, FILES, schedules=False)
    assert done.time == pending.time
    assert {row["id"]: row for row in expected["rows"]} == {
        row["id"]: {name: row[name] for name in expected["rows"][0]}
        for row in read_table(path, meta_columns=True).to_pylist()
    }
    assert {found.base_instant_time for found in map(parse_log_file, files_of(path, parse_log_file))} > {done.time}


def test_the_command_requests_and_carries_out(path, capsys):
    assert "requested compaction" in said(capsys, "compact", path, "--schedule-only")
    assert "completed" in said(capsys, "compact", path, "--execute")
    assert "nothing to compact" in said(capsys, "compact", path)
    assert contents(path) == after(BATCHES)


def test_a_clean_keeps_what_a_batch_reads_that_began_before_a_compaction_was_completed(path):
    table, engine = HudiTable.open(path), engine_of(path)
    request_compaction(table, SETTINGS)
    later = rows([0], ts=8)
    engine.write(3, later)
    inner = engine.distribute

    def meanwhile(plan, rows_of_batch):
        compact(table, SETTINGS, FILES, schedules=False)
        clean(table, CleanSettings(commits_retained=1, grace_ms=0))
        return inner(plan, rows_of_batch)

    engine.distribute = meanwhile
    batch = rows(range(14), ts=9, v="new")
    summary = engine.write(4, batch)
    engine.writer.stop()
    assert (summary.rows, summary.rows_updated) == (0, 14), "every key was found where it is"
    assert contents(path) == after([*BATCHES, batch])
    engine_of(path).write(5, rows([0], ts=10))
    clean(table, CleanSettings(commits_retained=1, grace_ms=0))
    assert contents(path) == after([*BATCHES, batch, rows([0], ts=10)])


@pytest.mark.parametrize("tasks", [1, 3])
def test_slices_are_compacted_one_or_several_at_a_time(tmp_path, tasks):
    path = str(tmp_path / "t")
    engine = Engine(path, MERGE_ON_READ)
    for batch in range(3):
        engine.write(batch, rows(range(batch, 12), ts=batch, v=f"v{batch}"))
    engine.writer.stop()
    before = contents(path)
    [done] = compact(HudiTable.open(path), CompactionSettings(tasks=tasks), FILES)
    assert contents(path) == before
    stats = Snapshot.load(HudiTable.open(path)).commits.read(done).stats
    assert len(stats) == 3


def test_who_comes_too_late_for_a_compaction_shows_readers_no_second_files(path, monkeypatch):
    """Between the look at the end and the files, another writer of the table carried the compaction out."""
    table = HudiTable(LocalStorage(path), load_table_config(LocalStorage(path)))
    request_compaction(table, SETTINGS)
    seen, written = [], execution._written

    def comes_late(*args):
        monkeypatch.setattr(execution, "_written", written)
        compact(table, SETTINGS, FILES, schedules=False)
        seen.append(base_files(path))
        result = written(*args)
        seen.append(base_files(path))
        return result

    monkeypatch.setattr(execution, "_written", comes_late)
    assert compact(table, SETTINGS, FILES, schedules=False)
    before, after_it = seen
    assert before == after_it == base_files(path)
    assert_clean(path)


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("version", ["6", "8"])
def test_who_reads_what_was_cleaned_behind_a_faster_compaction_yields_to_it(tmp_path, monkeypatch, version, is_late):
    path = str(tmp_path / "t")
    for number, batch in enumerate(BATCHES):
        write(path, number, batch, **{"hoodie.write.table.version": version})
    table = HudiTable.open(path)
    request_compaction(table, SETTINGS)
    wanted = contents(path)
    where, name = (compact_slice_module, "load_records") if is_late else (execution, "compact_slice")
    done = getattr(where, name)

    def comes_late(*args):
        monkeypatch.setattr(where, name, done)
        assert compact(table, SETTINGS, FILES, schedules=False)
        delete_logs(path)
        return done(*args)

    monkeypatch.setattr(where, name, comes_late)
    assert compact(table, SETTINGS, FILES, schedules=False)
    assert contents(path) == wanted
    assert_clean(path)


@pytest.mark.parametrize("is_late", [False, True])
def test_a_compaction_whose_files_are_gone_names_them(path, monkeypatch, is_late):
    table, load_records = HudiTable.open(path), compact_slice_module.load_records
    request_compaction(table, SETTINGS)

    def loses(*args):
        delete_logs(path)
        return load_records(*args)

    if is_late:
        monkeypatch.setattr(compact_slice_module, "load_records", loses)
    else:
        delete_logs(path)
    told = (LostDataError, r"\.log\.1_.*, which commit \d+ wrote with \d+ rows, is not there")
    if is_late:
        told = (StorageError, r"\.log\.1_.*, which the compaction \d+ reads, is not there")
    with pytest.raises(told[0], match=told[1]):
        compact(table, SETTINGS, FILES, schedules=False)


def delete_logs(path):
    for folder, _, names in os.walk(path):
        for name in names:
            if parse_log_file(name) is not None and ".hoodie" not in folder:
                os.remove(os.path.join(folder, name))


def test_a_compaction_is_requested_beside_a_stream_that_holds_the_table(tmp_path):
    """While a batch is under way, the plan waits; the batches go on."""
    path = str(tmp_path / "t")
    engine = Engine(path, MERGE_ON_READ)
    batches = [rows(range(4), ts=number, v=str(number)) for number in range(6)]
    for number in range(3):
        engine.write(number, batches[number])
    inner, found = engine.distribute, []

    def distribute(plan, given):
        requester = Thread(target=lambda: found.append(request_compaction(HudiTable.open(path), SETTINGS)))
        requester.start()
        engine.requester = requester
        requester.join(0.3)
        assert not found, "a batch is under way: its log files would be missed"
        engine.distribute = inner
        return inner(plan, given)

    engine.distribute = distribute
    engine.write(3, batches[3])
    engine.requester.join(20)
    [[requested]] = found
    engine.write(4, batches[4])
    assert compact(HudiTable.open(path), SETTINGS, FILES, schedules=False)[0].time == requested.time
    engine.write(5, batches[5])
    engine.writer.stop()
    assert set(read_table(path, meta_columns=True).column("v").to_pylist()) == {"5"}
    assert check(HudiTable.open(path)).is_sound


def test_beside_a_stream_that_is_never_idle_no_compaction_is_requested(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    engine = Engine(path, MERGE_ON_READ)
    engine.write(0, rows(range(4)))
    engine.write(1, rows(range(4), ts=1))
    monkeypatch.setattr(compaction, "_TURNS", 3)

    def walk(*args):
        engine.write(len(walked) + 2, rows(range(4), ts=len(walked) + 2))
        walked.append(1)
        return walk_inner(*args)

    walked, walk_inner = [], compaction.walk_file_groups
    monkeypatch.setattr(compaction, "walk_file_groups", walk)
    with pytest.raises(CommitConflictError, match="compaction.schedule.enabled=true"):
        request_compaction(HudiTable.open(path), SETTINGS)
    assert len(walked) == 3
    assert not HudiTable.open(path).load_timeline().pending_of(Action.COMPACTION)
    engine.writer.stop()


def test_no_compaction_is_requested_beside_a_command_that_holds_the_table(path):
    table = HudiTable.open(path)
    with hold_table(table.storage, "hudistream rollback"), pytest.raises(CommitConflictError, match="rollback"):
        request_compaction(table, SETTINGS)


def test_a_compaction_is_not_kept_where_the_table_changed_hands_while_it_was_planned(path, monkeypatch):
    table, engine = HudiTable.open(path), engine_of(path)
    engine.write(3, rows([0], ts=8))
    found, turns = compaction.find_holder, []

    def holder(storage):
        turns.append(1)
        return replace(found(storage), number=len(turns))

    monkeypatch.setattr(compaction, "find_holder", holder)
    monkeypatch.setattr(compaction, "_TURNS", 2)
    with pytest.raises(CommitConflictError, match="no compaction was requested"):
        request_compaction(table, SETTINGS)
    assert not table.load_timeline().pending_of(Action.COMPACTION)
    engine.writer.stop()
