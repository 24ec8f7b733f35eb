"""Which files a clean deletes, and why (pure; CleanPlanner, CleanerUtils of Hudi 1.0.2).

The policies say which slices of a file group are still wanted; savepoints, pending compactions and the newest slice
are above every policy. With a slice go its base file and its log files.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from table.options.groups import KEEP_LATEST_BY_HOURS, KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS, CleanSettings
from table.timeline.instant import WRITE_ACTIONS, Action, Instant, just_after
from table.timeline.timeline import Timeline
from table.view.file_group import DataFile, FileGroup, FileSlice

PENDING_WRITES = (
    Action.COMMIT,
    Action.DELTA_COMMIT,
    Action.REPLACE_COMMIT,
    Action.CLUSTERING,
    Action.COMPACTION,
    Action.LOG_COMPACTION,
)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Which snapshots show a version.

    Attributes:
        since: instant of its slice.
        superseded_at: instant of the next version, or of the commit that replaced the group; None without one.
        needed_until: readers of snapshots before this instant time need the version; None: readers of the newest
            snapshot may need it.

    A write that came late (`find_arrivals`) is also missing from the snapshot of the newest write that was visible
    before it. For such a write, both are the bound just after that write (`just_after`).
    """

    since: str
    superseded_at: str | None
    needed_until: str | None


_IN_USE = "a batch that is under way may read it"
_CAME_LATE = "what superseded it became visible a few commits ago only"
NO_LIFETIME = Lifetime("", None, None)


@dataclass(frozen=True, slots=True)
class FileFate:
    """What becomes of one base file or log file, and by which rule.

    Attributes:
        file: the file.
        deleted: whether it goes.
        rule: in words.
        seen: which snapshots show it.
        is_held: whether it stays for the sake of readers alone.
    """

    file: DataFile
    deleted: bool
    rule: str
    seen: Lifetime = NO_LIFETIME
    is_held: bool = False


@dataclass(frozen=True)
class Protection:
    """The files that no policy may delete.

    Attributes:
        savepointed: partition path -> names of files that a savepoint holds.
        compacting: (partition path, file id) -> base instant of the slice that a pending compaction reads.
        compacted: instants of compactions, while a batch is under way: the batch may have begun before a compaction was
            completed, and read the slice that the compaction folded.
        in_use: see `earliest_in_use`, where the policy counts versions.
        arrivals: see `find_arrivals`.
    """

    savepointed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    compacting: Mapping[tuple[str, str], str] = field(default_factory=dict)
    compacted: frozenset[str] = frozenset()
    in_use: Instant | None = None
    arrivals: Mapping[str, str] = field(default_factory=dict)

    def rule(self, found: FileSlice) -> str | None:
        """Why the files of a slice are protected, or None. They stay, or go, together."""
        held = self.savepointed.get(found.partition_path, frozenset())
        if any(file.name in held for file in found.all_files):
            return "a savepoint holds it"
        base = self.compacting.get((found.partition_path, found.file_id))
        if base is not None and found.base_instant_time >= base:
            return "a pending compaction reads it"
        return None


def needs_cleaning(timeline: Timeline, last_commit_seen: str | None, settings: CleanSettings) -> bool:
    """Whether enough commits were made since the last clean (CleanPlanActionExecutor.needsCleaning).

    Args:
        timeline: the active one.
        last_commit_seen: newest commit when the last clean was planned; None without one.
        settings: the trigger.
    """
    commits = [i for i in timeline.completed_writes if last_commit_seen is None or i.time > last_commit_seen]
    return len(commits) >= settings.trigger_commits


def earliest_to_retain(
    timeline: Timeline, settings: CleanSettings, oldest_time: str, before: str | None = None
) -> Instant | None:
    """The earliest commit whose files are still wanted (CleanerUtils.getEarliestCommitToRetain).

    Args:
        timeline: the active one.
        settings: the policy.
        oldest_time: for KEEP_LATEST_BY_HOURS: instant time of now less the hours.
        before: the earliest commit that the last clean retained; None without one.

    Returns:
        None where the policy knows no such commit, or there are too few.
    """
    commits = timeline.writes_by_time
    candidate = None
    if settings.policy == KEEP_LATEST_BY_HOURS:
        candidate = next((i for i in commits if i.time >= oldest_time), None)
    elif settings.policy == KEEP_LATEST_COMMITS and len(commits) > settings.commits_retained:
        candidate = commits[len(commits) - settings.commits_retained]
    pending = timeline.pending_of(*PENDING_WRITES)
    if candidate is not None and pending and candidate.time > pending[0].time:
        candidate = _last_before(commits, pending[0])
    return _capped(commits, candidate, before, settings.most_commits)


