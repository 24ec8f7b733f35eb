"""The life of a commit: request, begin, end. Safety rests on the order of these calls.

A batch is visible exactly when its completed file exists. The end record of the instant decides whether that file
will exist (rule 3): commit or rollback, whichever is written first.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from table import clock
from table.config.metadata_indexes import RECORD_INDEX
from table.config.table_config import load_table_config
from table.errors import (
    ActionPendingError,
    CommitOutcomeUnknownError,
    InstantEndedError,
    StorageError,
    TimelineMovedError,
    WriteConflictError,
)
from table.files.markers import delete_markers, list_markers
from table.files.publication import delete_announced, forget_committed
from table.hudi_table import HudiTable
from table.log import get_logger
from table.metadata_table.changes import Written, changes_keys, changes_of_commit
from table.metadata_table.file_lists import Failures, tell_not_used
from table.metadata_table.keep import keep_lists
from table.metadata_table.keys_meanwhile import find_key_meanwhile
from table.references.strays import delete_strays
from table.references.undone import load_rolled_back_time, rollbacks_after
from table.snapshot import Snapshot
from table.storage.at_once import together
from table.storage.interface import Storage
from table.timeline.active_timeline import (
    begin_instant,
    complete_instant,
    delete_instant_file,
    request_and_list,
)
from table.timeline.archived_timeline import is_archived
from table.timeline.end_record import COMMIT, ROLLBACK, EndRecord, decide_end, find_end, overrule_end
from table.timeline.instant import Action, Instant, State
from table.timeline.layout import name_instant
from table.timeline.metadata.commit import CommitMetadata, WriteStat
from table.timeline.same_content import WRITER_KEY
from table.timeline.timeline import Timeline
from table.transaction.came_back import delete_returned
from table.transaction.commit_facts import PendingCommit, load_facts
from table.transaction.commit_order import Place, find_last_place, take_next_place
from table.transaction.completion import choose_completion, completed_past
from table.transaction.conflicts import CommitFacts, find_conflict
from table.transaction.heartbeat import WriterIdentity, begin_heartbeat, delete_heartbeat
from table.transaction.lease import Lease
from table.transaction.lock import Step, guarded
from table.transaction.outcome import CompletedCommit, LostCommit
from table.transaction.planned_clusterings import is_foreign_clustering, withdraw_clusterings
from table.transaction.provisional import settle_compactions
from table.transaction.store_clock import check_not_ahead, wait_past_completed, wait_until_reached

_TRIES = 100  # how often other writers may take the next place first
_MOVES = 5  # how often the timeline may change while it is read
_LOOKS = 6  # how often to check whether the commit in the last place has ended: for three seconds

log = get_logger("hudistream.commit")


def begin_commit(
    snapshot: Snapshot,
    operation: str,
    identity: WriterIdentity,
    lease: Lease,
    action: Action = Action.COMMIT,
    request: bytes = b"",
) -> PendingCommit:
    """Requests a commit, and moves it to inflight with the writer's name in it.

    The heartbeat is created before the request, so no writer sees a pending write without one. The instant is also
    opened for its tasks before the request, and is never opened again. The batch is planned from the timeline that is
    listed after the request (`PendingCommit.seen`). From the request on, archival keeps the writes that the batch has
    not seen: the heartbeat holds the time from which they begin (rule 15).

    Args:
        snapshot: the table, loaded after failed writes were rolled back.
        operation: Hudi's name, upper case.
        identity: the writer.
        lease: the writer's hold on the table.
        action: REPLACE_COMMIT for a batch that replaces file groups.
        request: content of the requested file: the plan of a clustering.

    Raises:
        CommitConflictError: another write is pending although this writer holds the table alone, or a later compaction
            is pending. Nothing is left.
        InvalidConfigError: this machine's clock and the store's differ by more than a minute, and readers compare them.
    """
    storage = snapshot.storage
    _check_compactions(snapshot.timeline, clock.format_instant_time(clock.now_ms(), snapshot.config.timezone))
    check_not_ahead(snapshot.table, lease.ahead_ms)
    wait_past_completed(snapshot.table)
    claim = _HeartbeatClaim(storage, identity, shared=lease.is_shared)
    profile = CommitMetadata(operation=operation, extra={WRITER_KEY: identity.encode().decode()})
    content = snapshot.layout.encode_commit(profile)

    def begin(instant: Instant) -> None:
        together(storage, lease.confirm, partial(begin_instant, storage, instant, content))

    try:
        with guarded(snapshot.table, Step.BEGIN):
            newest = snapshot.table.load_timeline() if lease.is_shared else snapshot.timeline
            claim.sight = newest.unseen_from
            times = snapshot.table.instant_clock
            instant, now = request_and_list(storage, newest, action, times, request, claim, begin)
            seen = settle_compactions(snapshot.at(now))
            if not lease.is_shared:
                _check_alone(snapshot.timeline, seen, instant)
            _check_compactions(seen.timeline, instant.time)
    except BaseException:
        _withdraw_begin(snapshot.table, claim.time, action)
        raise
    log.debug("commit_begun", table=storage.base_uri, instant_time=instant.time, operation=operation)
    return PendingCommit(instant.to(State.INFLIGHT), operation, seen, sight=claim.sight)


def _check_alone(before: Timeline, now: Snapshot, instant: Instant) -> None:
    """Refuses to write beside another pending write: both writers listed the timeline before either requested (rule 7).

    An instant that was completed in `before` is being archived: a listing is not atomic, and may show its inflight
    file alone. A clustering that another engine planned stays pending until some process carries it out: the batch
    leaves its file groups alone.
    """
    pending = now.timeline.pending_of(Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
    others = [i for i in pending if i.time != instant.time and not before.contains(i.at(State.COMPLETED))]
    others = [i for i in others if not is_foreign_clustering(now, i)]
    if others:
        raise WriteConflictError(
            f"{others[0].file_name} was requested while this batch began: one writer per table; the batch can be run "
            "again"
        )


def _check_compactions(timeline: Timeline, time: str) -> None:
    """Refuses an instant that is not later than every pending compaction (BaseHoodieWriteClient.startCommit).

    Raises:
        CommitConflictError: names the compaction.
    """
    for pending in timeline.pending_of(Action.COMPACTION, Action.LOG_COMPACTION):
        if pending.time >= time:
            raise ActionPendingError(
                f"the pending compaction {pending.time} is not earlier than {time}: let its writer finish it, or "
                "correct this machine's clock; the batch can be run again"
            )


class _HeartbeatClaim:
    """Claims the time of a commit by its heartbeat: the writer that creates the file may request this time.

    The instant is opened for its tasks at the same moment, before its request is visible. A rollback fences instants
    that it has seen requested. So a writer that was paused in between cannot reopen an instant that has ended
    (rule 5).

    Attributes:
        time: the claimed time.
        sight: the least time of a write that the batch may not have seen (`decode_sight`).
    """

    def __init__(self, storage: Storage, identity: WriterIdentity, *, shared: bool) -> None:
        self._storage, self._identity = storage, identity
        # others that share the table take an open instant without a heartbeat for one that was left behind
        self._is_in_order = shared or storage.calls_at_once == 1
        self.time: str | None = None
        self.sight: str | None = None

    def take(self, time: str) -> bool:
        begin = partial(begin_heartbeat, self._storage, time, self._identity, self.sight)
        if self._is_in_order:
            if begin():
                self.time = time
                self._storage.open_staging(time)
            return self.time == time
        begun, _ = together(self._storage, begin, partial(self._storage.open_staging, time))
        if begun:
            self.time = time
        else:
            self._storage.fence(time)  # what another writer ended does not stay open; one that lives fails, and repeats
        return self.time == time

    def give_up(self, time: str) -> None:
        if self.time == time:
            self._storage.fence(time)
            delete_heartbeat(self._storage, time)
            self.time = None


def _withdraw_begin(table: HudiTable, time: str | None, action: Action) -> None:
    """Deletes the files that a failed begin made. The next batch rolls back the instant if that fails.

    Args:
        time: the claimed time; files of other times are not deleted.
        action: the requested action.
    """
    if time is None:
        return
    storage, layout = table.storage, table.layout
    try:
        for state in (State.INFLIGHT, State.REQUESTED):
            delete_instant_file(storage, name_instant(layout, time, action, state))
        storage.fence(time)
        delete_heartbeat(storage, time)
    except StorageError as error:
        log.warning("begin_not_withdrawn", table=storage.base_uri, instant_time=time, error=str(error))


def withdraw_commit(pending: PendingCommit) -> None:
    """Withdraws a commit for which nothing was written: an empty batch leaves no instant."""
    storage = pending.seen.storage
    storage.fence(pending.time)
    for marker in list_markers(storage, pending.time):
        delete_announced(storage, pending.time, marker)
    delete_markers(storage, pending.time)
    delete_instant_file(storage, pending.instant)
    delete_instant_file(storage, pending.instant.at(State.REQUESTED))
    delete_heartbeat(storage, pending.time)


def complete_commit(
    pending: PendingCommit,
    written: CommitMetadata,
    schema: str,
    build_extra: Callable[[Snapshot], Mapping[str, str]],
    lease: Lease,
) -> CompletedCommit | LostCommit:
    """Makes a commit visible, or leaves it invisible if it conflicts with changes that other writers made meanwhile.

    Args:
        pending: the commit.
        written: the files that it wrote, and the file groups that it replaces.
        schema: the table's Avro schema without meta columns.
        build_extra: makes ``extraMetadata`` from the table as it is now.
        lease: the writer's hold on the table.

    Raises:
        InstantEndedError: another writer rolled the instant back.
        TableHeldError, WriteConflictError: the lease or the lock was lost, or other writers committed again and again.
        CommitOutcomeUnknownError: the end is decided, or may be decided, but was not carried out; the next batch
            carries it out.
    """
    table = pending.seen.table
    with guarded(table, Step.COMPLETE) as held:
        for _ in range(_TRIES):
            last = _settle_last(table, lease.owner) if lease.is_shared else None
            now, facts = _look_again(pending, written, schema)
            conflict = find_conflict(facts)
            if conflict is not None:
                return LostCommit(conflict.reason, conflict.file_groups, conflict.is_of_clustering)
            if lease.is_shared:
                _check_keys(table, facts, written)
            metadata = replace(written, extra={**build_extra(now), "schema": schema})
            held.check()
            if last is None or take_next_place(table.storage, last, pending.instant, lease.owner):
                break
        else:
            raise WriteConflictError(f"other writers committed {_TRIES} times in turn: run the batch again")
        completed = _decide_and_complete(now, pending, metadata, lease)
    log.debug("commit_completed", table=table.storage.base_uri, instant_time=pending.time, files=len(written.stats))
    return CompletedCommit(completed, metadata)


def _check_keys(table: HudiTable, facts: CommitFacts, written: CommitMetadata) -> None:
    """Refuses to add a key that another writer added, moved or deleted meanwhile, as far as a record index says so.

    Raises:
        WriteConflictError: names the key; or what others wrote cannot be read any more, because the batch stood still
            for long. The batch can be run again, and finds the key.
    """
    others = {time for time, metadata in facts.others.items() if changes_keys(metadata)}
    if not others or RECORD_INDEX not in table.config.metadata_indexes:
        return
    try:
        key = find_key_meanwhile(table.storage, written.stats, others)
    except FileNotFoundError as error:
        raise WriteConflictError(
            f"the keys that other writers wrote while the batch ran are not known any more ({error}): the batch can be "
            "run again"
        ) from error
    except Failures as error:
        tell_not_used("record_index_not_used", table.storage.base_uri, error)
        return
    if key is not None:
        raise WriteConflictError(
            f"another writer wrote the key {key!r} while the batch ran, which adds it: the batch can be run again"
        )


def _look_again(pending: PendingCommit, written: CommitMetadata, schema: str) -> tuple[Snapshot, CommitFacts]:
    """The table as it is now, and the facts that its timeline holds.

    Lists the timeline again if it changed while its files were read.
    """
    for _ in range(_MOVES):
        with suppress(TimelineMovedError):
            return _look_once(pending, written, schema)
    return _look_once(pending, written, schema)


def _look_once(pending: PendingCommit, written: CommitMetadata, schema: str) -> tuple[Snapshot, CommitFacts]:
    now, config = together(pending.seen.storage, pending.seen.again, partial(load_table_config, pending.seen.storage))
    return now, load_facts(now, config, pending, written, schema)


def _settle_last(table: HudiTable, owner: str) -> Place:
    """The last place in the commit order, once the commit there has ended. Waits for its writer, then decides the end.

    Raises:
        CommitOutcomeUnknownError, StorageError: the store fails.
    """
    last, end = find_last_place(table.storage), None
    if last.owner == owner:
        return last  # this writer's own earlier commit, which the batch ended at its begin
    for attempt in range(_LOOKS):
        found = table.load_timeline().find(last.time, last.action) if last.action is not None else None
        if last.action is None or found is None or found.is_completed:
            return last
        end = find_end(table.storage, last.time, last.action)
        if end is not None:
            break
        clock.sleep_s(0.05 * 2**attempt)
    assert last.action is not None
    end = end or decide_end(table.storage, EndRecord(last.time, last.action, ROLLBACK, owner))
    if end.is_commit:
        with suppress(InstantEndedError):  # another engine rolled the instant back: so it has ended
            carry_out_commit(table, completed_past(table, end))
    return last


def _decide_and_complete(snapshot: Snapshot, pending: PendingCommit, metadata: CommitMetadata, lease: Lease) -> Instant:
    lease.check()
    action = pending.instant.action
    content = snapshot.layout.encode_commit(metadata, replaces=action in (Action.REPLACE_COMMIT, Action.CLUSTERING))
    completion_time = choose_completion(snapshot, pending.instant)
    wanted = EndRecord(pending.time, action, COMMIT, lease.owner, content, completion_time=completion_time)
    end = decide_end(snapshot.storage, wanted)
    if not end.is_commit:
        raise InstantEndedError(
            f"instant {pending.time} was rolled back by another writer ({end.by}) while the batch ran; the batch is "
            "not visible and can be run again"
        )
    try:
        # the properties were compared before the decision: they say whether there is a metadata table
        return carry_out_commit(
            snapshot.table, end, Written(metadata.stats, snapshot.load_schema), looks_for_lists=False
        )
    except StorageError as error:
        raise CommitOutcomeUnknownError(
            f"instant {pending.time} is to be committed, and was not yet ({error}): the next batch carries it out"
        ) from error


def carry_out_commit(
    table: HudiTable, end: EndRecord, written: Written | None = None, *, looks_for_lists: bool = True
) -> Instant:
    """Carries out an end that says "commit". Can be repeated, also by several processes at once (rule 4).

    First the instant is fenced, so that no task can publish another file of it. Then the files that failed attempts
    left are deleted. Only then the completed file is created. So no stray file ever stands beside a commit. Before it,
    the metadata table is updated, if the table has one: nothing takes the commit back any more. Plans of other engines'
    clusterings that were made since the decision, and do not contain the commit, are withdrawn before it (rule 17).

    Args:
        end: the decision.
        written: what the writer of the commit knows of its files; None in a process that ends the commit of another.
        looks_for_lists: whether to look for a metadata table that another engine has made meanwhile.

    Raises:
        CommitConflictError: another engine rolled the instant back meanwhile.
        CommitOutcomeUnknownError, StorageError: the store fails; the end must be carried out again.
    """
    storage, time = table.storage, end.time
    storage.fence(time)
    begun = name_instant(table.layout, time, end.action, State.INFLIGHT)
    sweep = partial(delete_strays, storage, time, end.metadata.named_paths)
    swept, is_begun = together(storage, sweep, partial(storage.exists, begun.path))
    if not (storage.exists(begun.path) if swept else is_begun):
        return _find_outcome(table, end)
    wait_until_reached(table, end)
    if written is None:  # time may have passed since the decision
        withdraw_clusterings(Snapshot.load(table), end)
    known = written or Written(load_before=lambda: Snapshot.load(table).load_schema())
    if looks_for_lists or table.config.metadata_indexes:
        keep_lists(storage, time, end.completion_time, changes_of_commit(end.metadata, known), table.known_lists)
    completed = complete_instant(storage, begun, end.content, end.completion_time)
    if not storage.exists(begun.path):
        # since the check another engine rolled the instant back, or archival retired it
        return _find_outcome(table, end)
    return completed


def _find_outcome(table: HudiTable, end: EndRecord) -> Instant:
    """The outcome of an instant whose inflight file does not exist any more.

    If the request is still there, and nothing undoes it, others deleted the inflight file: the end is carried out.

    Raises:
        CommitConflictError: another engine rolled it back.
        CommitOutcomeUnknownError: neither the timeline nor the archive shows its outcome.
    """
    storage, time = table.storage, end.time
    snapshot = Snapshot.load(table)
    timeline = snapshot.timeline
    undone = any(load_rolled_back_time(snapshot, i) == time for i in rollbacks_after(timeline, time))
    if undone:
        overrule_end(storage, replace(end, end=ROLLBACK, content=b""))
        delete_instant_file(storage, timeline.completed_file(time, end.action))
        raise InstantEndedError(f"instant {time} was rolled back by another engine while it was being committed")
    found = timeline.find(time, end.action)
    if found is not None and found.is_completed:
        delete_returned(snapshot)
        return found
    if found is not None and found.state is State.REQUESTED:  # nobody ended it: its inflight file was lost
        begin_instant(storage, found)
        return carry_out_commit(table, end)
    if is_archived(table.archived_timeline, time):
        return name_instant(timeline.layout, time, end.action, State.INFLIGHT).to(State.COMPLETED, end.completion_time)
    raise CommitOutcomeUnknownError(f"the files of instant {time} are not on the timeline: run the batch again")


def clean_up_commit(storage: Storage, instant_time: str, stats: tuple[WriteStat, ...]) -> None:
    """Removes the heartbeat and the markers of a completed commit. Markers go last: a sweep finds leftovers by them."""
    delete_heartbeat(storage, instant_time)
    forget_committed(storage, instant_time, frozenset(path for stat in stats for path in stat.named_paths))
