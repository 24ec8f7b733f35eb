"""What one look says of the timeline, and of what writers leave below ``.hoodie`` (pure)."""

from collections.abc import Iterator

from table.references.judge import is_decided
from table.services.check.finding import Finding, Kind, Repair, Severity
from table.services.check.judge_lost import judge_lost
from table.services.check.look import Look
from table.services.rollback.fate import Fate, Outlook, judge_pending
from table.storage.interface import join
from table.timeline.end_record import DATA_ACTIONS, ENDS_FOLDER, end_path
from table.timeline.instant import COMPLETED_AS, WRITE_ACTIONS, Action, Instant, State

_DATA_NAMES = frozenset(action.value for action in DATA_ACTIONS)
_NEXT_BATCH = "nothing: the next batch does it; or `hudistream check --repair`"
# what the next batch ends, and `check --repair`
_KINDS = {
    Fate.CARRIED_OUT: Kind.END_NOT_CARRIED_OUT,
    Fate.ROLLED_BACK: Kind.PENDING_WRITE,
    Fate.FINISHED: Kind.PENDING_SERVICE,
}


def judge_timeline(look: Look) -> Iterator[Finding]:
    """Instants that are stuck or do not hold together, and leftovers of ended instants."""
    for name, problem in look.unreadable.items():
        yield Finding(
            Kind.UNREADABLE_TIMELINE, Severity.ERROR, name, problem, Repair.REFUSED, "it cannot be made again", (
                "bring the file back from a backup; until then nothing is deleted"
            )
        )  # fmt: skip
    for instant in sorted(look.damaged):
        yield Finding(
            Kind.DAMAGED_COMMIT,
            Severity.ERROR,
            instant.path,
            "it is empty or torn; the end record of the commit has the same content, which is read meanwhile",
            Repair.POSSIBLE,
            advice="`hudistream check --repair` writes the file again, and so does the next writer that starts",
        )
    for instant in look.timeline.completed_writes:
        if instant.time in look.commits and look.commits[instant.time].is_empty:
            yield Finding(
                Kind.EMPTY_COMMIT,
                Severity.ERROR,
                instant.file_name,
                "it is completed, and its file is empty: readers see its rows; which files it wrote, no record tells",
                Repair.REFUSED,
                "it cannot be made again",
                "bring the file back from a backup, or restore a savepoint from before",
            )
    for instant in look.timeline.pending:
        yield from _judge_pending(look, instant)
    yield from judge_gaps(look)
    yield from judge_ends(look)
    yield from judge_lost(look)
    yield from judge_leftovers(look)


def _judge_pending(look: Look, instant: Instant) -> Iterator[Finding]:
    action, end = instant.action, look.leftovers.ends.get(f"{instant.time}.{instant.action.value}")
    is_planned = end is None and (action is Action.CLUSTERING or instant.time in look.clusterings)
    fate = judge_pending(
        action,
        lives=look.holder.is_alive if action is Action.ROLLBACK else instant.time in look.alive,
        is_planned=is_planned,
        is_decided=end is not None and end.is_commit,
    )
    if fate is Fate.UNDER_WAY or (fate is Fate.LEFT and look.holder.is_alive and not is_planned):
        return  # it may be under way
    outlook = Outlook(instant, fate, is_planned=is_planned)
    if fate in _KINDS:
        yield Finding(
            _KINDS[fate], Severity.NOTE, instant.time, outlook.text, Repair.POSSIBLE, advice=f"nothing: {outlook.way}"
        )
        return
    why = "it is finished by its own command" if outlook.has_command else "only the writer that began it can finish it"
    severity = Severity.WARNING if outlook.stops_batches or not outlook.has_command else Severity.NOTE
    yield Finding(Kind.PENDING_SERVICE, severity, instant.time, outlook.text, Repair.REFUSED, why, advice=outlook.way)


def judge_gaps(look: Look) -> Iterator[Finding]:
    """Instants without a lower state, and instants of the same time."""
    timeline, actions = look.timeline, dict[str, list[str]]()
    for instant in timeline:
        if instant.action is Action.SAVEPOINT:
            continue  # has the time of its commit, and no request
        actions.setdefault(instant.time, []).append(instant.action.value)
        states = {f.state for f in timeline.files if f.time == instant.time and _same(f.action, instant.action)}
        below = [State.REQUESTED] + ([State.INFLIGHT] if instant.is_completed else [])
        lacking = [state.value.lower() for state in below if state not in states]
        if instant.state is State.REQUESTED or not lacking:
            continue
        text = f"{instant.file_name} has no {' and no '.join(lacking)} file"
        if instant.is_completed and instant.time in look.archive.recorded:
            advice = "nothing: an archival died, the next one finishes it"
            yield _gap(Severity.NOTE, instant.time, text, advice)
        else:
            yield _gap(Severity.WARNING, instant.time, text, "find out who deleted it")
    for time, several in actions.items():
        if len(several) > 1:
            text = f"{' and '.join(sorted(several))} have the same time"
            advice = "let no two writers write the table without a lock"
            why = "an instant cannot be renamed"
            yield Finding(Kind.SAME_TIME, Severity.WARNING, time, text, Repair.REFUSED, why, advice)


