"""What the tools say of a pending instant is what the next batch does with it."""

from dataclasses import replace

import pytest
from engine import OPTIONS, Engine, form_of, leave_a_dead_batch, rows

from table.errors import (
    ActionPendingError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptFileError,
    StorageError,
)
from table.hudi_table import HudiTable
from table.inspect.doctor import examine
from table.inspect.explain import explain_batch
from table.inspect.health import load_health
from table.inspect.health_facts import Code
from table.inspect.judge_health import PENDING_TOO_LONG_S, judged
from table.options.groups import CompactionSettings, HeartbeatSettings
from table.options.write_options import parse_options
from table.services.check.check import check
from table.services.check.finding import Kind, Repair
from table.services.compaction.compaction import schedule_compaction
from table.services.rollback import rollback as module
from table.services.rollback.fate import WRITES, Fate, judge_pending
from table.services.rollback.outlook import load_outlook
from table.services.rollback.rollback import roll_back_failed_writes
from table.snapshot import Snapshot
from table.timeline.end_record import end_path
from table.timeline.instant import Action
from table.transaction import commit
from table.transaction.heartbeat import WriterIdentity, heartbeat_path, write_heartbeat
from table.transaction.holder import find_standing_holder

HEARTBEAT = HeartbeatSettings(60_000)


@pytest.mark.parametrize(
    ("action", "facts", "fate"),
    [
        (Action.COMMIT, {}, Fate.ROLLED_BACK),
        (Action.COMMIT, {"is_decided": True}, Fate.CARRIED_OUT),
        (Action.DELTA_COMMIT, {"lives": True}, Fate.UNDER_WAY),
        (Action.DELTA_COMMIT, {"lives": True, "is_decided": True}, Fate.UNDER_WAY),
        (Action.COMMIT, {"lives": True, "may_live": False}, Fate.REFUSED),
        (Action.REPLACE_COMMIT, {}, Fate.ROLLED_BACK),
        (Action.REPLACE_COMMIT, {"is_planned": True}, Fate.LEFT),
        (Action.CLUSTERING, {"is_planned": True, "lives": True, "may_live": False}, Fate.LEFT),
        (Action.CLUSTERING, {"is_decided": True}, Fate.CARRIED_OUT),
        (Action.ROLLBACK, {}, Fate.FINISHED),
        (Action.ROLLBACK, {"lives": True}, Fate.UNDER_WAY),
        (Action.RESTORE, {"lives": True}, Fate.REFUSED),
        *((action, {}, Fate.LEFT) for action in (Action.CLEAN, Action.COMPACTION, Action.LOG_COMPACTION)),
    ],
)
def test_what_becomes_of_a_pending_instant(action, facts, fate):
    assert judge_pending(action, **facts) is fate


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def begin(path, version=8):
    options = {**form_of(version, "MERGE_ON_READ"), "hoodie.compact.inline": "false"}
    engine = Engine(path, options)
    engine.write(0, rows(range(6), v="kept"))
    return engine, options


def sink_of(options):
    return parse_options({**OPTIONS, **options}).options.sink.id


def outlook(path):
    table = HudiTable.open(path)
    holder = find_standing_holder(table.storage, HEARTBEAT)
    return load_outlook(Snapshot.load(table), holder, HEARTBEAT, may_live=False)


def one_of(path, *actions):
    return next(one for one in outlook(path) if one.instant.action in actions)


def pending_findings(path):
    kinds = (Kind.PENDING_WRITE, Kind.PENDING_SERVICE, Kind.END_NOT_CARRIED_OUT)
    return [one for one in check(HudiTable.open(path)).findings if one.kind in kinds]


def assert_tools_agree(path, fate, words):
    """Each tool says the same of the oldest pending instant."""
    [found] = outlook(path)
    assert found.fate is fate
    assert words in str(found)
    assert any(str(found) == one.text for one in examine(path).findings)
    assert load_health(HudiTable.open(path)).pending[0].outlook == str(found)
    return found


@pytest.mark.parametrize("version", [6, 8])
def test_a_dead_write_is_rolled_back(path, version):
    engine, options = begin(path, version)
    engine.writer.stop()
    leave_a_dead_batch(Engine(path, options), 1, rows(range(3), ts=1))
    found = assert_tools_agree(path, Fate.ROLLED_BACK, "the next batch rolls it back")
    [finding] = pending_findings(path)
    assert (finding.kind, finding.repair, finding.advice) == (
        Kind.PENDING_WRITE, Repair.POSSIBLE, f"nothing: {found.way}",
    )  # fmt: skip
    told = explain_batch(HudiTable.open(path), sink_of(options), 1, "q")
    assert (told.verdict, told.before) == ("write", (str(found),))
    after = roll_back_failed_writes(HudiTable.open(path), WriterIdentity("s", "q", "me"), HEARTBEAT)
    assert after.timeline.find(found.instant.time, found.instant.action) is None
    assert outlook(path) == ()


@pytest.mark.parametrize("version", [6, 8])
def test_a_decided_write_is_carried_out_and_its_batch_skipped(path, version, monkeypatch):
    engine, options = begin(path, version)

    def fails(*_args, **_more):
        raise StorageError("the store is gone")

    with monkeypatch.context() as patch:
        patch.setattr(commit, "carry_out_commit", fails)
        with pytest.raises(CommitOutcomeUnknownError):
            engine.write(1, rows(range(3), ts=1, v="new"))
    engine.writer.stop()
    found = assert_tools_agree(path, Fate.CARRIED_OUT, "the next batch carries it out")
    assert [one.kind for one in pending_findings(path)] == [Kind.END_NOT_CARRIED_OUT]
    engine = Engine(path, options)
    told = explain_batch(HudiTable.open(path), sink_of(options), 1)
    assert (told.verdict, told.last.batch_id, told.before) == ("skip", 1, (str(found),))
    engine.write(1, rows(range(3), ts=1, v="new"))
    timeline = HudiTable.open(path).load_timeline()
    assert timeline.find(found.instant.time, found.instant.action).is_completed
    assert len(timeline.completed_writes) == 2


