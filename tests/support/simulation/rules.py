"""Each rule of the protocol taken out in turn: what the simulation must find without it."""

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest import mock

from instants import inflight

from streaming.batch import begin_batch, recovery
from streaming.batch.record_index import see_index
from streaming.router import waiting_room
from streaming.router.aside import delete_files, sweep_staged
from streaming.router.routed_table import Arrived
from streaming.router.write_tables import TableWriters
from streaming.task import log_lookup, tag, upsert
from table import clock
from table.config.metadata_indexes import RECORD_INDEX
from table.config.table_config import update_properties
from table.errors import HudiError, TimelineMovedError
from table.files.key_changes import KeyChanges
from table.metadata_table import drop, keep
from table.metadata_table.metadata_table import METADATA_FOLDER, count_groups, slices_in
from table.metadata_table.read_record_index import RecordIndex
from table.metadata_table.record_index import new_locations
from table.references.strays import delete_strays
from table.scan import pinned
from table.services.archival import archival, retired
from table.services.archival.plan import Unseen
from table.services.archival.turn import Turn
from table.services.clean import clean, judgement, plan, service
from table.services.clustering import clustering, execution
from table.services.compaction import compaction
from table.services.compaction import execution as compacted
from table.services.conversion import convert
from table.services.rollback import rollback, undo_checks
from table.services.savepoint import restore, savepoint
from table.storage.interface import join
from table.timeline import active_timeline
from table.timeline.active_timeline import begin_instant, read_instant, request_and_list
from table.timeline.metadata.commit import CommitMetadata
from table.timeline.timeline import Timeline
from table.transaction import commit, commit_facts, completion, conflicts, keeper, lease, planned_clusterings
from table.transaction.liveness import judge_writer
from table.view import file_system_view
from table.view.file_group import committed_instants
from table.write import write_log

from . import worlds
from .disk import SimStorage


@contextmanager
def patched(*changes):
    """Replaces attributes: (where, name, what)."""
    with ExitStack() as stack:
        for where, name, what in changes:
            stack.enter_context(mock.patch.object(where, name, what))
        yield


def _clean_deletes_folders(snapshot, settings, known=None):
    """Rule 1: a clean deletes the folder of an emptied partition, whatever lies in it."""
    done = _carry_out_cleans(snapshot, settings, known)
    for outcome in done:
        for path in outcome.plan.emptied:
            for name in snapshot.storage.list_tree(path):
                snapshot.storage.delete(join(path, name))
    return done


def _clean_removes_partitions(snapshot, settings, known=None):
    """Rule 2: the background clean removes emptied partitions itself, beside a batch."""
    done = _carry_out_cleans(snapshot, settings, known)
    recovery.remove_emptied_partitions(snapshot.table, [path for outcome in done for path in outcome.plan.emptied])
    return done


_carry_out_cleans = clean.carry_out_cleans


def _decide_alone(_storage, wanted):
    """Rule 3: everybody has the end that he wants."""
    return wanted


def _commit_first(table, end):
    """Rule 4: the completed file comes first, and what failed attempts left is never looked for."""
    storage = table.storage
    begun = inflight(end.time, end.action)
    if not storage.exists(begun.path):
        return commit._find_outcome(table, end)
    return commit.complete_instant(storage, begun, end.content, end.completion_time)


def _no_fence(self, _instant_time):
    """Rule 5: an instant is never closed."""


def _keep_once(self, stopped):
    """Rule 8: the first error ends the renewal of the lease."""
    while not stopped.wait(self._interval_ms / 1000):
        self.renew()


def _change_anyway(storage, _holding, written, removed=()):
    """Rule 7: a conversion switches the table, whoever holds it by now."""
    return update_properties(storage, written, removed)


def _hold_without_asking(self, _identity, _seen=None):
    """Rule 7: everybody holds the table."""
    self._record = self._record or lease.LeaseRecord(1, None)


def _open_after_request(storage, instant, content=b""):
    """Rule 5: a writer opens its instant after it has requested it."""
    storage.open_staging(instant.time)
    return begin_instant(storage, instant, content)


def _claim_alone(self, time):
    if commit.begin_heartbeat(self._storage, time, self._identity, self.sight):
        self.time = time
    return self.time == time


def _plan_from_before(storage, timeline, *rest):
    """Rule 15: a batch is planned from the timeline before its request."""
    return request_and_list(storage, timeline, *rest)[0], timeline


# cleans as another engine plans them: they do not know what a slow batch reads
_CLEANS_OF_OTHERS = [(plan, "PENDING_WRITES", ()), (judgement, "earliest_in_use", lambda _: None)]


