"""From a seed to a case (pure)."""

import datetime as dt
import random
from dataclasses import replace
from itertools import product

from .cases import (
    CONCURRENCY,
    FIRST,
    GLOBAL,
    GONE,
    HUDIS,
    IDENTITY,
    KEY,
    KEY_2,
    META,
    ORDER,
    PATH,
    PATH_2,
    SECOND,
    Case,
    Question,
    Shape,
    Step,
)
from .kinds import KINDS
from .model import Model

SECOND_KEYS = {"text": ("a", "b", "", None), "long": (1, -1)}
SECOND_PATHS = {"text": ("u", "v w", None), "int": (1, -1)}
KEYS = {
    "text": (*(f"k{number}" for number in range(8)), "é", "😀", "\uffee", "a b", "it's", "50%"),
    "long": (*range(8), -1, 2**63 - 1, -(2**63), 2**53 + 1),
    "int": (*range(8), -1, 2**31 - 1, -(2**31)),
}
PATHS = {
    "text": ("x", "y z", "é", None),
    "int": (0, -1, 2024, None),
    "date": (dt.date(2024, 2, 29), dt.date(1969, 12, 31), None),
}
ENCODED = ("x", "a/b", "50%", "x=y", "q?", "#", "é", None)
ORDERS = ("long", "long", "long", "int", "double", "float", "text", "date", "time", "small_decimal")
INDEXES = ("BLOOM", "BLOOM", "SIMPLE", "BUCKET", "GLOBAL_BLOOM", "GLOBAL_SIMPLE", "RECORD_INDEX")
LISTS = "hoodie.metadata.enable"
STATISTICS = "hoodie.metadata.index.column.stats.enable"
CDC, CDC_MODE = "hoodie.table.cdc.enabled", "hoodie.table.cdc.supplemental.logging.mode"
FILE_LOCK = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
HUDI_WRITES = ("upsert", "insert", "bulk_insert", "delete")
SERVICES = (
    "compact", "cluster", "clean", "archive", "roll_back", "convert", "reopen", "savepoint", "restore",
    "delete_savepoint",
)  # fmt: skip


def draw_shape(rng):
    """A table."""
    version, on_logs, index = rng.choice((6, 8, 9)), rng.random() < 0.45, rng.choice(INDEXES)
    repeats = index in ("BLOOM", "SIMPLE") and rng.random() < 0.12
    merging = "event" if repeats else rng.choices(("event", "commit", "partial"), (7, 2, 1))[0]
    kinds = {KEY: rng.choice(("text", "text", "long", "int"))}
    partition = rng.choice((None, "text", "text", "int", "date"))
    if partition is not None:
        kinds[PATH] = partition
    if rng.random() < 0.15:
        kinds[KEY_2] = rng.choice(list(SECOND_KEYS))
    if partition is not None and rng.random() < 0.2:
        kinds[PATH_2] = rng.choice(list(SECOND_PATHS))
    order = rng.choice((*ORDERS, None)) if merging == "event" else "long" if merging == "partial" else None
    if order is not None:
        kinds[ORDER] = order
    for number in range(rng.randint(1, 4)):
        kinds[f"c{number}"] = rng.choice(list(KINDS))
    if not repeats and merging != "partial" and rng.random() < 0.4:
        kinds[GONE] = "bool"
    moves = index in ("GLOBAL_BLOOM", "GLOBAL_SIMPLE") and not on_logs and rng.random() < 0.5
    moves = moves and merging != "partial"  # a null in the partition column would move the row and keep the column
    return Shape(
        version, on_logs, index, kinds, merging, repeats, moves, draw_options(rng, index, partition, moves, on_logs)
    )


