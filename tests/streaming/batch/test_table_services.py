"""The background thread: the gate, one clean at a time, failures by policy, an orderly end."""

import subprocess
import sys
import threading
import time

import pytest
from doing import Doing
from engine import Engine, key_set, rows
from snapshots import base_files
from tiers import quick

from streaming.batch.services import TableServices
from table import read_table
from table.config.table_config import TableConfig
from table.errors import HudiError, InvalidConfigError
from table.hudi_table import HudiTable
from table.options.choices import CleanFailure
from table.options.groups import CleanSettings
from table.options.write_options import parse_options
from table.services.archival.service import ArchivalService
from table.services.clean.clean import schedule_clean
from table.services.clean.service import CleaningService, retention_s
from table.services.clean.trigger import Cleaning, choose_cleaning
from table.services.compaction.service import CompactionService
from table.services.savepoint.savepoint import create_savepoint
from table.services.service import ServiceOutcome, Trigger
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.timeline.active_timeline import load_timeline
from table.timeline.archived_timeline import read_archived_commits
from table.timeline.instant import Action
from table.timeline.timeline import Timeline

ON = {"hoodie.clean.automatic": "true", "hoodie.archive.automatic": "true"}


@pytest.mark.parametrize(
    ("table_type", "compaction_async", "clean_async", "cleaning"),
    [
        ("COPY_ON_WRITE", False, True, Cleaning.AT_CHECKPOINT),
        ("COPY_ON_WRITE", False, False, Cleaning.NEVER),
        ("MERGE_ON_READ", True, True, Cleaning.AT_CHECKPOINT),
        ("MERGE_ON_READ", True, False, Cleaning.AFTER_COMPACTION),
        ("MERGE_ON_READ", False, True, Cleaning.AT_CHECKPOINT),
        ("MERGE_ON_READ", False, False, Cleaning.NEVER),
    ],
)
def test_the_gate(table_type, compaction_async, clean_async, cleaning):
    assert choose_cleaning(table_type, compaction_async=compaction_async, clean_async=clean_async) is cleaning
    inline = choose_cleaning(table_type, compaction_async=compaction_async, clean_async=clean_async, inline=True)
    assert inline is (Cleaning.INLINE if cleaning is Cleaning.AT_CHECKPOINT else cleaning)
    never = choose_cleaning(table_type, compaction_async=compaction_async, clean_async=clean_async, automatic=False)
    assert never is Cleaning.NEVER