# a batch does not ask whether the pending commits of others are decided
_NO_LOOK_AT_ENDS = (commit_facts, "_load_decided", lambda *_: frozenset())


def _read_or_nothing(storage, instant):
    """Rule 15: a completed file that is gone is an empty commit."""
    try:
        return read_instant(storage, instant)
    except TimelineMovedError:
        return b"{}"


def _see_nothing_last(_table, _owner):
    """Rule 14: nobody waits for the commit in the last place."""
    return commit.Place(0)


def _plan_beside_writes(*_):
    """Rule 14: a compaction is planned beside writes that it does not know of."""


# worlds made for what is rare in others
def _complete_now(storage, instant, content, completion_time=None):
    """Rule 16: each process that completes an instant chooses the time."""
    if completion_time is not None:
        completion_time = clock.format_instant_time(clock.now_ms())
    return active_timeline.complete_instant(storage, instant, content, completion_time)


_carry_out = execution._carry_out


def _carry_out_or_delete(snapshot, planned, *given):
    """A failed attempt deletes all files of its instant, those of other attempts, too."""
    try:
        return _carry_out(snapshot, planned, *given)
    except HudiError:
        snapshot.storage.fence(planned.time)
        delete_strays(snapshot.storage, planned.time, frozenset())
        raise


def _without_locations(storage, config, *_, **__):
    """Rule 18: the commit does not tell its keys."""
    return config, None


def _of_known_keys(changes, *given):
    """Rule 18: where keys are not known, the index stays as it is."""
    return new_locations(changes or {}, *given)


def _see_earlier_index(table, options):
    """Rule 18: a batch takes the index as it was before the last batch, and does not ask what it lacks."""
    now, kept = see_index(table, options), table.known_lists.__dict__
    before, kept["seen_index"] = kept.get("seen_index"), now
    return _Unchecked(before or now) if now is not None else None


class _Unchecked:
    def __init__(self, seen):
        self._seen = seen

    def as_of(self, _):
        committed = committed_instants(self._seen.timeline, {})
        entries = list(self._seen.entries)
        slices = {int(one.file_id.split("-")[-2]): one for one in slices_in(RECORD_INDEX, entries, committed)}
        return RecordIndex(self._seen.own, committed, slices, count_groups(entries))


def _with_deleted_rows(plan, rows, located):
    """Rule 18: a change goes to each file group whose base file has its key, deleted or not."""
    return located


def _folder_first(storage, changes):
    """Rule 18: the lists are deleted while the property still names them."""
    storage.delete_metafolder(METADATA_FOLDER)
    return update_properties(storage, changes)


def _written_groups(metadata):
    return frozenset((stat.partition_path, stat.file_id) for stat in metadata.stats)


def _write_what_comes(self, spark, opened, name, own):
    """Rule 20: what waits is written after what comes."""
    with self._open.use(name) as table:
        if own is not None:
            self._write_rows(spark, table, opened, own)
        for each in self._waiting.batches_of(name):
            self._write_waiting(spark, table, opened, each)


def _write_without_number(self, spark, table, opened, waiting):
    batch = replace(opened, batch_id=None, query_id=None, keeps_table=True)
    self._write_rows(spark, table, batch, Arrived(waiting.name, waiting.pieces))
    self._waiting.end(waiting)


def _forget_files_first(storage, waiting):
    delete_files(storage, waiting.pieces)
    storage.delete(waiting.record)