def draw_options(rng, index, partition, moves, on_logs):
    """Options beside those that the shape implies."""
    options = {
        "hoodie.parquet.small.file.limit": rng.choice(("0", "104857600")),
        "hoodie.parquet.block.size": rng.choice(("200", "134217728")),
        "hudistream.schema.integers.to.floats": "true",  # some batches widen a column so
    }
    if not on_logs and index not in ("BUCKET", "RECORD_INDEX") and rng.random() < 0.15:
        options[META] = "false"
    if options.get(META) is None and rng.random() < 0.25:
        options |= {CDC: "true", CDC_MODE: rng.choice(("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"))}
    if rng.random() < 0.25:
        options["hudistream.schema.mode"] = "reconcile"
    if partition is not None and rng.random() < 0.3:
        options["hoodie.datasource.write.hive_style_partitioning"] = "true"
    if partition == "text" and rng.random() < 0.4:
        options["hoodie.datasource.write.partitionpath.urlencode"] = "true"
    if on_logs and rng.random() < 0.4:
        options["hoodie.logfile.data.block.format"] = "parquet"
    if index == "BUCKET":
        options["hoodie.bucket.index.num.buckets"] = "2"
    if index == "RECORD_INDEX":
        options |= {LISTS: "true", "hoodie.metadata.record.index.enable": "true"}
    elif rng.random() < 0.4:
        options |= {LISTS: "true"} | ({STATISTICS: "true"} if rng.random() < 0.7 else {})
    if index != "RECORD_INDEX" and rng.random() < 0.2:  # sinks that share a table make no index
        options[CONCURRENCY] = "optimistic_concurrency_control"
        if rng.random() < 0.5:
            options["hoodie.write.lock.provider"] = FILE_LOCK
    if index in ("GLOBAL_BLOOM", "GLOBAL_SIMPLE"):
        name = index.removeprefix("GLOBAL_").lower()
        options[f"hoodie.{name}.index.update.partition.path"] = str(moves).lower()
    return options