def _capped(
    commits: Sequence[Instant], candidate: Instant | None, before: str | None, most: int | None
) -> Instant | None:
    """The commit that a clean goes to, if it may move on by so many commits only (CleanerUtils.capCommitsToClean)."""
    if candidate is None or before is None or most is None:
        return candidate
    passed = [commit for commit in commits if before <= commit.time < candidate.time]
    return passed[most] if len(passed) > most else candidate


def earliest_in_use(timeline: Timeline) -> Instant | None:
    """The commit that the oldest pending batch may have begun from; None without a batch or a commit before it.

    The policy that counts versions knows no commit to retain, so it retains this one. Hudi does not: there, a slow
    writer beside a fast one loses the versions that it reads.
    """
    pending = timeline.pending_of(*WRITE_ACTIONS, Action.CLUSTERING)
    return _last_before(timeline.writes_by_time, pending[0]) if pending else None


def find_arrivals(completed: Mapping[str, int]) -> dict[str, str]:
    """Writes that became visible after writes with later times: mostly compactions, and batches of several writers.

    Policies count commits by their times, so a version that such a write superseded would be deleted at once. So such a
    write counts from the newest write that was visible before it.

    Args:
        completed: time of a completed write -> when it was completed: in timeline layout 1 by the store's clock, which
            wrote its file, in layout 2 as the file's name says. Any numbers that have this order.

    Returns:
        Time of such a write -> time of the newest write that was visible before it.
    """
    found: dict[str, str] = {}
    newest = ""
    # a store that counts whole seconds shows one moment for several writes: their order is that of the instant times
    for time in sorted(completed, key=lambda time: (completed[time], time)):
        if newest > time:
            found[time] = newest
        newest = max(newest, time)
    return found


def _last_before(commits: Sequence[Instant], pending: Instant) -> Instant | None:
    before = [i for i in commits if i.time < pending.time]
    return before[-1] if before else None


def choose_incremental_paths(since: str, until: str, touched: Mapping[str, Iterable[str]]) -> frozenset[str]:
    """Partitions that commits of ``[since, until)`` touched (CleanPlanner, incremental mode).

    Args:
        since: earliest commit that the last clean retained.
        until: earliest commit that this clean retains.
        touched: commit time -> partition paths it wrote or replaced.
    """
    return frozenset(path for time, paths in touched.items() if since <= time < until for path in paths)


def judge_file_group(
    group: FileGroup, settings: CleanSettings, earliest: Instant | None, protection: Protection
) -> list[FileFate]:
    """What becomes of each slice of a file group that is in sight.

    Args:
        group: its slices, newest first.
        settings: the policy.
        earliest: see `earliest_to_retain`.
        protection: what is above the policy.
    """
    slices, since = group.slices, earliest.time if earliest is not None else None
    if settings.policy == KEEP_LATEST_FILE_VERSIONS:
        compacting = protection.compacting.get((group.partition_path, group.file_id))
        rules = _by_versions(slices, settings.versions_retained, compacting)
        if protection.in_use is not None:
            used = _by_commit(slices, protection.in_use.time)
            rules = [rule or (_IN_USE if other else None) for rule, other in zip(rules, used, strict=True)]
    else:
        rules = _by_commit(slices, since)
    if len(slices) == 1 and rules[0] is not None:  # most file groups of a large table
        alone = Lifetime(slices[0].base_instant_time, None, None)
        return [FileFate(file, deleted=False, rule=rules[0], seen=alone) for file in slices[0].all_files]
    late = _by_commit(slices, since, protection.arrivals)
    fates = []
    bases = [found for found in slices if found.base_file is not None]
    folded = bases[1:2] if bases and bases[0].base_instant_time in protection.compacted else []
    for found, rule, later, seen in zip(slices, rules, late, lifetimes(group, None, protection.arrivals), strict=True):
        kept = rule or protection.rule(found) or (_IN_USE if found in folded else None)
        is_held = kept is None and later is not None and settings.policy != KEEP_LATEST_FILE_VERSIONS
        why = kept or (_CAME_LATE if is_held else _reason(settings, earliest))
        fates += [FileFate(file, kept is None and not is_held, why, seen, is_held) for file in found.all_files]
    return fates


def lifetimes(
    group: FileGroup, replaced_at: str | None = None, arrivals: Mapping[str, str] | None = None
) -> list[Lifetime]:
    """Of each slice of a group, newest first, which snapshots show it.

    Args:
        group: its slices.
        replaced_at: instant of the commit that replaced the whole group; None where it is in sight.
        arrivals: see `find_arrivals`.
    """
    times = [found.base_instant_time for found in group.slices]
    # readers of a slice behind a pending compaction read the one before it, too
    further = 2 if group.log_files else 1
    found = []
    for time in times:
        end, needed = (_superseded(times, time, count, replaced_at) for count in (1, further))
        found.append(Lifetime(time, _arrived(end, arrivals), _arrived(needed, arrivals)))
    return found


