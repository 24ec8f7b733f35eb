"""The table in memory: what each step leaves of it, and what each question is to be answered with (pure)."""

from dataclasses import dataclass

from .cases import COMMIT, GONE, ORDER, values_of
from .conditions import TUPLES, holds
from .feeds import feed_of
from .kinds import KINDS, order_of, spell, widened


class AmbiguousError(Exception):
    """The outcome is not defined: a shrunk history does what no drawn one does."""


@dataclass(frozen=True)
class State:
    """A snapshot.

    Attributes:
        kinds: columns -> kinds, in order.
        rows: dictionaries.
    """

    kinds: dict
    rows: tuple = ()


class Model:
    """Applies steps to a table in memory.

    Attributes:
        states: number of the step -> the snapshot behind it, of the writes that count.
        saved: number of a savepoint -> number of the write that it keeps, of the savepoints that there are.
    """

    def __init__(self, shape):
        self.shape = shape
        self.states, self.saved = {}, {}

    @property
    def now(self):
        return self.states[max(self.states)] if self.states else State({})

    def state(self, question):
        """The snapshot that a question is about: of a range, the one at its end."""
        number = question.as_of if question.as_of is not None else question.until
        return self.now if number is None else self.states[number]

    def apply(self, step):
        """A write. The snapshot behind it."""
        if not self.states and step.what.startswith("delete"):
            raise AmbiguousError("there is no table yet")
        state = State(kinds_after(self.now.kinds, step), self.now.rows)
        rows = [_stored(row, state.kinds) for row in state.rows]
        batch = [_stored(row, state.kinds) for row in step.rows]
        left = getattr(self, f"_{step.what}")(step, rows, batch, state.kinds)
        self.states[step.number] = State(state.kinds, tuple(left))
        return self.states[step.number]

    def made_nothing(self, number):
        """The write of a step made no commit, or an empty one of a writer that shares the table.

        It adds no column and widens none, as long as it changes no row.
        """
        before = max((one for one in self.states if one < number), default=None)
        earlier = State({}) if before is None else self.states[before]
        rows = self.states[number].rows
        if len(rows) == len(earlier.rows) and not any(row[COMMIT] == number for row in rows):
            self.states[number] = earlier

    def roll_back(self, number):
        """The write of a step is undone, and what came later."""
        self.states = {one: state for one, state in self.states.items() if one < number}

    def serve(self, step):
        """A service that changes what there is to ask: savepoints and restores. Others change nothing."""
        if step.what == "savepoint":
            self.saved[step.number] = max(self.states)
        elif step.what == "delete_savepoint":
            del self.saved[step.to]
        elif step.what == "restore":
            self.roll_back(self.saved[step.to] + 1)

    def answer(self, question, meaning=TUPLES):
        """Rows, sorted: tuples of spelled values."""
        if question.feed is not None:
            return feed_of(self, question, meaning)
        state = self.state(question)
        names = question.columns if question.columns is not None else tuple(state.kinds)
        rows = [row for row in state.rows if holds(question.where, row, state.kinds, meaning)]
        if question.since is not None:
            rows = [row for row in rows if row[COMMIT] > question.since]
        if question.keys is not None:
            rows = [row for row in rows if values_of(row, self.shape.keys) in question.keys]
        return spelled(rows, names, state.kinds)

    def refuses(self, step):
        """Whether a write is refused.

        Readers would not keep its rows, it would delete some of the rows of a key, or there were never rows.
        """
        if step.what == "insert":
            return self.shape.index == "BUCKET" and self.shape.merge_on_read
        now = self.now
        if step.what == "delete" and self.states:
            return not now.kinds  # there were never rows
        if step.what != "delete_where":
            return False
        if not {term[0].split(".")[0] for group in step.where for term in group} <= set(now.kinds):
            raise AmbiguousError("the condition names a column that was never made")
        wanted = {self._identity(row) for row in now.rows if holds(step.where, row, now.kinds)}
        return any(self._identity(row) in wanted and not holds(step.where, row, now.kinds) for row in now.rows)

    def _identity(self, row):
        return self.shape.identity(row)

    def paths(self):
        """Values that make the partition paths that have rows."""
        return set(map(self.shape.path, self.now.rows))

    def _wins(self, new, old):
        return not self.shape.ordered or order_of(new[ORDER]) >= order_of(old[ORDER])

    def _merged(self, new, old, kinds):
        first, second = (new, old) if self._wins(new, old) else (old, new)
        if self.shape.merging != "partial":
            return first
        return {**first, **{name: second.get(name) for name in kinds if first.get(name) is None}}

    def _upsert(self, step, rows, batch, kinds):
        records = {}
        for record in batch:
            name = self._identity(record)
            records[name] = self._merged(record, records[name], kinds) if name in records else record
        stored = {}
        for row in rows:
            name = self._identity(row)
            if name in stored and name in records:
                raise AmbiguousError(name)
            stored[name] = row
        left = [row for row in rows if self._identity(row) not in records]
        for name, record in records.items():
            merged = self._merged(record, stored[name], kinds) if name in stored else record
            if merged is stored.get(name) or not merged.get(GONE):
                is_old = name in stored and not self._wins(record, stored[name])
                left.append(merged if is_old else {**merged, COMMIT: step.number})
        return left

    def _insert(self, step, rows, batch, kinds):
        if not self.shape.repeats:
            known = {self._identity(row) for row in rows}
            if len(known | {self._identity(row) for row in batch}) < len(known) + len(batch):
                raise AmbiguousError("a key comes twice")
        return rows + [{**record, COMMIT: step.number} for record in batch]

    _bulk_insert = _insert

    def _delete(self, step, rows, batch, kinds):
        gone = {self._identity(record) for record in batch}
        return [row for row in rows if self._identity(row) not in gone]

    def _delete_where(self, step, rows, batch, kinds):
        return [row for row in rows if not holds(step.where, row, kinds)]

    def _insert_overwrite(self, step, rows, batch, kinds):
        replaced = set(map(self.shape.path, batch))
        return self._insert(step, [row for row in rows if self.shape.path(row) not in replaced], batch, kinds)

    def _insert_overwrite_table(self, step, rows, batch, kinds):
        return self._insert(step, [], batch, kinds)

    def _delete_partition(self, step, rows, batch, kinds):
        gone = set(map(self.shape.path, batch))
        if gone - self.paths():
            raise AmbiguousError("there is no such path")
        return [row for row in rows if self.shape.path(row) not in gone]


def kinds_after(kinds, step):
    """The columns of a table behind a write: new ones, and wider ones."""
    if step.what in ("delete", "delete_where", "delete_partition"):
        return kinds
    changed = {name: kind for name, kind in step.kinds.items() if kind in _wider(kinds.get(name))}
    return {**kinds, **changed, **{name: kind for name, kind in step.kinds.items() if name not in kinds}}


def _wider(kind):
    return KINDS[kind].wider if kind is not None else ()


def _stored(row, kinds):
    return {COMMIT: row.get(COMMIT), **{name: widened(row.get(name), kind) for name, kind in kinds.items()}}


def spelled(rows, names, kinds):
    """Rows as sorted tuples of spelled values, in the order of `names`."""
    types = [KINDS[kinds[name]].type for name in names]
    made = [tuple(spell(row[name], kind) for name, kind in zip(names, types, strict=True)) for row in rows]
    return sorted(made, key=repr)