class Drawing:
    """Draws a history step by step; a model of its own knows which keys there are."""

    def __init__(self, rng, shape):
        self.rng, self.shape, self.model, self.narrow = rng, shape, Model(shape), {}
        self.kinds = dict(shape.kinds)
        self.keys = self._values(KEYS[shape.kinds[KEY]], SECOND_KEYS.get(shape.kinds.get(KEY_2)))
        self.paths = self._values(self._paths(), SECOND_PATHS.get(shape.kinds.get(PATH_2))) if shape.paths else ((),)
        self.sinks = (FIRST, SECOND) if shape.shared or rng.random() < 0.4 else (FIRST,)
        # renews: with a global index Hudi gives a row that a late record met the time of the later commit
        self.hudi_writes, self.deletes, self.renews = rng.random() < 0.4, False, False

    def _paths(self):
        if "hoodie.datasource.write.partitionpath.urlencode" in self.shape.options:
            return ENCODED
        return PATHS[self.shape.kinds[PATH]]

    def _values(self, first, second):
        """Values of one column or two, as tuples."""
        return [(value,) for value in first] if second is None else list(product(first, second))

    def steps(self):
        """The history."""
        made, shape = [], self.shape
        for number in range(1, 2 + self.rng.randint(2, 9)):
            step = self._step(number, made)
            if step is None:
                continue
            step = replace(step, by=self._writer(step)) if step.writes else step
            if step.writes and not self.model.refuses(step):
                self.model.apply(step)
            elif step.what == "roll_back":
                self.model.roll_back(made[-1].number)
            self.deletes |= step.what.startswith("delete")
            self.renews |= step.by in HUDIS and step.what == "upsert" and shape.index in GLOBAL and shape.ordered
            self.model.serve(step)
            self.kinds = dict(self.model.now.kinds)
            self.narrow = {name: kind for name, kind in self.narrow.items() if name in self.kinds}
            made.append(step)
        return tuple(made)

    def _writer(self, step):
        """Who writes. Hudi gets batches with the columns of the table: it changes them in its own way.

        Nor does it get what is refused here: it would do it, and keep some of the rows.
        """
        same = (step.what == "delete" or step.kinds == self.kinds) and not self.model.refuses(step)
        same = same and not (step.what == "upsert" and self._logs_hold_deletes())
        if self.hudi_writes and step.what in HUDI_WRITES and same and self.rng.random() < 0.5:
            return self.rng.choice(HUDIS)
        return self.rng.choice(self.sinks)

    def _logs_hold_deletes(self):
        """Whether a late record of Hudi may bring back the row below a delete: docs/decisions/0042."""
        return self.shape.merge_on_read and self.shape.ordered and (self.deletes or GONE in self.kinds)

    def _step(self, number, made):
        if not self.model.states:
            return self._batch(number, self.rng.choice(self._first()))
        services = (*SERVICES, *("restore",) * 4) if self.model.saved else SERVICES
        what = self.rng.choice((*self._first() * 3, "delete", "delete_where", *self._overwrites(), *services))
        if what == "compact" and not self.shape.merge_on_read:
            what = "clean"
        if what == "roll_back" and not (made[-1].writes and len(made) > 1 and not self.model.refuses(made[-1])):
            what = "compact" if self.shape.merge_on_read else "cluster"
        if what in ("restore", "delete_savepoint"):
            return Step(number, what, to=max(self.model.saved)) if self.model.saved else Step(number, "savepoint")
        if what == "convert":
            return Step(number, what, to=self.rng.choice((6, 8, 9)))
        if what == "delete_where":
            return Step(number, what, where=self.where())
        return self._batch(number, what) if what not in SERVICES else Step(number, what)

    def _first(self):
        if self.shape.repeats:
            return ("insert", "bulk_insert")
        if self.shape.index != "BUCKET":
            return ("upsert", "upsert", "upsert", "insert", "bulk_insert")
        refused = self.shape.merge_on_read and not self.model.states  # later ones are drawn: nothing of them is visible
        return ("upsert", "upsert", "upsert") if refused else ("upsert", "upsert", "upsert", "insert")

    def _overwrites(self):
        if self.shape.index == "BUCKET":
            return ()
        whole = ("insert_overwrite_table",)
        return (*whole, "insert_overwrite", "delete_partition") if self.shape.partitioned else whole

    def _batch(self, number, what):
        if what in ("delete", "delete_partition"):
            kinds = {name: self.kinds[name] for name in IDENTITY if name in self.kinds}
        else:
            kinds = self._batch_kinds(number)
        names = self._identities(what)
        if not names:
            return None
        rows = tuple(self._row(number, what, kinds, key, path) for key, path in names)
        return Step(number, what, rows, kinds)

    def _batch_kinds(self, number):
        kinds, rng = dict(self.kinds), self.rng
        if self.model.states and rng.random() < 0.2:
            wider = [name for name, kind in kinds.items() if KINDS[kind].wider and name not in IDENTITY]
            if wider and rng.random() < 0.6:
                name = rng.choice(wider)
                self.narrow[name] = kinds[name]
                kinds[name] = rng.choice(KINDS[kinds[name]].wider)
            else:
                kinds[f"n{number}"] = rng.choice(list(KINDS))
        elif self.narrow and rng.random() < 0.3:
            name = rng.choice(sorted(self.narrow))
            kinds[name] = self.narrow[name]
        elif self.shape.options.get("hudistream.schema.mode") and self.model.states and rng.random() < 0.3:
            for name in [name for name in kinds if name[0] in "cn" and rng.random() < 0.5]:
                del kinds[name]
        return kinds

    def _identities(self, what):
        """Keys and partition paths of a batch."""
        keys, rng = self.keys, self.rng
        names = [(rng.choice(keys), rng.choice(self.paths)) for _ in range(rng.randint(1, 9))]
        if not self.shape.moves and self.shape.keyed_by_table:
            names = [(key, self.paths[keys.index(key) % len(self.paths)]) for key, _ in names]
        if what == "delete_partition":  # a path that the table does not have is refused
            there = self.model.paths()
            return [(key, path) for key, path in names if path in there]
        if what in ("upsert", "delete") or self.shape.repeats:
            return names
        by_table = self.shape.keyed_by_table
        known = set(map(self.shape.identity, self.model.now.rows))
        fresh = {key if by_table else key + path: (key, path) for key, path in names}
        return [found for name, found in fresh.items() if name not in known]

    def _row(self, number, what, kinds, key, path):
        row = {name: self._value(kind) for name, kind in kinds.items()}
        row.update(zip(self.shape.keys + self.shape.paths, key + path, strict=True))
        if ORDER in kinds:
            row[ORDER] = self._order(number, kinds[ORDER])
        if GONE in kinds:
            row[GONE] = self.rng.choice((False, None, False, None, True) if what == "upsert" else (False, None))
        return row

    def _order(self, number, kind):
        if self.shape.merging == "partial":
            return 10 * number + self.rng.randint(0, 3)
        if kind in ("int", "long") and self.rng.random() < 0.8:
            return self.rng.randint(0, 6)
        return self.rng.choice(KINDS[kind].values)

    def _value(self, kind):
        return None if self.rng.random() < 0.25 else self.rng.choice(KINDS[kind].values)

    def where(self):
        """A condition: lists of terms."""
        groups = 2 if self.rng.random() < 0.2 else 1
        return [[self._term() for _ in range(self.rng.choice((1, 1, 2)))] for _ in range(groups)]

    def _term(self):
        rng, kinds = self.rng, self.model.now.kinds
        named = [name for name, kind in kinds.items() if KINDS[kind].compares or kind == "struct"]
        name = rng.choice(named)
        kind = KINDS[kinds[name]]
        inner = rng.choice(("a", "b")) if kinds[name] == "struct" else ""
        if inner:
            kind = KINDS["long" if inner == "a" else "text"]
        operator = rng.choice(("=", "!=", "in", "not in", *(("<", "<=", ">", ">=") if kind.orders else ())))
        values = self._compared_with(name, inner, kind)
        if operator in ("in", "not in"):
            value = [rng.choice(values) for _ in range(rng.randint(0, 3))] + ([None] if rng.random() < 0.1 else [])
        else:
            value = rng.choice(values) if rng.random() < 0.97 else None
        return (f"{name}.{inner}" if inner else name, operator, value)

    def _compared_with(self, name, inner, kind):
        if inner or self.rng.random() < 0.4:
            return kind.values
        stored = [row[name] for row in self.model.now.rows if row.get(name) is not None]
        return stored or kind.values

    def questions(self, steps):
        """What is asked behind the last step."""
        rng, names, made = self.rng, list(self.model.now.kinds), [Question()]
        snapshots = sorted(self.model.states)
        for _ in range(8):
            columns = tuple(rng.sample(names, rng.randint(1, len(names)))) if rng.random() < 0.4 else None
            made.append(Question(columns, self.where()))
        made += [Question(as_of=number) for number in sorted(set(self.model.saved.values()))]
        if snapshots:
            made += [Question(as_of=number) for number in rng.sample(snapshots, min(2, len(snapshots)))]
            made += self._changes(snapshots)
        made.append(Question(keys=tuple(rng.sample(self.keys, 3))))
        return tuple(made)

    def _changes(self, snapshots):
        """Questions about ranges of commits: the newest rows, and feeds."""
        rng, made = self.rng, []
        by_value = self.renews or self.shape.merging == "partial"  # a late record may fill nulls and keeps the commit
        for number in range(4):
            since, end = sorted(rng.sample([0, *snapshots], 2))
            until = end if rng.random() < 0.5 else None
            where = self.where() if rng.random() < 0.3 else None
            if number == 0 and not by_value:
                made.append(Question(where=where, since=since, until=until))
            elif number and not self.shape.repeats:
                made.append(Question(where=where, since=since, until=until, feed=self._feed(by_value)))
        return made

    def _feed(self, by_value):
        rng = self.rng
        feed = {name: rng.random() < 0.5 for name in ("deletes", "before", "each_commit", "unchanged")}
        if by_value or self.shape.virtual:
            feed["unchanged"] = False
        by_path = not self.shape.keyed_by_table or rng.random() < 0.3
        return {**feed, "moves": "delete_insert" if by_path else "update"}


def draw_case(seed):
    """The case of a seed: the same one always."""
    rng = random.Random(seed)
    shape = draw_shape(rng)
    drawing = Drawing(rng, shape)
    steps = drawing.steps()
    return Case(seed, shape, steps, drawing.questions(steps))
