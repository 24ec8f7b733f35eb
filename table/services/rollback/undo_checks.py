"""May commits be undone by hand? The files that readers see afterwards must exist, and no stream may lose rows."""

from collections.abc import Callable, Iterable

from table.errors import ActionPendingError, HudiError, InstantEndedError, InvalidConfigError, UnsupportedTableError
from table.files.log.instants import is_written_by
from table.files.names import parse_base_file, parse_log_file
from table.hudi_table import HudiTable
from table.snapshot import Snapshot
from table.storage.interface import Storage, join
from table.timeline.active_timeline import delete_instant_file, read_instant
from table.timeline.end_record import COMMIT, ROLLBACK, EndRecord, decide_end, find_end
from table.timeline.instant import Action, Instant
from table.timeline.metadata.clean import decode_clean_metadata
from table.timeline.metadata.commit import WriteStat
from table.timeline.timeline import Timeline
from table.transaction.checkpoint import REPLAY_SINK, batch_of_commit, steps_to_replay
from table.transaction.completion import completion_now
from table.transaction.lease import Lease
from table.view.file_group import parse_data_files


def check_predecessors(table: HudiTable, time: str, action: Action) -> None:
    """Checks that all files exist that readers see once a completed commit is undone (rule 10).

    Called when the rollback's plan is durable. A clean that is planned later sees the plan; this check sees a clean
    that was planned earlier.

    Raises:
        InvalidConfigError: a file was deleted since, and the rows of its file group would be lost; or a savepoint holds
            the commit.
        CommitConflictError: a clean is under way.
    """
    snapshot = Snapshot.load(table)
    storage, timeline = snapshot.storage, snapshot.timeline
    done = timeline.completed_file(time, action)
    if not timeline.contains(done):
        return
    if timeline.contains(timeline.completed_file(time, Action.SAVEPOINT)):
        raise InvalidConfigError(f"a savepoint holds {time}: delete the savepoint first; nothing was undone")
    is_last = all(write.time == time for write in timeline.completed_writes)
    if is_last and any(table.archived_timeline.read_files()):
        raise InvalidConfigError(
            f"{time} cannot be rolled back: it is the last commit that is not archived, and without one readers would "
            "see no row of the archived commits; write the rows as they should be; nothing was undone"
        )
    cleans = timeline.pending_of(Action.CLEAN)
    if cleans:
        raise ActionPendingError(
            f"the clean {cleans[0].time} is under way: finish it (`hudistream clean`), then roll back; nothing was "
            "undone"
        )
    compactions = [i for i in timeline.pending_of(Action.COMPACTION, Action.LOG_COMPACTION) if i.time > time]
    if compactions:
        raise ActionPendingError(
            f"the compaction {compactions[0].time} is to read what {time} wrote: `hudistream rollback` the compaction "
            "first; nothing was undone"
        )
    metadata = snapshot.commits.read(done)
    for stat in metadata.stats:
        before = join(stat.partition_path, stat.prev_base_file or "")
        if stat.prev_base_file and not storage.exists(before):
            raise InvalidConfigError(
                f"{time} cannot be rolled back: {before}, the version before it, was cleaned, and its rows would be "
                "lost; restore a savepoint instead, or write the rows again; nothing was undone"
            )
    for path, file_ids in metadata.replaced.items():
        bases, logs = parse_data_files(path, table.listing.list_files(path))
        cleaned = _newest_cleaned(snapshot, time, path)
        whole = {base.file_id for base in bases if base.instant_time >= cleaned.get(base.file_id, "")}
        lost = set(file_ids) - whole - {log.file_id for log in logs if log.file_id not in cleaned}
        if lost:
            raise InvalidConfigError(
                f"{time} cannot be rolled back: file group {min(lost)} of {path!r}, which it replaced, was cleaned; "
                "restore a savepoint instead, or write the rows again; nothing was undone"
            )


def _newest_cleaned(snapshot: Snapshot, since: str, path: str) -> dict[str, str]:
    """File id -> instant of its newest base file that cleans have deleted since a commit, in a partition path.

    A clean that could not delete an older file has left it there alone.
    """
    newest: dict[str, str] = {}
    for one in snapshot.timeline.completed_of(Action.CLEAN):
        if one.time < since:
            continue
        done = decode_clean_metadata(read_instant(snapshot.storage, one), one.file_name)
        for base in filter(None, map(parse_base_file, done.deleted.get(path, ()))):
            newest[base.file_id] = max(base.instant_time, newest.get(base.file_id, ""))
    return newest


