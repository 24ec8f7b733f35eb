"""How one instant ends: every interleaving of a writer, two attempts of a task, two recoverers and archival.

An attempt creates its marker, looks whether the instant is open, and publishes a file. The writer commits the file of
the attempt that reported to it. Recoverers take the writer for dead at any moment, rightly or not. Archival moves the
line of visibility: base files that are older than the first active commit count as committed (tables of version 6).
Published models of the protocol leave that line out. The writer dies at any step, or stands still for as long as
it likes.

    PYTHONPATH=tests/support python -m models.one_instant
"""

from dataclasses import dataclass, replace

from models.explore import explore

RULES = {
    "3: one object decides": "commit and rollback create one end record if it is absent, and obey the one there",
    "3: who finds an end carries it out": "a recoverer that finds a decided commit completes it",
    "4: what markers name goes": "files that markers name and the commit does not are deleted before the instant ends",
    "4: the completed file comes last": "it is created after the deletion",
    "5: the fence": "nothing is published once the fence is moved away, and it goes before the deletion",
    "6: the line waits": "archival passes no instant that has not ended",
}
ATTEMPTS = ("reported", "late")


@dataclass(frozen=True)
class World:
    """A state.

    Attributes:
        attempts: of each attempt, the step that it takes next.
        markers: attempts with a marker.
        files: attempts whose file is published.
        is_reported: whether the writer knows of the first one's file.
        has_fence: whether files can be published.
        end: of the end record; None, commit or rollback.
        completed: whether the completed file exists.
        rolled_back: whether a rollback is complete.
        is_archived: whether the line of visibility has passed the instant.
        actors: of writer and recoverers: what they carry out, and how far they are.
    """

    attempts: tuple = ("mark", "mark")
    markers: frozenset = frozenset()
    files: frozenset = frozenset()
    is_reported: bool = False
    has_fence: bool = True
    end: str | None = None
    completed: bool = False
    rolled_back: bool = False
    is_archived: bool = False
    actors: tuple = (("decide", 0), ("decide", 0), ("decide", 0))


@dataclass
class Model:
    """All states that can be reached, without one of the rules if it is named."""

    without: str | None = None

    def holds(self, number):
        """Whether the rule whose name begins so is there."""
        return self.without is None or not self.without.startswith(number)

    def steps(self, w):
        for number in range(2):
            yield from self._attempt(w, number)
        for number in range(3):
            yield from self._actor(w, number)
        if not w.is_archived and (w.completed or w.rolled_back or not self.holds("6: the line waits")):
            yield replace(w, is_archived=True)

    def _attempt(self, w, number):
        name, step = ATTEMPTS[number], w.attempts[number]
        if step == "mark":
            yield replace(_at(w, number, "look"), markers=w.markers | {name})
        elif step == "look":
            is_open = w.end is None and not w.rolled_back  # where there is a fence, the look is a second defence
            yield _at(w, number, "publish" if is_open else "failed")
        elif step == "publish":
            if w.has_fence or not self.holds("5"):
                yield replace(_at(w, number, "report"), files=w.files | {name})
            else:
                yield _at(w, number, "failed")
        elif step == "report":
            yield replace(_at(w, number, "done"), is_reported=w.is_reported or number == 0)

    def _actor(self, w, number):
        """The writer (0) or a recoverer."""
        what, place = w.actors[number]
        if number == 0 and what != "dead":
            yield replace(w, actors=_put(w.actors, 0, ("dead", 0)))
        if what == "decide":
            yield from self._decide(w, number)
        elif what in ("commit", "rollback") and place < len(self._program(what)):
            step = self._program(what)[place]
            yield replace(getattr(self, f"_{step}")(w, what), actors=_put(w.actors, number, (what, place + 1)))

    def _decide(self, w, number):
        is_writer, wanted = number == 0, "commit" if number == 0 else "rollback"
        if is_writer and not w.is_reported:
            return
        end = w.end or wanted
        if not self.holds("3: one object"):  # who comes looks at what is complete, and does what it wants
            end = None if (w.completed or w.rolled_back) else wanted
        if end is None or (end != wanted and (is_writer or not self.holds("3: who finds"))):
            yield replace(w, actors=_put(w.actors, number, ("gave up", 0)))
        else:
            yield replace(w, end=w.end or end, actors=_put(w.actors, number, (end, 0)))

    def _program(self, what):
        steps = ["fence", "delete", "complete"] if self.holds("4: the completed") else ["complete", "fence", "delete"]
        return [step for step in steps if step != "delete" or self.holds("4: what markers")]

    def _fence(self, w, _what):
        return replace(w, has_fence=False)

    def _delete(self, w, what):
        kept = {ATTEMPTS[0]} if what == "commit" else set()
        return replace(w, files=frozenset(one for one in w.files if one not in w.markers or one in kept))

    def _complete(self, w, what):
        return replace(w, completed=w.completed or what == "commit", rolled_back=w.rolled_back or what == "rollback")

    def broken(self, w, *, is_last):
        """What is wrong with a state."""
        if w.completed and w.rolled_back:
            yield "an instant is both committed and rolled back"
        if w.completed and ATTEMPTS[0] not in w.files:
            yield "a commit has lost its file"
        if w.completed and ATTEMPTS[1] in w.files:
            yield "a commit shows the rows of two attempts"
        if w.is_archived and not w.completed and w.files:
            yield "rows became visible that nobody committed"
        if is_last and w.end == "commit" and not w.completed:
            yield "a decided commit is never completed"


def _at(w, number, step):
    return replace(w, attempts=_put(w.attempts, number, step))


def _put(values, number, value):
    return (*values[:number], value, *values[number + 1 :])


def check(without=None):
    """Number of all states, and what is broken -> number of states."""
    model = Model(without)
    return explore(World(), model.steps, model.broken)


if __name__ == "__main__":
    for name in (None, *RULES):
        states, found = check(name)
        print(f"without {name!r}: {states} states, {found}" if name else f"all rules: {states} states, {found}")
