"""A slow writer that cleaning and archival pass: every interleaving with a fast writer and a late one.

One row lies in one file group. The fast writer updates it, or writes elsewhere, each time in one step. The slow one
looks at the timeline, finds the file in a listing, and commits: anything may happen between. The late one requests
its update before others commit theirs, and commits after them. Cleaning deletes every version but the newest. Archival
takes the oldest commits off the timeline. Then a comparison of timelines sees less than what happened.

    PYTHONPATH=tests/support python -m models.passed_by_archival
"""

from dataclasses import dataclass, replace

from models.explore import explore

RULES = {
    "9": "a commit conflicts with each active one that it has not seen and that wrote the same file group",
    "15, archival": "archival keeps what a pending write has not seen",
    "15, the line": "a write conflicts where its newest seen commit is not active any more",
    "15, what was pending": "and where one that was pending at its look is older than the first active one",
}
# each set of rules that is taken out together, because the others of it are a second defence
TAKEN_OUT = (("9",), ("15, archival", "15, the line"), ("15, archival", "15, what was pending"))
UPDATES, ELSEWHERE, KEPT = 2, 1, 1


@dataclass(frozen=True)
class World:
    """A state.

    Attributes:
        commits: (time, updates that the version contains), in the order of their completion.
        elsewhere: times of commits that wrote other file groups.
        first: time of the first active commit.
        files: times of the versions that exist.
        clock: the last time that was given.
        late: the late writer: None, the time of its request, or done.
        slow: None; what it saw and what was pending, after its look; also the version that it found, after its listing;
            or done.
        is_doubled: whether the slow writer took the row for a new one.
    """

    commits: tuple = ((1, frozenset()),)
    elsewhere: frozenset = frozenset()
    first: int = 1
    files: frozenset = frozenset({1})
    clock: int = 1
    late: object = None
    slow: object = None
    is_doubled: bool = False

    @property
    def newest(self):
        """The commit that was completed last, whose version counts."""
        return self.commits[-1]

    @property
    def active(self):
        """Times of the commits on the timeline."""
        return frozenset(time for time in (*dict(self.commits), *self.elsewhere) if time >= self.first)


@dataclass
class Model:
    """All states that can be reached, without some rules."""

    without: tuple = ()

    def steps(self, w):
        count = len({one for one in w.newest[1] if one.startswith("fast")})
        if count < UPDATES:
            yield _commit(w, w.clock + 1, w.newest[0], f"fast {count + 1}")
        if len(w.elsewhere) < ELSEWHERE:
            yield replace(w, elsewhere=w.elsewhere | {w.clock + 1}, clock=w.clock + 1)
        if w.late is None:
            yield replace(w, late=w.clock + 1, clock=w.clock + 1)
        elif w.late != "done":  # it has looked again right before it commits
            yield replace(_commit(w, w.late, w.newest[0], "late"), late="done")
        for time in w.files - {w.newest[0]}:
            yield replace(w, files=w.files - {time})
        if len(w.active) > KEPT and (self._may_archive(w) or "15, archival" in self.without):
            later = [time for time in w.active if time > min(w.active)]
            yield replace(w, first=min(later))
        yield from self._slow(w)

    def _may_archive(self, w):
        is_pending = isinstance(w.slow, tuple)
        return not is_pending or min(w.active) in w.slow[0]

    def _slow(self, w):
        if w.slow is None:
            pending = frozenset({w.late} if isinstance(w.late, int) else ())
            seen = frozenset(dict(w.commits)) | w.elsewhere
            yield replace(w, slow=(seen, pending))
        elif w.slow != "done" and len(w.slow) == 2:
            shown = [time for time in w.files if time in w.slow[0]]
            order = [time for time, _ in w.commits]
            yield replace(w, slow=(*w.slow, max(shown, key=order.index, default=None)))
        elif w.slow != "done":
            yield replace(w, slow=None) if self._conflicts(w) else self._complete(w)

    def _conflicts(self, w):
        seen, pending, _ = w.slow
        if "9" not in self.without and w.active - seen - w.elsewhere:
            return True
        if "15, the line" not in self.without and max(seen) < w.first:
            return True
        return "15, what was pending" not in self.without and any(time < w.first for time in pending)

    def _complete(self, w):
        found = w.slow[2]
        if found is None:
            return replace(w, slow="done", is_doubled=True)
        return replace(_commit(w, w.clock + 1, found, "slow"), slow="done")

    def broken(self, w, *, is_last):
        """What is wrong with a state."""
        if w.is_doubled:
            yield "a key is in two file groups"
        done = {f"fast {number}" for number in range(1, UPDATES + 1)} & {one for _, all_ in w.commits for one in all_}
        done |= {"late"} if w.late == "done" else set()
        if w.newest[1] - {"slow"} != done:
            yield "an update is lost"


def _commit(w, time, base, update):
    """The version of another commit, with one update more."""
    content = dict(w.commits)[base] | {update}
    return replace(w, commits=(*w.commits, (time, content)), files=w.files | {time}, clock=max(w.clock, time))


def check(without=()):
    """Number of all states, and what is broken -> number of states."""
    model = Model(tuple(without))
    return explore(World(), model.steps, model.broken, stops=bool(model.without))


if __name__ == "__main__":
    for names in ((), *TAKEN_OUT):
        states, found = check(names)
        print(f"without {' and '.join(names) or 'nothing'}: {states} states, {found}")