def _arrived(time: str | None, arrivals: Mapping[str, str] | None) -> str | None:
    """The bound from which on snapshots contain a write.

    A write that completed late is also missing from the snapshot of the newest write that was visible before it. So its
    bound is just after that write.
    """
    late = (arrivals or {}).get(time) if time is not None else None
    return just_after(late) if late is not None else time


def _superseded(times: Sequence[str], time: str, count: int, replaced_at: str | None) -> str | None:
    """The instant at which `count` later versions existed, or the group was replaced; None if neither happened."""
    later = sorted({other for other in times if other > time})
    ends = [replaced_at, later[count - 1] if len(later) >= count else None]
    return min((end for end in ends if end is not None), default=None)


def _reason(settings: CleanSettings, earliest: Instant | None) -> str:
    if settings.policy == KEEP_LATEST_FILE_VERSIONS:
        return f"older than the newest {settings.versions_retained} versions"
    return f"replaced before {earliest.time if earliest else '?'}, the earliest commit retained"


def find_retained(group: FileGroup, earliest: str) -> frozenset[str]:
    """Names of the files of a group that the newest snapshot or one of a retained commit shows.

    Args:
        group: its slices, newest first.
        earliest: time of the earliest commit that is retained.
    """
    rules = zip(group.slices, _by_commit(group.slices, earliest), strict=True)
    return frozenset(file.name for found, rule in rules if rule is not None for file in found.all_files)


def _by_commit(
    slices: Sequence[FileSlice], earliest: str | None, arrivals: Mapping[str, str] | None = None
) -> list[str | None]:
    """For each slice, newest first, why it stays; None: nothing holds it."""
    if earliest is None:
        return ["too few commits"] * len(slices)
    came = arrivals or {}
    times = [came.get(found.base_instant_time, found.base_instant_time) for found in slices]
    newest = times[0]
    before = next((time for time in times if time < earliest), None)
    rules: list[str | None] = []
    for time in times:
        if time == newest:
            rules.append("it is the newest version")
        elif time >= earliest:
            rules.append(f"written at or after {earliest}, the earliest commit retained")
        elif time == before:
            rules.append(f"readers of {earliest} see it")
        else:
            rules.append(None)
    return rules


def _by_versions(slices: Sequence[FileSlice], retained: int, compacting: str | None) -> list[str | None]:
    """For each slice, newest first, why it stays; `compacting` is the base instant that a compaction reads."""
    versions = retained if compacting is None else retained - 1
    rules: list[str | None] = []
    counted: set[str] = set()
    for time in [found.base_instant_time for found in slices]:
        if compacting is not None and time >= compacting:
            rules.append("a pending compaction reads it")
        elif time in counted or len(counted) < versions:
            counted.add(time)
            rules.append(f"among the newest {retained} versions")
        else:
            rules.append(None)
    return rules


def judge_replaced_group(
    group: FileGroup, replaced_at: str, settings: CleanSettings, earliest: Instant | None, protection: Protection
) -> list[FileFate]:
    """What becomes of a file group that a replace commit replaced.

    Args:
        group: its versions.
        replaced_at: instant of that commit.
        settings: the policy.
        earliest: see `earliest_to_retain`.
        protection: what is above the policy.
    """
    if settings.policy != KEEP_LATEST_FILE_VERSIONS and (earliest is None or replaced_at >= earliest.time):
        kept = f"replaced by {replaced_at} only"
        return [
            FileFate(file, deleted=False, rule=kept, seen=seen)
            for found, seen in zip(group.slices, lifetimes(group, replaced_at, protection.arrivals), strict=True)
            for file in found.all_files
        ]
    arrived = protection.arrivals.get(replaced_at, replaced_at)
    is_late = settings.policy != KEEP_LATEST_FILE_VERSIONS and earliest is not None and arrived >= earliest.time
    is_used = protection.in_use is not None and replaced_at > protection.in_use.time
    fates = []
    for found, seen in zip(group.slices, lifetimes(group, replaced_at, protection.arrivals), strict=True):
        guard = protection.rule(found) or (_IN_USE if is_used else None)
        is_held = guard is None and is_late
        why = guard or (_CAME_LATE if is_held else f"its file group was replaced by {replaced_at}")
        fates += [FileFate(file, guard is None and not is_held, why, seen, is_held) for file in found.all_files]
    return fates


def is_emptied(
    live_groups: int,
    pending_files: int,
    replaced_at: Sequence[str],
    fates: Sequence[FileFate],
    earliest: Instant | None,
) -> bool:
    """Whether nothing is left of a partition.

    It has no file group in sight, no file is being written into it, and no retained commit shows its replaced groups.

    Args:
        live_groups: file groups in sight.
        pending_files: data files of instants that are not completed.
        replaced_at: when its other file groups were replaced.
        fates: of all its files.
        earliest: see `earliest_to_retain`; None for a policy without one.
    """
    if live_groups or pending_files or not all(fate.deleted for fate in fates):
        return False
    return earliest is None or all(time < earliest.time for time in replaced_at)