def written_logs(snapshot: Snapshot, done: Instant) -> list[WriteStat]:
    """The stats of log files that a completed commit wrote; none if the commit does not exist."""
    commit = snapshot.commits.find(done)
    stats = commit.stats if commit is not None else ()
    return [stat for stat in stats if parse_log_file(stat.path.rpartition("/")[2]) is not None]


def check_written_alone(storage: Storage, time: str, paths: Iterable[str]) -> None:
    """Refuses to undo a commit that wrote into log files of other commits, as older writers do.

    Hudi appends a rollback block to such a file. Writers of hudistream write each file once.

    Raises:
        UnsupportedTableError: names the file.
    """
    for path in sorted(paths):
        if not is_written_by(storage, path, time):
            raise UnsupportedTableError(
                f"{path} holds blocks of {time} and of others: let Hudi undo it (`CALL rollback_to_instant`, or "
                "restore with Hudi); nothing was undone"
            )


def check_batches(snapshot: Snapshot, commits: Iterable[Instant]) -> None:
    """Refuses to undo batches of streams: their checkpoints take them for done, so that the rows would be lost.

    Raises:
        InvalidConfigError: names the first batch of each stream, and the way to get the rows again.
    """
    first: dict[tuple[str, str | None], tuple[int, str]] = {}  # sink and query -> batch, and the time of its commit
    for instant in commits:
        batch = batch_of_commit(snapshot.commits.read_outline(instant).extra)
        if batch is not None:
            stream, found = (batch[0], batch[1].query_id), (batch[1].batch_id, instant.time)
            first[stream] = min(found, first.get(stream, found))
    if not first:
        return
    named = "; ".join(
        f"commit {time} is batch {number} of {_writer_of(sink_id, query_id)}"
        for (sink_id, query_id), (number, time) in first.items()
    )
    again = "; ".join(_steps_of(sink_id, query_id, number) for (sink_id, query_id), (number, _) in first.items())
    raise InvalidConfigError(
        f"{named}. For their writers these batches are done, and their rows are not sent again. Nothing was undone. "
        f"To undo them all the same, stop their writers and give --force (force=True). Then, {again}"
    )


def _steps_of(sink_id: str, query_id: str | None, number: int) -> str:
    if sink_id == REPLAY_SINK:
        return "give the replayed rows to `write`, for they count as replayed"
    return f"for sink id {sink_id!r}, {'write the batches again' if query_id is None else steps_to_replay(number)}"


def _writer_of(sink_id: str, query_id: str | None) -> str:
    if sink_id == REPLAY_SINK:
        return "a replay of bad rows"
    if query_id is None:
        return f"a program that numbers its batches, with sink id {sink_id!r}"
    return f"the stream with sink id {sink_id!r} (query {query_id})"


def check_not_held(timeline: Timeline, savepoint: str) -> None:
    """Refuses to go back to a savepoint if there is a later one.

    Raises:
        InvalidConfigError: names the later one.
    """
    later = [i.time for i in timeline.completed_of(Action.SAVEPOINT) if i.time > savepoint]
    if later:
        raise InvalidConfigError(f"a savepoint holds {later[0]}, which is to be undone: delete it first")


def decide_undo(table: HudiTable, request: Instant, lease: Lease, *checks: Callable[[], None]) -> None:
    """Decides that a requested rollback or restore is carried out, or withdraws it, unless that is decided (rule 3).

    The lease is checked once the request is durable, as batches do. A writer that takes the table over later finds the
    request. A writer that took the table over before has made commits that the plan does not contain. The table may
    still be taken over after the check. Then the process that creates the end record of the request first decides.

    Args:
        request: the rollback or the restore.
        lease: held when it was planned.
        checks: raise a HudiError where it must not be carried out.

    Raises:
        HudiError: the request is withdrawn, and nothing was undone.
    """
    storage = table.storage
    end = find_end(storage, request.time, request.action)
    if end is None:
        try:
            for check in (*checks, lease.confirm):
                check()
        except HudiError:
            if not decide_end(storage, EndRecord(request.time, request.action, ROLLBACK, lease.owner)).is_commit:
                delete_instant_file(storage, request)
            raise
        at = completion_now(table, request)
        end = decide_end(storage, EndRecord(request.time, request.action, COMMIT, lease.owner, completion_time=at))
    if not end.is_commit or not storage.exists(request.path):  # it ended so long ago that its record was archived
        delete_instant_file(storage, request)
        raise InstantEndedError(
            f"{request.file_name} was ended by another writer, which took the table over: nothing was undone since; "
            "run the command again if need be"
        )