def test_a_stream_of_batches_keeps_versions_and_instants_bounded(tmp_path):
    path = str(tmp_path / "t")
    options = {**ON, "clean.retain_commits": "2", "hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "6"}
    engine = Engine(path, options)
    for number in range(30):
        engine.write(number, rows(range(3 * number, 3 * number + 3)))
        engine.writer.services.wait()
    assert key_set(read_table(path)) == sorted(f"k{n}" for n in range(90))
    assert len(base_files(path)) <= 3 * 4
    line = load_timeline(LocalStorage(path))
    assert len(line.completed_writes) <= 7
    assert len(line.completed_of(Action.CLEAN)) <= 7
    archived = {commit.time for commit in read_archived_commits(HudiTable.open(path).archived_timeline)}
    assert len(archived) + len(line.completed_writes) == 30
    assert engine.writer.services.failures == 0
    assert Engine(path, options).write(29, rows([1])).skipped


COMPACTS, CLEANS = "compacts", "cleans"


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize(
    ("table_type", "compaction_async", "clean_async", "runs"),
    [
        ("COPY_ON_WRITE", True, True, [[CLEANS]] * 4),
        ("COPY_ON_WRITE", True, False, [[]] * 4),
        ("MERGE_ON_READ", True, True, [[CLEANS], [COMPACTS, CLEANS]] * 2),
        ("MERGE_ON_READ", True, False, [[], [COMPACTS, CLEANS]] * 2),
        ("MERGE_ON_READ", False, True, [[CLEANS]] * 4),
        ("MERGE_ON_READ", False, False, [[]] * 4),
    ],
)
def test_what_runs_after_each_commit(tmp_path, monkeypatch, table_type, compaction_async, clean_async, runs, inline):
    seen = []
    execute = CompactionService.execute

    def compacts(service, table, plan, spread):
        seen[-1].append(COMPACTS)
        return execute(service, table, plan, spread)

    def cleans(_service, _table):
        seen[-1].append(CLEANS)

    monkeypatch.setattr(CompactionService, "execute", compacts)
    monkeypatch.setattr(CleaningService, "plan", cleans)
    options = {
        "hoodie.clean.automatic": "true",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.parquet.small.file.limit": "0",
        "clean.async.enabled": str(clean_async).lower(),
        "hoodie.compact.inline": str(inline and compaction_async).lower(),
        "hoodie.datasource.compaction.async.enable": str(compaction_async and not inline).lower(),
        "hoodie.compact.inline.max.delta.commits": "2",
    }
    engine = Engine(str(tmp_path / "t"), options)
    for number in range(4):
        seen.append([])
        engine.write(number, rows(range(3), ts=number))
        engine.writer.services.wait()
    assert engine.writer.services.failures == 0
    assert seen == runs


def test_what_a_compaction_folded_is_cleaned_by_its_own_run(tmp_path):
    options = {
        "hoodie.clean.automatic": "true",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.parquet.small.file.limit": "0",
        "clean.async.enabled": "false",
        "clean.retain_commits": "1",
        "hoodie.keep.min.commits": "20",
        "hoodie.compact.inline.max.delta.commits": "3",
    }
    path, told = str(tmp_path / "t"), []
    engine = Engine(path, options)
    engine.writer.services.listeners.append(told.append)
    for number in range(6):
        engine.write(number, rows(range(3), ts=number, v=str(number)))
        engine.writer.services.wait()
    # the slice that the last compaction folded stays for readers of the commit before it
    assert [(one.compactions, one.cleans) for one in told] == [(0, 0), (0, 0), (1, 0), (0, 0), (0, 0), (1, 1)]
    assert set(read_table(path).column("v").to_pylist()) == {"5"}


def services(options, run, storage=None):
    parsed = parse_options(options).options
    made = TableServices(storage, parsed)
    if run is not None:
        made.services = (Doing(run, parsed.clean.on_failure),)
    return made


def empty_table():
    """A table at one look, which is nowhere and has no instant."""
    return Snapshot(HudiTable(LocalStorage("nowhere"), TableConfig("t", ("id",))), Timeline())


class Place:
    base_uri = "t"


def test_one_at_a_time_and_an_orderly_end():
    going, release, runs = threading.Event(), threading.Event(), []

    def run(_table):
        runs.append(threading.current_thread().name)
        going.set()
        release.wait(10)

    upkeep = services(ON, run, Place())
    found = empty_table()
    upkeep.after_commit(found)
    assert going.wait(10)
    upkeep.after_commit(found)
    assert upkeep.is_cleaning
    assert runs == ["hudistream-services"]
    release.set()
    upkeep.stop()
    assert not upkeep.is_cleaning
    upkeep.after_commit(found)
    assert len(runs) == 1


@pytest.mark.parametrize(("policy", "runs"), [("warn", 3), ("pause", 1), ("fail", 3)])
def test_failures_are_counted_logged_and_handled_by_policy(logs, policy, runs):

    done = []

    def run(_table):
        done.append(1)
        raise HudiError("disk on fire")

    upkeep = services({**ON, "hudistream.clean.on.failure": policy}, run, Place())
    for _ in range(3):
        upkeep.after_commit(empty_table())
        upkeep.wait()
        if policy == "fail":
            with pytest.raises(HudiError, match="disk on fire.*can be run again"):
                upkeep.check()
        upkeep.check()
    assert len(done) == runs == upkeep.failures
    assert [e["then"] for e in logs if e["event"] == "table_services_failed"] == [policy] * runs


# what is said -> is a clean planned in the background, right after the commit, or never
SPELLINGS = [
    ({}, "background"),
    ({"clean.async.enabled": "true"}, "background"),
    ({"hoodie.clean.async": "true"}, "background"),
    ({"hoodie.clean.async.enabled": "true", "clean.async.enabled": "true"}, "background"),
    ({"hoodie.clean.async": "false"}, "inline"),
    ({"hoodie.clean.async.enabled": "false"}, "inline"),
    ({"clean.async.enabled": "false"}, "never"),
    ({"hoodie.clean.automatic": "false"}, "never"),
    ({"hoodie.clean.automatic": "false", "hoodie.clean.async": "false"}, "never"),
    ({"hoodie.clean.automatic": "false", "clean.async.enabled": "true"}, "never"),
]


@pytest.mark.parametrize("archives", quick(1, [True, False]))
@pytest.mark.parametrize(("options", "cleaned"), SPELLINGS)
def test_when_a_copy_on_write_table_is_cleaned_and_archived(tmp_path, monkeypatch, logs, options, cleaned, archives):
    ran = []
    for name, service in (("clean", CleaningService), ("archive", ArchivalService)):

        def noted(*args, name=name, inner=service.plan):
            ran.append((name, threading.current_thread().name == "hudistream-services"))
            return inner(*args)

        monkeypatch.setattr(service, "plan", noted)
    path = str(tmp_path / "t")
    bounds = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    engine = Engine(path, {**ON, **bounds, "hoodie.archive.automatic": archives, **options})
    for number in range(6):
        engine.write(number, rows([number], lambda _: "p"))
        if cleaned == "inline":
            # before the next batch begins: nothing to wait for
            assert not engine.writer.services.is_cleaning
            assert load_timeline(LocalStorage(path)).completed_of(Action.CLEAN) or number < 2
        engine.writer.services.wait()
    in_background = cleaned != "inline"
    expected = [("clean", in_background)] * (cleaned != "never") + [("archive", in_background)] * archives
    assert ran == expected * 6
    line = load_timeline(LocalStorage(path))
    assert (len(line.completed_writes) < 6) is archives
    assert bool(line.completed_of(Action.CLEAN)) is (cleaned != "never")
    assert len([e for e in logs if e["event"] == "nothing_cleans"]) == (cleaned == "never")
    assert key_set(read_table(path)) == sorted(f"k{n}" for n in range(6))


@pytest.mark.parametrize(
    ("hudis", "flinks"), [("false", "false"), ("false", "true"), ("true", "false")], ids=lambda value: value
)
@pytest.mark.parametrize("spelling", ["hoodie.clean.async", "hoodie.clean.async.enabled"])
def test_the_two_switches_of_asynchronous_cleaning_may_not_contradict_each_other(spelling, hudis, flinks):
    with pytest.raises(InvalidConfigError, match=f"{spelling}={hudis} and clean.async.enabled={flinks} say different"):
        parse_options({spelling: hudis, "clean.async.enabled": flinks})


def test_a_clean_that_fails_right_after_the_commit_does_not_fail_the_batch(tmp_path, logs):
    path = str(tmp_path / "t")
    engine = Engine(path, ON)
    engine.writer.services.services = (Doing(lambda _table: 1 / 0, CleanFailure.FAIL, Trigger.INLINE),)
    assert engine.write(0, rows([0])).instant_time
    assert engine.writer.services.failures == 1
    assert key_set(read_table(path)) == ["k0"]
    with pytest.raises(HudiError, match="can be run again"):
        engine.write(1, rows([1]))
    assert engine.write(1, rows([1])).instant_time


@pytest.mark.parametrize("options", [{"clean.async.enabled": "false"}, {"hoodie.clean.automatic": "false"}])
def test_the_row_in_which_nothing_cleans_is_said_once(tmp_path, logs, options):
    engine = Engine(str(tmp_path / "t"), {**ON, **options})
    for number in range(3):
        engine.write(number, rows([number]))
    assert [e["log_level"] for e in logs if e["event"] == "nothing_cleans"] == ["warning"]
    assert not load_timeline(LocalStorage(str(tmp_path / "t"))).completed_of(Action.CLEAN)


def test_a_retention_shorter_than_a_query_is_said_once(tmp_path, logs):
    assert retention_s(["20260101000000000"] * 4, 10) is None
    assert retention_s([f"202601010000{n:02d}000" for n in range(5)], 10) == 10
    engine = Engine(str(tmp_path / "t"), ON)
    for number in range(8):
        engine.write(number, rows([number]))
        engine.writer.services.wait()
    (told,) = [e for e in logs if e["event"] == "retention_is_short"]
    assert told["seconds"] < 600


def test_a_savepoint_that_holds_archival_for_long_is_said_once(tmp_path, logs):
    path = str(tmp_path / "t")
    keeps = {"hoodie.archive.automatic": "true", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    engine = Engine(path, {**ON, "hoodie.clean.commits.retained": "1", **keeps})
    engine.write(0, rows([0]))
    engine.writer.stop()
    held = create_savepoint(HudiTable.open(path))
    engine = Engine(path, {**ON, "hoodie.clean.commits.retained": "1", **keeps})
    for number in range(1, 13):
        engine.write(number, rows([number]))
        engine.writer.services.wait()
    (told,) = [e for e in logs if e["event"] == "archival_held"]
    assert (told["log_level"], told["savepoint"], told["commits"]) == ("warning", held, 10)
    assert f"savepoint delete PATH {held}" in told["hint"]


def test_a_batch_is_visible_whatever_cleaning_does(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, {**ON, "hoodie.clean.commits.retained": "1"})
    engine.writer.services.services = (Doing(lambda _table: 1 / 0),)
    for number in range(3):
        summary = engine.write(number, rows([number]))
        assert summary.instant_time
        engine.writer.services.wait()
    assert engine.writer.services.failures == 3
    assert key_set(read_table(path)) == ["k0", "k1", "k2"]


def test_the_interpreter_waits_for_a_clean_under_way(tmp_path):
    code = f"""
import sys, time
sys.path[:0] = {sys.path!r}
from doing import Doing
from engine import Engine, rows
engine = Engine({str(tmp_path / "t")!r}, {{"hoodie.clean.automatic": "true"}})
def slow(table):
    time.sleep(1)
    open({str(tmp_path / "done")!r}, "w").close()
engine.writer.services.services = (Doing(slow),)
engine.write(0, rows([1]))
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert (tmp_path / "done").exists()


def test_a_reader_that_holds_its_files_is_not_disturbed_within_the_retention(tmp_path):
    import pyarrow.parquet as pq
    from snapshots import snapshot_files

    path = str(tmp_path / "t")
    options = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "3"}
    engine = Engine(path, options)
    for number in range(12):
        engine.write(number, rows(range(3 * number, 3 * number + 3)))
        engine.writer.services.wait()
        engine.writer.lease.release()
        held, wanted = snapshot_files(path), key_set(read_table(path))
        for later in range(3):
            Engine(path, options).write(None, rows([10_000 + 10 * number + later]))
            # a sink of its own each time: its thread is done before the files are opened
            from table.services.clean.clean import clean

            clean(HudiTable.open(path), engine.writer._options.clean)
        keys = [key for file in held for key in pq.read_table(f"{path}/{file}").column("id").to_pylist()]
        assert sorted(keys) == wanted


class Compacting:
    """A service that somebody adds to the list."""

    name, on_failure, plans_between_batches, follows_commits = "compacting", CleanFailure.PAUSE, False, False

    def __init__(self, when, plan="a plan"):
        self.when, self.next_plan, self.done = when, plan, []

    def trigger(self, config):
        return self.when

    def note_commit(self, snapshot):
        self.done.append("advised")

    def plan(self, table):
        self.done.append("planned")
        if isinstance(self.next_plan, Exception):
            raise self.next_plan
        return self.next_plan

    def execute(self, table, plan, spread=None):
        self.done.append(plan)
        return ServiceOutcome(files_deleted=1)


@pytest.mark.parametrize("when", list(Trigger))
@pytest.mark.parametrize("plan", ["a plan", None])
def test_a_service_that_is_added_to_the_list_is_planned_and_carried_out_when_it_says(when, plan):

    upkeep, told = services({**ON, "hudistream.clean.on.failure": "fail"}, None, Place()), []
    added = Compacting(when, plan)
    upkeep.services = (added,)
    upkeep.listeners.append(lambda summary: told.append((summary.files_deleted, threading.current_thread().name)))
    upkeep.after_commit(empty_table())
    upkeep.wait()
    here = threading.current_thread().name
    if when is Trigger.AFTER_COMPACTION:
        assert added.done == ["advised"]
        assert told == [(0, "hudistream-services")]
    elif when is Trigger.NOT_NOW:
        assert (added.done, told) == (["advised"], [])
    else:
        assert added.done == ["advised", "planned", *([plan] if plan else [])]
        assert told == [(1 if plan else 0, here if when is Trigger.INLINE else "hudistream-services")]


def test_a_service_that_fails_stops_no_other_and_its_own_policy_counts(logs):

    upkeep = services({**ON, "hudistream.clean.on.failure": "fail"}, None, Place())
    before, failing, after = (Compacting(Trigger.INLINE) for _ in range(3))
    failing.next_plan, failing.on_failure = HudiError("no room"), CleanFailure.WARN
    before.on_failure = after.on_failure = CleanFailure.FAIL
    upkeep.services = (before, failing, after)
    for _ in range(2):
        upkeep.after_commit(empty_table())
    upkeep.check()  # the policy of the one that failed, not that of the others
    assert before.done == ["advised", "planned", "a plan"] * 2
    assert after.done == ["advised", "planned", "a plan"] * 2
    assert upkeep.failures == 2
    assert [e["then"] for e in logs if e["event"] == "table_services_failed"] == ["warn"] * 2


def test_a_compaction_that_always_fails_stops_neither_cleaning_nor_archival(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    options = {
        **ON,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.operation": "upsert",
        "clean.async.enabled": "false",  # Flink cleans after a compaction then
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "compaction.delta_commits": "2",
    }
    engine, tried = Engine(path, options), []

    def fails(*_):
        tried.append("compaction")
        raise HudiError("no room")

    monkeypatch.setattr(CompactionService, "execute", fails)
    monkeypatch.setattr(CleaningService, "plan", lambda *_: tried.append("cleaning"))
    monkeypatch.setattr(ArchivalService, "plan", lambda *_: tried.append("archival"))
    for number in range(4):
        engine.write(number, rows(range(3), ts=number))
        engine.writer.services.wait()
    engine.writer.stop()
    last = len(tried) - tried[::-1].index("compaction")
    assert tried[last - 1 : last + 2] == ["compaction", "cleaning", "archival"]
    assert engine.writer.services.failures


def test_an_empty_batch_gives_a_pending_clean_its_turn(tmp_path):
    path = str(tmp_path / "t")
    options = {"hoodie.datasource.write.operation": "upsert", "hoodie.clean.commits.retained": "1"}
    quiet = Engine(path, options)
    for number in range(4):
        quiet.write(number, rows(range(3), ts=number))
    table = HudiTable.open(path)
    schedule_clean(table, CleanSettings(commits_retained=1, grace_ms=0))
    assert table.load_timeline().pending_of(Action.CLEAN)
    quiet.writer.stop()
    engine = Engine(path, {**options, **ON})
    engine.write(4, rows([]))
    engine.writer.services.wait()
    assert not table.load_timeline().pending_of(Action.CLEAN)
    assert table.load_timeline().completed_of(Action.CLEAN)
    engine.writer.stop()


def test_a_run_that_ends_does_not_free_the_place_of_the_next_one(tmp_path, monkeypatch):
    """The thread of a run may be late to end: another run has begun meanwhile, and no third one beside it."""
    engine = Engine(str(tmp_path / "t"), ON)
    services, at_once, running = engine.writer.services, [], []
    may_end, first_is_over = threading.Event(), threading.Event()
    inner = services._carry_out_all

    def late(run):
        inner(run)
        if not first_is_over.is_set():
            first_is_over.set()
            may_end.wait(10)

    def work(_table):
        running.append(1)
        at_once.append(len(running))
        if len(at_once) == 2:
            may_end.set()
            time.sleep(0.5)
        running.pop()

    monkeypatch.setattr(services, "_carry_out_all", late)
    services.services = (Doing(work),)
    engine.write(0, rows([0]))
    assert first_is_over.wait(10)
    for number in range(1, 3):
        engine.write(number, rows([number]))
    services.wait()
    assert at_once[:2] == [1, 1]
    assert set(at_once) == {1}