def _same(file: Action, instant: Action) -> bool:
    return COMPLETED_AS.get(file, file) is COMPLETED_AS.get(instant, instant)


def _gap(severity: Severity, time: str, text: str, advice: str) -> Finding:
    return Finding(Kind.INSTANT_WITH_GAP, severity, time, text, Repair.REFUSED, "no reader needs the file", advice)


def judge_ends(look: Look) -> Iterator[Finding]:
    """End records that are over, broken, or contradicted by the timeline."""
    line, completed = look.committed.first_time, look.committed.times
    for name, problem in look.leftovers.broken_ends.items():
        where = join(ENDS_FOLDER, name)
        if find_completed_of(look, name) is not None:
            advice = "`hudistream check --repair` writes it again: the completed file has its content"
            yield Finding(Kind.BROKEN_END_RECORD, Severity.ERROR, where, problem, Repair.POSSIBLE, advice=advice)
            continue
        advice = "the instant cannot be ended: delete its data files and its instant files by hand, or bring it back"
        yield Finding(
            Kind.BROKEN_END_RECORD, Severity.ERROR, where, problem, Repair.REFUSED, "it decides an end", advice
        )
    for end in look.leftovers.ends.values():
        where, is_pending = end_path(end.time, end.action), end.time in look.pending
        if line is not None and end.time < line and not is_pending:
            if look.holder.is_alive:
                continue  # its archival may be about to delete it
            text = "its instant is older than the active timeline"
            advice = "nothing: archival deletes it"
            yield Finding(Kind.ENDED_END_RECORD, Severity.NOTE, where, text, Repair.POSSIBLE, advice=advice)
            continue
        if end.action not in WRITE_ACTIONS:
            continue  # it decides whether a rollback or a restore by hand is carried out
        text = ""
        if not end.is_commit and end.time in completed and end.time not in look.undone:
            text = "it says rollback, and the instant is completed"
        if text:
            yield Finding(
                Kind.CONTRADICTED_END_RECORD,
                Severity.WARNING,
                where,
                text,
                Repair.REFUSED,
                "another engine, or a person, did that",
                "find out who; compare the rows with their source",
            )


def find_completed_of(look: Look, name: str) -> Instant | None:
    """The completed write whose file has the content of an end record; None where there is none.

    Args:
        look: the table.
        name: name of the record's file.
    """
    time, _, action = name.partition(".")
    commit = look.commits.get(time)
    if commit is None or commit.is_empty or time in look.undone or action not in _DATA_NAMES:
        return None
    found = look.timeline.find(time, Action(action))
    return found if found is not None and found.is_completed and found not in look.damaged else None


def judge_leftovers(look: Look) -> Iterator[Finding]:
    """Markers, heartbeats, folders of waiting files, temporaries and leases that ended instants and writers left."""
    leftovers, pending = look.leftovers, look.pending
    for time, broken in leftovers.markers.items():
        if broken:
            text = f"{len(broken)} of its markers do not parse, {broken[0]!r} for one"
            yield _leftover(look, Kind.BROKEN_MARKERS, time, text, Severity.WARNING)
        if time not in pending and time not in leftovers.kept_markers and not _may_be_ending(look, time):
            yield _leftover(look, Kind.ENDED_MARKERS, time, "its markers are still there")
    for kind, times, text in (
        (Kind.ENDED_HEARTBEAT, leftovers.heartbeats, "its heartbeat is still there"),
        (Kind.ENDED_STAGING, leftovers.staged, "its folder of waiting files is still there"),
    ):
        for time in times:
            if time not in pending and not _may_be_ending(look, time):
                yield Finding(kind, Severity.NOTE, time, text, Repair.POSSIBLE, advice=_NEXT_BATCH)
    for path in leftovers.temporaries:
        text = "half-written by a process that died"
        yield Finding(Kind.TEMPORARY_FILE, Severity.NOTE, path, text, Repair.POSSIBLE, advice=_NEXT_BATCH)
    if look.holder.has_expired and look.holder.record is not None and look.holder.record.identity is not None:
        who = look.holder.record.identity
        text = f"sink {who.sink_id!r}, query {who.query_id!r} held the table and is dead"
        advice = "nothing: the next writer takes over"
        yield Finding(Kind.EXPIRED_LEASE, Severity.NOTE, who.owner, text, Repair.POSSIBLE, advice=advice)


def _may_be_ending(look: Look, time: str) -> bool:
    """Whether a live writer may be about to sweep the leftovers of that instant."""
    return look.holder.is_alive and time >= look.last_write


def _leftover(look: Look, kind: Kind, time: str, text: str, severity: Severity = Severity.NOTE) -> Finding:
    if is_decided(time, look.records) or time in look.pending:
        repair = Repair.REFUSED if time in look.alive else Repair.POSSIBLE
        why = "its writer is alive" if time in look.alive else ""
        return Finding(kind, severity, time, text, repair, why, _NEXT_BATCH)
    return Finding(
        kind,
        Severity.WARNING,
        time,
        text,
        Repair.REFUSED,
        "neither timeline nor archive tells what its commit wrote",
        "look at the files that the markers name, then delete the markers by hand",
    )
