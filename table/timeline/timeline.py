"""Timeline: an immutable, ordered collection of instants, and queries on it (pure).

Queries that depend on visibility ask the layout, because layout 1 has only request times.
"""

from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from table.timeline.instant import COMPLETED_AS, STATE_ORDER, WRITE_ACTIONS, Action, Instant, State
from table.timeline.layout import LAYOUT_1, TimelineLayout, name_instant

_place = attrgetter("time", "action")  # by which instants are ordered
# cached properties of a timeline that follow from its completed instants and its layout alone
_OF_COMPLETED = ("completed_writes", "writes_by_time", "visible_times", "committed_times")


@dataclass(frozen=True)
class Timeline:
    """Instants in order of time, each in the highest state that has a file.

    Attributes:
        instants: one entry for each (time, action).
        files: every instant file there is, lower states included.
        layout: how instants are named, and by which time they are ordered.
    """

    instants: tuple[Instant, ...] = ()
    files: frozenset[Instant] = frozenset()
    layout: TimelineLayout = LAYOUT_1

    def __iter__(self) -> Iterator[Instant]:
        return iter(self.instants)

    def __len__(self) -> int:
        return len(self.instants)

    @cached_property
    def last_time(self) -> str | None:
        """The greatest request time or completion time of an instant in any state."""
        return max((max(i.time, i.completion_time or "") for i in self.instants), default=None)

    @cached_property
    def completed_writes(self) -> tuple[Instant, ...]:
        """Completed commits, delta commits and replace commits, in the order in which they became visible."""
        return self.completed_of(*WRITE_ACTIONS)

    @cached_property
    def writes_by_time(self) -> tuple[Instant, ...]:
        """Completed writes in the order of their request times, which is the order of the versions of a file group.

        Services that retire the first writes, or that count retained commits, use this order: a file counts as
        committed if its time is less than the time of the first write. In layout 2, writes of several writers may
        complete in another order.
        """
        return tuple(sorted(self.completed_writes, key=lambda instant: instant.time))

    def writes_after(self, instant: Instant) -> tuple[Instant, ...]:
        """Completed writes that became visible after that completed instant, oldest first."""
        since = self.layout.visible_since(instant)
        return tuple(i for i in self.completed_writes if self.layout.visible_since(i) > since)

    @cached_property
    def visible_times(self) -> Mapping[str, str]:
        """Request time -> time since which a completed write is visible. Changes are ordered by the latter."""
        return {i.time: self.layout.visible_since(i) for i in self.completed_writes}

    def writes_between(self, since: str, until: str | None = None) -> tuple[Instant, ...]:
        """Completed writes that became visible after `since` and not after `until`, in that order.

        Args:
            since: a time as in `visible_times`.
            until: a time as in `visible_times`; None: there is no bound.
        """
        visible = self.visible_times
        after = (i for i in self.completed_writes if since < visible[i.time])
        return tuple(i for i in after if until is None or visible[i.time] <= until)

    @cached_property
    def pending(self) -> tuple[Instant, ...]:
        """Instants that are requested or inflight, oldest first."""
        return tuple(i for i in self.instants if i.state is not State.COMPLETED)

    def pending_of(self, *actions: Action) -> tuple[Instant, ...]:
        """Pending instants of these actions, oldest first."""
        return tuple(i for i in self.pending if i.action in actions)

    def completed_of(self, *actions: Action) -> tuple[Instant, ...]:
        """Completed instants of these actions, in the order in which they became visible."""
        found = (i for i in self.instants if i.state is State.COMPLETED and i.action in actions)
        return tuple(sorted(found, key=self.layout.visible_since))

    @cached_property
    def committed_times(self) -> frozenset[str]:
        """Times of all completed writes."""
        return frozenset(i.time for i in self.completed_writes)

    @property
    def first_active_time(self) -> str | None:
        """Time of the first completed write. Older instants were retired to the archive, so their files count."""
        return min(self.committed_times, default=None)

    @cached_property
    def unseen_from(self) -> str | None:
        """The least time of a write that completes after this timeline was listed; None on an empty timeline.

        Such a write is pending on this timeline, or is requested later. If it is requested later, its time is greater
        than the time of every completed write here (`table.timeline.active_timeline.request_and_list`).
        """
        times = [instant.time for instant in self.pending]
        return min([*times, *sorted(self.committed_times)[-1:]], default=None)

    def last_write_until(self, time: str) -> str | None:
        """The last completed write that is not later than a time; None where there is none."""
        return max((written for written in self.committed_times if written <= time), default=None)

    def until(self, time: str) -> "Timeline":
        """The instants requested at or before that time, in the states that they have now.

        In both layouts time travel compares the times of requests, as in Hudi
        (HoodieFileGroup.getLatestFileSliceBeforeOrOn, BaseHoodieLogRecordReader).
        """
        files = frozenset(instant for instant in self.files if instant.time <= time)
        return Timeline(tuple(instant for instant in self.instants if instant.time <= time), files, self.layout)

    def visible_until(self, time: str) -> "Timeline":
        """The timeline as it was visible at a time: writes that became visible later are inflight.

        Args:
            time: as in `visible_times`.
        """
        later = {i for i in self.completed_writes if self.layout.visible_since(i) > time}
        seen = (i.at(State.INFLIGHT) if i in later else i for i in self.instants)
        return Timeline(tuple(seen), self.files - later, self.layout)

    def find(self, time: str, action: Action) -> Instant | None:
        """The instant with that time and action, in its highest state."""
        wanted = COMPLETED_AS.get(action, action)
        at_time = self._instants_by_time.get(time, ())
        return next((i for i in at_time if COMPLETED_AS.get(i.action, i.action) is wanted), None)

    def files_of(self, time: str, action: Action) -> tuple[Instant, ...]:
        """Every file of an instant, lowest state first; a completed compaction's plan is among those of its commit."""
        wanted = COMPLETED_AS.get(action, action)
        found = (f for f in self._files_by_time.get(time, ()) if COMPLETED_AS.get(f.action, f.action) is wanted)
        return tuple(sorted(found, key=lambda f: STATE_ORDER[f.state]))

    def completed_file(self, time: str, action: Action) -> Instant:
        """The completed file of an instant: as listed on the timeline, else with only the request time in its name."""
        wanted = name_instant(self.layout, time, COMPLETED_AS.get(action, action), State.COMPLETED)
        return next((file for file in self._files_by_time.get(time, ()) if file == wanted), wanted)

    def pending_action(self, time: str, action: Action) -> Action:
        """The action in the names of an instant's pending files, which a completed service does not have in its own.

        Args:
            time: of the instant.
            action: as its completed file, or its pending ones, have it.
        """
        return next((file.action for file in self.files_of(time, action) if file.state is not State.COMPLETED), action)

    @cached_property
    def _instants_by_time(self) -> Mapping[str, Sequence[Instant]]:
        """Archival asks for each of its instants; a scan for each would take time in the square of their number."""
        return _by_time(self.instants)

    @cached_property
    def _files_by_time(self) -> Mapping[str, Sequence[Instant]]:
        return _by_time(self.files)

    def contains(self, instant: Instant) -> bool:
        """Whether there is a file for the instant in exactly this state."""
        return instant in self.files


