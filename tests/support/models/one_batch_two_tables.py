"""One batch, two tables, one instant of visibility: every interleaving of a ledger that nobody has built (decision 88).

A router's batch writes the tables X and Y. A record of the ledger, created if absent, decides whether it is committed.
The completed file of each table follows, and anybody may create it. Another writer updates the same rows of X. Somebody
takes the router for dead, rightly or not. A reader of ours asks the ledger; a reader of Hudi's does not.

    PYTHONPATH=tests/support python -m models.one_batch_two_tables
"""

from dataclasses import dataclass, replace

from models.explore import explore

RULES = {
    "the ledger decides": "who undoes the batch first creates a record that says so, and obeys the one that is there",
    "places are held": "the batch takes its place in the order of each table before the record; others settle it first",
    "the ledger comes first": "a reader reads the ledger before the tables, once",
    "later batches are hidden": "a reader shows no batch that the ledger did not have, whatever a table says",
    "records stay until all is done": "a record goes only when each table has ended the batch",
}
TABLES = ("X", "Y")
SHOWN = {"commit": True, "abort": False, None: False}


@dataclass(frozen=True)
class World:
    """A state.

    Attributes:
        at: of each table, what became of the batch: none, pending, completed or undone.
        versions: of X, what each version of its rows contains, oldest first.
        ledger: None, commit, abort, or gone.
        router: the step that it takes next; dead or done.
        places: tables in whose order the router has the last place.
        based: what the router saw of X.
        other: what the other writer saw of X; None before it looked, done after its commit.
        reader: what it knows: the look at the ledger, and of each table whether it shows the batch.
        plain: of a reader that asks no ledger, the same of each table.
        told: whether somebody was told that the batch is committed.
        careless: whether a writer that knows no ledger has undone the batch in X.
    """

    at: tuple = ("none", "none")
    versions: tuple = (frozenset(),)
    ledger: str | None = None
    router: str = "request X"
    places: tuple = ()
    based: frozenset = frozenset()
    other: object = None
    reader: tuple = ()
    plain: tuple = ()
    told: bool = False
    careless: bool = False


NEXT = {"request X": "request Y", "request Y": "place X", "place X": "place Y", "place Y": "decide"}


@dataclass
class Model:
    """All states that can be reached.

    Args:
        without: a rule that is taken out.
        with_jvm_writer: whether a writer that knows no ledger may undo what is pending in X.
    """

    without: str | None = None
    with_jvm_writer: bool = False

    def holds(self, rule):
        return rule != self.without

    def steps(self, w):
        yield from self._router(w)
        yield from self._other(w)
        yield from self._settle(w)
        yield from self._readers(w)
        ended = all(one in ("completed", "undone") for one in w.at)
        if w.ledger in SHOWN and w.ledger and (ended or not self.holds("records stay until all is done")):
            yield replace(w, ledger="gone")
        if self.with_jvm_writer and w.at[0] == "pending":
            yield replace(w, at=("undone", w.at[1]), careless=True)

    def _router(self, w):
        if w.router in ("dead", "done"):
            return
        yield replace(w, router="dead")
        step, _, table = w.router.partition(" ")
        if step == "request" and w.at[TABLES.index(table)] == "none":
            based = w.versions[-1] if table == "X" else w.based
            yield replace(_put(w, table, "pending"), router=NEXT[w.router], based=based)
        elif step == "place":
            if w.ledger is not None or (table == "X" and w.versions[-1] != w.based):
                yield self._decided(w, "abort")  # a conflict, or it was undone
            else:
                places = (*w.places, table) if self.holds("places are held") else ()
                yield replace(w, router=NEXT[w.router], places=places)
        elif step == "decide":
            yield self._decided(w, "commit")
        elif step == "carry":
            yield self._carried(w, table, router="carry Y" if table == "X" else "done")

    def _decided(self, w, wanted):
        ledger = w.ledger if w.ledger is not None else wanted
        return replace(w, ledger=ledger, router="carry X", told=w.told or ledger == "commit")

    def _carried(self, w, table, **also):
        """The end of the batch in one table, as the ledger says."""
        w = replace(w, **also)
        if w.at[TABLES.index(table)] != "pending" or w.ledger == "gone":
            return w
        if w.ledger == "commit":
            if table == "X":
                w = replace(w, versions=(*w.versions, w.based | {"batch"}))
            return replace(_put(w, table, "completed"), places=tuple(one for one in w.places if one != table))
        return replace(_put(w, table, "undone"), places=tuple(one for one in w.places if one != table))

    def _other(self, w):
        """Another writer of X: it looks, and commits if nothing came since."""
        if w.other is None:
            yield replace(w, other=w.versions[-1])
        elif w.other != "done":
            settled = self._settled(w, "X") if "X" in w.places and w.at[0] == "pending" else w
            if settled.versions[-1] == w.other:
                yield replace(settled, versions=(*settled.versions, w.other | {"other"}), other="done")
            else:
                yield replace(settled, other=settled.versions[-1])

    def _settle(self, w):
        """Somebody takes the router for dead, and ends the batch in one table."""
        for table in TABLES:
            if w.at[TABLES.index(table)] == "pending" and w.ledger != "gone":
                yield self._settled(w, table)

    def _settled(self, w, table):
        if w.ledger is None and not self.holds("the ledger decides"):
            return replace(_put(w, table, "undone"), places=tuple(one for one in w.places if one != table))
        return self._carried(replace(w, ledger=w.ledger or "abort"), table)

    def _readers(self, w):
        if len(w.plain) < 2:
            yield replace(w, plain=(*w.plain, w.at[len(w.plain)] == "completed"))
        first = self.holds("the ledger comes first")
        if first and not w.reader:
            yield replace(w, reader=((w.ledger,),))
        elif len(w.reader) < 2 + first:
            table = len(w.reader) - first
            look = w.reader[0][0] if first else w.ledger
            shows = w.at[table] == "completed" if look == "gone" else SHOWN[look]
            if not self.holds("later batches are hidden"):
                shows = shows or w.at[table] == "completed"
            yield replace(w, reader=(*w.reader, shows))

    def broken(self, w, *, is_last):
        """What is wrong with a state."""
        seen = w.reader[1:] if self.holds("the ledger comes first") else w.reader
        if len(seen) == 2 and seen[0] != seen[1]:
            yield "a reader that asks the ledger sees one table moved"
        if len(w.plain) == 2 and w.plain[0] != w.plain[1]:
            yield "a reader that asks no ledger sees one table moved"
        done = {"other"} if w.other == "done" else set()
        done |= {"batch"} if w.at[0] == "completed" else set()
        if w.versions[-1] != done:
            yield "an update is lost"
        if is_last and w.told and w.at != ("completed", "completed"):
            yield "a batch that was acknowledged is not whole"
        if is_last and not w.told and "completed" in w.at:
            yield "a part of a batch is visible that nobody committed"


def _put(w, table, what):
    return replace(w, at=tuple(what if name == table else old for name, old in zip(TABLES, w.at, strict=True)))


def check(without=None, *, with_jvm_writer=False):
    """What is broken -> number of states, and the number of all states."""
    model = Model(without, with_jvm_writer)
    return explore(World(), model.steps, model.broken)


if __name__ == "__main__":
    for name in (None, *RULES):
        states, found = check(name)
        print(f"without {name!r}: {states} states, {found}" if name else f"all rules: {states} states, {found}")
    print("with a writer that knows no ledger:", *check(with_jvm_writer=True))