BUILDS = {
    "10: a reader looks for cleans before its listing": worlds.build_late_readers,
    "20: what waits is written before what comes": worlds.build_routed,
    "20: what waits keeps its query and number": worlds.build_routed,
    "20: the record of what waits is deleted first": worlds.build_routed,
    "20: a sweep keeps what waits": worlds.build_routed,
    "18: the lists know what becomes visible": worlds.build_listed,
    "18: the lists know what a clean deletes": worlds.build_listed,
    "18: the property goes before the lists": worlds.build_listed,
    "18: the statistics know what becomes visible": worlds.build_bounded,
    "18: the record index knows what becomes visible": worlds.build_indexed,
    "18: a record index that lacks keys is dropped": worlds.build_indexed,
    "18: who ends the commit of another process reads its files": worlds.build_bounded,
    "18: a batch finds keys by the index of its snapshot": worlds.build_indexed,
    "18: archival waits until the lists are compacted": worlds.build_indexed,
    "18: a log tells which keys come and go": worlds.build_indexed_logs,
    "18: changes go where a key has its row": worlds.build_indexed_logs,
    "18: a key that lies in a log alone is known": worlds.build_joined_logs,
    "17: a clustering is planned from what is there": worlds.build_clustered,
    "17: what a clustering replaces counts as written": worlds.build_clustered,
    "17: nothing is written to what a planned clustering replaces": worlds.build_planned_clusterings,
    "17: a plan that lacks a decided commit is withdrawn": worlds.build_planned_clusterings,
    "17: an attempt deletes nothing before its end": worlds.build_clustered_beside,
    "5: an instant is open before it is requested": worlds.build_reopened,
    "4: a completed file does not come back": worlds.build_slow_batch,
    "15: archival keeps what a batch has not seen": worlds.build_overtaken,
    "15: a batch is planned from the timeline behind its request": worlds.build_slow_begin,
    "15: what is retired was read": worlds.build_crowd,
    "14: several writers commit one after another": worlds.build_several_writers,
    "14: a commit looks at what cleans took from its view": worlds.build_clustered,
    "14: log files of two writers have names of their own": worlds.build_several_writers,
    "14: a compaction knows every write before it": worlds.build_scheduled,
    "14: the living are left alone": worlds.build_several_writers,
    "14: a forked child is another writer": worlds.build_forked,
    "16: the time of completion is decided once": worlds.build_later_version,
    "16: what began before a compaction ends behind its request": worlds.build_planned_beside,
    "7: a conversion switches the table that it holds": worlds.build_converted,
    "7: who takes the table withdraws its conversion": worlds.build_converted,
    "4: an undone clustering stays undone": worlds.build_undone_clusterings,
    "10: cleaning reads the pins": worlds.build_readers,
    "10: a reader looks for cleans behind its pin": worlds.build_slow_readers,
}