def _by_time(instants: Iterable[Instant]) -> Mapping[str, Sequence[Instant]]:
    found: dict[str, list[Instant]] = {}
    for instant in instants:
        found.setdefault(instant.time, []).append(instant)
    return found


def build_timeline(files: Iterable[Instant], layout: TimelineLayout = LAYOUT_1) -> Timeline:
    """Timeline of the instant files found (TimelineLayout: highest state wins, compaction = commit)."""
    all_files = frozenset(files)
    return Timeline(tuple(sorted(_highest(all_files), key=_place)), all_files, layout)


def rebuild_timeline(near: Timeline, added: Collection[Instant], removed: Collection[Instant]) -> Timeline:
    """As `build_timeline`, in less time if few files changed since another timeline was built.

    Args:
        near: the other timeline.
        added: files that it does not have.
        removed: files of it that are gone.
    """
    files = near.files.difference(removed).union(added)
    times = {file.time for file in (*added, *removed)}
    instants = [instant for instant in near.instants if instant.time not in times]
    for instant in _highest(file for file in files if file.time in times):
        insort(instants, instant, key=_place)
    built = Timeline(tuple(instants), files, near.layout)
    if not any(file.state is State.COMPLETED for file in (*added, *removed)):
        known = vars(near)
        vars(built).update({name: known[name] for name in _OF_COMPLETED if name in known})
    return built


def find_witnesses(timeline: Timeline) -> tuple[Instant, ...]:
    """Instants that exist after a listing if no instant was archived while it was made.

    Archival deletes the writes oldest first, likewise the instants of each other action, and the completed file of an
    instant last. So if the oldest completed write exists, no later one is gone. And if the file of a pending instant
    exists, its completed file was not deleted, either.

    Args:
        timeline: as listed.
    """
    first: dict[Action, Instant] = {}  # oldest of each action
    for instant in timeline.instants:
        if instant.state is State.COMPLETED and instant.action not in first:
            first[instant.action] = instant
    return (*first.values(), *timeline.pending)


def _highest(files: Iterable[Instant]) -> Iterable[Instant]:
    best: dict[tuple[str, Action], Instant] = {}
    for file in files:
        key = (file.time, COMPLETED_AS.get(file.action, file.action))
        known = best.get(key)
        if known is None or _rank(file) > _rank(known):
            best[key] = file
    return best.values()


def _rank(file: Instant) -> tuple[int, str]:
    return STATE_ORDER[file.state], file.action