def test_a_rollback_is_finished(path, monkeypatch):
    engine, options = begin(path)
    engine.writer.stop()
    leave_a_dead_batch(Engine(path, options), 1, rows(range(3), ts=1))

    def fails(*_args, **_more):
        raise StorageError("the process died")

    with monkeypatch.context() as patch:
        patch.setattr(module, "delete_instant_file", fails)
        with pytest.raises(StorageError):
            roll_back_failed_writes(HudiTable.open(path), WriterIdentity("s", "q", "me"), HEARTBEAT)
    found = one_of(path, Action.ROLLBACK)
    assert (found.fate, "the next batch finishes it" in str(found)) == (Fate.FINISHED, True)
    assert str(found) in explain_batch(HudiTable.open(path), "s", 1).before
    roll_back_failed_writes(HudiTable.open(path), WriterIdentity("s", "q", "other"), HEARTBEAT)
    assert outlook(path) == ()


def test_a_compaction_is_left_to_its_service_and_nobody_says_that_check_repairs_it(path):
    engine, options = begin(path)
    engine.write(1, rows(range(3), ts=1))
    engine.writer.stop()
    schedule_compaction(HudiTable.open(path), CompactionSettings(delta_commits=1))
    found = assert_tools_agree(path, Fate.LEFT, "`hudistream compact PATH --execute`")
    [finding] = pending_findings(path)
    assert (finding.repair, finding.advice) == (Repair.REFUSED, found.way)
    assert "check --repair" not in str(found)
    engine = Engine(path, options)
    assert explain_batch(HudiTable.open(path), sink_of(options), 2).before == ()
    engine.write(2, rows(range(3), ts=2))
    engine.writer.stop()
    timeline = HudiTable.open(path).load_timeline()
    assert found.instant.time in {one.time for one in timeline}  # its service may have carried it out since
    assert not timeline.completed_of(Action.ROLLBACK)


def test_a_restore_refuses_the_batch(path):
    engine, options = begin(path)
    engine.writer.stop()
    HudiTable.open(path).storage.put(".hoodie/timeline/20990101000000000.restore.requested", b"")
    found = assert_tools_agree(path, Fate.REFUSED, "no batch is written until then")
    told = explain_batch(HudiTable.open(path), sink_of(options), 1)
    assert (told.verdict, told.reason) == ("refuse", str(found))
    with pytest.raises(ActionPendingError):
        roll_back_failed_writes(HudiTable.open(path), WriterIdentity("s", "q", "me"), HEARTBEAT)


def test_a_live_writer_without_a_lease_refuses_the_batch(path):
    engine, options = begin(path)
    engine.writer.stop()
    leave_a_dead_batch(Engine(path, options), 1, rows(range(3), ts=1))
    [left] = outlook(path)
    storage = HudiTable.open(path).storage
    write_heartbeat(storage, left.instant.time, WriterIdentity("other", "q2"))
    found = one_of(path, *WRITES)
    assert (found.fate, "sink 'other'" in found.text) == (Fate.REFUSED, True)
    assert any(one.level == "stop" and one.text == str(found) for one in examine(path).findings)
    assert not pending_findings(path)  # it lives: nothing is wrong with the table
    with pytest.raises(CommitConflictError):
        roll_back_failed_writes(HudiTable.open(path), WriterIdentity("s", "q", "me"), HEARTBEAT)
    # without its heartbeat it is dead
    storage.delete_metafile(heartbeat_path(left.instant.time))
    assert one_of(path, *WRITES).fate is Fate.ROLLED_BACK


def test_a_damaged_end_record_refuses_the_batch(path):
    engine, options = begin(path)
    engine.writer.stop()
    leave_a_dead_batch(Engine(path, options), 1, rows(range(3), ts=1))
    [left] = outlook(path)
    table = HudiTable.open(path)
    table.storage.put(end_path(left.instant.time, left.instant.action), b"torn")
    found = one_of(path, *WRITES)
    assert (found.fate, "hudistream check PATH" in found.way) == (Fate.REFUSED, True)
    assert explain_batch(table, sink_of(options), 1).verdict == "refuse"
    with pytest.raises(CorruptFileError):
        roll_back_failed_writes(table, WriterIdentity("s", "q", "me"), HEARTBEAT)


def test_health_names_what_ends_an_old_compaction(path):
    engine, _ = begin(path)
    engine.write(1, rows(range(3), ts=1))
    engine.writer.stop()
    schedule_compaction(HudiTable.open(path), CompactionSettings(delta_commits=1))
    facts = load_health(HudiTable.open(path))
    late = replace(facts, pending=(facts.pending[0]._replace(age_s=PENDING_TOO_LONG_S + 1.0),), findings=())
    settings = parse_options({}).options
    judgement = judged(late, settings.clean, settings.archive, settings.compaction)
    [finding] = [one for one in judgement.findings if one.code is Code.WRITE_PENDING]
    assert "`hudistream compact PATH --execute`" in finding.text
    assert "check --repair" not in finding.text
