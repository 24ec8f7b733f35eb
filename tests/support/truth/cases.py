"""Cases: a table, its history, and the questions about it. Plain values whose repr is Python again (pure)."""

import datetime
import math
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa

from .kinds import KINDS, widened

KEY, KEY_2, PATH, PATH_2, ORDER, GONE = "id", "id2", "p", "p2", "ts", "_hoodie_is_deleted"
IDENTITY = (KEY, KEY_2, PATH, PATH_2)
COMMIT = " commit"  # in rows of the model: number of the step that wrote it; no column is called so
WRITES = (
    "upsert", "insert", "bulk_insert", "delete", "delete_where", "insert_overwrite", "insert_overwrite_table",
    "delete_partition",
)  # fmt: skip
FIRST, SECOND = "first", "second"
HUDIS = ("1.0.2", "1.2.0")
META = "hoodie.populate.meta.fields"
CONCURRENCY = "hoodie.write.concurrency.mode"
GLOBAL = ("GLOBAL_BLOOM", "GLOBAL_SIMPLE", "RECORD_INDEX")


@dataclass(frozen=True)
class Shape:
    """What a table is.

    Attributes:
        version: 6, 8 or 9.
        merge_on_read: its type.
        index: of Hudi's names.
        kinds: name of each column -> name of its kind, in order; among them `KEY`, and the other names above where the
            table has them.
        merging: "event", "commit" or "partial".
        repeats: whether keys may come twice: then rows are only inserted, overwritten and deleted.
        moves: whether a key may come with another partition path.
        options: more options of the sink.
    """

    version: int = 6
    merge_on_read: bool = False
    index: str = "BLOOM"
    kinds: dict = field(default_factory=lambda: {KEY: "text"})
    merging: str = "event"
    repeats: bool = False
    moves: bool = False
    options: dict = field(default_factory=dict)

    @property
    def keys(self):
        """Columns of the record key."""
        return tuple(name for name in (KEY, KEY_2) if name in self.kinds)

    @property
    def paths(self):
        """Columns of the partition path."""
        return tuple(name for name in (PATH, PATH_2) if name in self.kinds)

    @property
    def partitioned(self):
        return PATH in self.kinds

    @property
    def virtual(self):
        """Whether rows hold no meta columns."""
        return self.options.get(META) == "false"

    def identity(self, row):
        """What no two rows share, as long as rows do not repeat."""
        return values_of(row, self.keys if self.keyed_by_table else self.keys + self.paths)

    def path(self, row):
        """Values that make the partition path."""
        return values_of(row, self.paths)

    @property
    def shared(self):
        """Whether several writers may be at work at the same time."""
        return CONCURRENCY in self.options

    @property
    def ordered(self):
        return ORDER in self.kinds and self.merging != "commit"

    @property
    def keyed_by_table(self):
        """Whether a key is unique in the table, and not in its partition path alone."""
        return self.index in GLOBAL or not self.partitioned


@dataclass(frozen=True)
class Step:
    """What happens to a table.

    Attributes:
        number: its name; later steps have greater ones.
        what: one of `WRITES`, or a service.
        rows: of the batch, dictionaries.
        kinds: of the batch's columns.
        where: of a delete, as `HudiTable.scan` takes it.
        to: version that the table is converted to; or number of the savepoint that is restored or deleted.
        by: name of the sink that writes; sinks of other names have other checkpoints. Or the version of a real Hudi: a
            sink writes in its place where there is no JVM.
    """

    number: int
    what: str
    rows: tuple = ()
    kinds: dict = field(default_factory=dict)
    where: list | None = None
    to: int = 0
    by: str = FIRST

    @property
    def writes(self):
        return self.what in WRITES


@dataclass(frozen=True)
class Question:
    """Which rows: of which columns, under which condition, of which snapshot or range.

    Attributes:
        columns: names; None means all.
        where: lists of terms, one list of which must be true; None means all rows.
        as_of: number of the step whose snapshot is asked for; None means the newest.
        since: of changes: number of the step behind which they begin; 0: from the first one on.
        until: of changes: number of the step with which they end; None means the newest.
        feed: arguments of `HudiTable.changes` that make it a change feed; None: the newest rows of the range.
        keys: of a lookup: values of the columns of the record key.
    """

    columns: tuple | None = None
    where: list | None = None
    as_of: int | None = None
    since: int | None = None
    until: int | None = None
    feed: dict | None = None
    keys: tuple | None = None

    @property
    def asked(self):
        """Names of the columns of the condition."""
        return {term[0].split(".")[0] for group in self.where or () for term in group}


@dataclass(frozen=True)
class Case:
    """A seed's table, history and questions."""

    seed: int
    shape: Shape
    steps: tuple
    questions: tuple


def values_of(row, names):
    """Values of some columns."""
    return tuple(row.get(name) for name in names)


def read_case(text):
    """A case from its repr."""
    names = {"Case": Case, "Shape": Shape, "Step": Step, "Question": Question, "Decimal": Decimal, "datetime": datetime}
    return eval(text, {**names, "nan": math.nan, "inf": math.inf})


def schema_of(kinds):
    """The Arrow schema of columns."""
    return pa.schema([(name, KINDS[kind].type) for name, kind in kinds.items()])


def batch_of(rows, kinds):
    """Rows of a step as an Arrow table."""
    return pa.Table.from_pylist(
        [{name: widened(row.get(name), kind) for name, kind in kinds.items()} for row in rows], schema_of(kinds)
    )