RULES = {
    "1: deletion names files": [
        (service, "carry_out_cleans", _clean_deletes_folders), (clean, "carry_out_cleans", _clean_deletes_folders),
    ],
    "2: partitions are removed by the writer, between two batches": [
        (service, "carry_out_cleans", _clean_removes_partitions),
    ],
    "3: one object decides how an instant ends": [
        *((room, "decide_end", _decide_alone) for room in (
            commit, completion, compacted, planned_clusterings, rollback, undo_checks, restore,
        )), _NO_LOOK_AT_ENDS,
    ],
    "4: the order of an end": [
        (commit, "carry_out_commit", _commit_first), (rollback, "carry_out_commit", _commit_first),
    ],
    "5: the fence": [
        (SimStorage, "fence", _no_fence), (SimStorage, "revoke", lambda *_: None),
        (SimStorage, "is_open", lambda *_: True),
    ],
    "5: an instant is open before it is requested": [
        (commit._HeartbeatClaim, "take", _claim_alone), (commit, "begin_instant", _open_after_request),
    ],
    "4: a completed file does not come back": [
        (commit, "delete_returned", lambda snapshot: snapshot),
        (rollback, "delete_returned", lambda snapshot: snapshot),
        (archival, "delete_returned", lambda snapshot: snapshot),
    ],
    "6: leftovers go before the line moves": [
        (archival, "find_held", lambda *_: frozenset()), (archival, "delete_leftovers", lambda *_: ()),
    ],
    "7: one writer means one": [
        (lease.Lease, "hold", _hold_without_asking), (lease.Lease, "confirm", lambda _: None),
        (commit, "_check_alone", lambda *_: None),
    ],
    "7: a conversion switches the table that it holds": [(convert, "change_held", _change_anyway)],
    "7: who takes the table withdraws its conversion": [(lease, "withdraw_change", lambda _: None)],
    "8: renewals do nothing else": [(keeper.Keeper, "_keep", _keep_once)],
    "9: completion looks at what it was planned from": [(commit, "find_conflict", lambda _: None)],
    "10: services and operators take turns": [
        (savepoint, "_find_hole", lambda *_: None), (clean, "load_savepointed", lambda *_: {}),
    ],
    "10: cleaning reads the pins": [
        (clean, "find_pinned", lambda *_: {}), (judgement, "load_live_pins", lambda _: ()),
    ],
    "10: a reader looks for cleans behind its pin": [(pinned, "_is_chosen", lambda *_: False)],
    "10: a reader looks for cleans before its listing": [(pinned, "_has_lost_files", lambda *_: False)],
    "20: what waits is written before what comes": [(TableWriters, "_write_table", _write_what_comes)],
    "20: what waits keeps its query and number": [(TableWriters, "_write_waiting", _write_without_number)],
    "20: the record of what waits is deleted first": [(waiting_room, "forget", _forget_files_first)],
    "20: a sweep keeps what waits": [(waiting_room, "sweep_staged", lambda storage, _: sweep_staged(storage, ()))],
    "14: several writers commit one after another": [
        (commit, "_settle_last", _see_nothing_last), (commit, "take_next_place", lambda *_: True), _NO_LOOK_AT_ENDS,
    ],
    "14: a commit looks at what cleans took from its view": [
        (conflicts, "_is_as_new_as", lambda *_: False), (file_system_view, "find_lost", lambda *_, **__: ()),
        *_CLEANS_OF_OTHERS,
    ],
    "14: log files of two writers have names of their own": [
        (write_log, "log_write_token", lambda token, *_, **__: token)
    ],
    "14: a compaction knows every write before it": [(compaction, "_check_nothing_written", _plan_beside_writes)],
    "15: archival keeps what a batch has not seen": [
        (archival, "load_unseen", lambda *_: Unseen()), (conflicts, "_find_archived", lambda _: None),
        _NO_LOOK_AT_ENDS,
    ],
    "15: a batch is planned from the timeline behind its request": [
        (commit, "request_and_list", _plan_from_before), (archival, "load_unseen", lambda *_: Unseen()),
        (conflicts, "_find_archived", lambda _: None), _NO_LOOK_AT_ENDS,
    ],
    "15: what is retired was read": [
        (Turn, "take", lambda _: None), (Turn, "check", lambda _: None), (Turn, "release", lambda _: None),
        (retired, "read_instant", _read_or_nothing),
    ],
    "16: the time of completion is decided once": [
        (commit, "complete_instant", _complete_now), (completion, "complete_instant", _complete_now),
    ],
    "16: what began before a compaction ends behind its request": [
        (commit, "completed_past", lambda _, end: end), (rollback, "completed_past", lambda _, end: end),
    ],
    # a base file instead of log files: tests/table/transaction/test_commit_facts.py
    "17: a clustering is planned from what is there": [(clustering, "check_nothing_came", lambda *_: None)],
    "17: what a clustering replaces counts as written": [(CommitMetadata, "file_groups", property(_written_groups))],
    "17: nothing is written to what a planned clustering replaces": [
        (begin_batch, "load_clustered", lambda _: {}), (commit_facts, "load_clustered", lambda *_, **__: {}),
        (execution, "_check_not_outdated", lambda *_: None),
    ],
    "17: a plan that lacks a decided commit is withdrawn": [
        (commit, "withdraw_clusterings", lambda *_: None), (execution, "_check_not_outdated", lambda *_: None),
    ],
    "17: an attempt deletes nothing before its end": [(execution, "_carry_out", _carry_out_or_delete)],
    # what else belongs to rule 18 is rarer than worlds are many: tests/table/metadata_table/test_keep.py
    "18: the lists know what becomes visible": [(commit, "keep_lists", lambda *_: None)],
    "18: the lists know what a clean deletes": [(completion, "keep_lists", lambda *_: None)],
    "18: the property goes before the lists": [(drop, "update_properties", _folder_first)],
    "18: the statistics know what becomes visible": [(keep, "_new_statistics", lambda *_: (None, None))],
    "18: the record index knows what becomes visible": [(keep, "_new_locations", _without_locations)],
    "18: a record index that lacks keys is dropped": [(keep, "new_locations", _of_known_keys)],
    "18: who ends the commit of another process reads its files": [(keep, "find_untold", lambda *_: {})],
    "18: a batch finds keys by the index of its snapshot": [(begin_batch, "see_index", _see_earlier_index)],
    "18: archival waits until the lists are compacted": [(archival, "find_unmerged", lambda *_: frozenset())],
    "18: a log tells which keys come and go": [(upsert, "find_key_changes", lambda *_: KeyChanges())],
    "18: changes go where a key has its row": [
        (upsert, "without_deleted_rows", _with_deleted_rows), (tag, "without_deleted_rows", _with_deleted_rows),
    ],
    "18: a key that lies in a log alone is known": [
        (log_lookup.LogLookup, "complete", lambda _, rows, located, paths: located),
    ],
    "4: an undone clustering stays undone": [
        (Timeline, "pending_action", lambda _, _time, action: action),
        (rollback, "_overrule_other", lambda *_: None),
    ],
    "14: a forked child is another writer": [(lease.Lease, "refuse_child", lambda _: None)],
    "14: the living are left alone": [
        (rollback, "judge_writer", lambda live, me, **_: judge_writer(live, me)),
    ],
}  # fmt: skip
