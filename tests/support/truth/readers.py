"""Readers of a table, each with its own way to say a condition."""

import pickle
from dataclasses import dataclass, field

import pyarrow as pa

from hudistream import HudiTable, scan_hudi

from .cases import KEY
from .conditions import SQL, TOTAL, TUPLES
from .feeds import spelled_feed
from .kinds import KINDS
from .model import spelled
from .sql import DUCKDB, SPARK, as_sql

NEW_TIMELINE = 8  # version of tables; the greatest that Hudi 1.0.2 knows


class UnaskedError(Exception):
    """The reader has no way to ask this."""


def record_keys(shape, keys):
    """Record keys as tables store them."""
    if len(shape.keys) == 1:
        plain = [str(key) for (key,) in keys]
        # a key of one column beside several of the path is spelled in one of two ways
        return [*plain, *(f"{KEY}:{key}" for key in plain)] if len(shape.paths) > 1 else plain
    return [",".join(map(_key_part, shape.keys, key)) for key in keys]


def _key_part(name, value):
    return f"{name}:" + ("__null__" if value is None else "__empty__" if value == "" else str(value))


@dataclass
class Asked:
    """A table on disk, and what is known of its history.

    Attributes:
        path: of the table.
        model: what it is to hold.
        times: number of a step -> (instant time, time for a range of changes), of the writes that have one.
        kept: numbers of the steps whose commits savepoints keep; a savepoint may be of a service behind the step.
    """

    path: str
    model: object
    times: dict = field(default_factory=dict)
    kept: set = field(default_factory=set)

    def version(self):
        return HudiTable.open(self.path).config.version

    def state(self, question):
        return self.model.state(question)

    def names(self, question):
        return question.columns if question.columns is not None else tuple(self.state(question).kinds)

    def as_of(self, question):
        return None if question.as_of is None else self.times[question.as_of][0]

    def since(self, question):
        return "earliest" if question.since == 0 else self.times[question.since][1]

    def until(self, question):
        return None if question.until is None else self.times[question.until][1]

    def spelled(self, rows, question):
        rows = rows.to_pylist() if isinstance(rows, pa.Table) else rows
        if question.feed is not None:
            steps = {times[0]: number for number, times in self.times.items()}
            return spelled_feed(rows, question, self.names(question), self.state(question).kinds, steps)
        return spelled(rows, self.names(question), self.state(question).kinds)


class Scan:
    """`HudiTable.scan`, `changes` and `lookup`.

    Attributes:
        name: what the totals call the reader.
        meaning: what a condition means to it.
        refuses_lost: whether it refuses a snapshot whose files are gone. Others show what is left.
    """

    name, meaning, refuses_lost = "scan", TUPLES, True

    def ask(self, asked, question):
        return asked.spelled(self.rows(asked, question), question)

    def rows(self, asked, question):
        table = HudiTable.open(asked.path)
        if question.keys is not None:
            return table.lookup(record_keys(asked.model.shape, question.keys), question.columns)
        return self.of(self.scan(asked, question))

    def scan(self, asked, question):
        table = HudiTable.open(asked.path)
        if question.keys is not None:
            raise UnaskedError
        if question.since is not None:
            ends, feed = (asked.since(question), asked.until(question)), question.feed or {}
            return table.changes(*ends, columns=question.columns, where=question.where, **feed)
        return table.scan(question.columns, question.where, asked.as_of(question))

    def of(self, scan):
        return scan.to_arrow()


class Batches(Scan):
    """`Scan.to_batches`."""

    name = "to_batches"

    def of(self, scan):
        return scan.to_batches().read_all()


class Splits(Scan):
    """`Scan.splits`, as other processes get them."""

    name = "splits"

    def of(self, scan):
        found = [pickle.loads(pickle.dumps(split)) for split in scan.splits()]
        parts = [piece for split in found for piece in (split.read() if hasattr(split, "read") else [split.to_arrow()])]
        return [row for part in parts for row in part.to_pylist()]


class Count(Scan):
    """`Scan.count`: as many rows as the model has."""

    name = "count"

    def ask(self, asked, question):
        if question.feed is not None:
            raise UnaskedError
        counted = self.scan(asked, question).count()
        expected = asked.model.answer(question, self.meaning)
        return expected if counted == len(expected) else [("rows counted", counted)]


class Dataset(Scan):
    """`Scan.to_dataset`: the columns are chosen by Arrow."""

    name = "to_dataset"

    def rows(self, asked, question):
        if question.since is not None or question.keys is not None:
            raise UnaskedError
        table = HudiTable.open(asked.path)
        dataset = table.scan(None, question.where, asked.as_of(question)).to_dataset()
        return dataset.to_table(columns=list(asked.names(question)))


class DuckDB(Scan):
    """`Scan.to_duckdb`: columns and condition are DuckDB's."""

    name, meaning = "DuckDB", SQL

    def rows(self, asked, question):
        import duckdb

        if question.since is not None or question.keys is not None:
            raise UnaskedError
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone='UTC'")
            HudiTable.open(asked.path).scan(as_of=asked.as_of(question)).to_duckdb(connection)
            names = ", ".join(f'"{name}"' for name in asked.names(question))
            where = as_sql(question.where, asked.state(question).kinds, DUCKDB)
            return connection.sql(f"SELECT {names} FROM t WHERE {where}").to_arrow_table()


class Polars(Scan):
    """`scan_hudi`: columns and condition are Polars'."""

    name, meaning = "Polars", SQL

    def rows(self, asked, question):
        if question.since is not None or question.keys is not None:
            raise UnaskedError
        frame = scan_hudi(HudiTable.open(asked.path).scan(as_of=asked.as_of(question)))
        if question.where is not None:
            frame = frame.filter(as_polars(question.where, asked.state(question).kinds))
        return frame.select(list(asked.names(question))).collect().to_arrow()


def as_polars(where, kinds):
    """A condition as an expression of Polars."""
    import polars as pl

    def literal(value, name):
        kind = KINDS[kinds[name]].type if name in kinds else None
        if kind is not None and pa.types.is_floating(kind):
            return pl.lit(value, dtype=pl.Float32 if kind == pa.float32() else pl.Float64)
        return pl.lit(value)

    def term(name, operator, value):
        column, _, inner = name.partition(".")
        found = pl.col(column).struct.field(inner) if inner else pl.col(column)
        if operator in ("in", "not in"):
            some = [one for one in value if one is not None]
            if operator == "not in" and len(some) < len(value):
                return pl.lit(False)
            if not some:
                return pl.lit(operator == "not in")
            among = pl.concat_list([literal(one, name) for one in some])
            is_in = found.is_in(some) if not pa.types.is_decimal(kind_of(name, kinds)) else found.is_in(among)
            return is_in if operator == "in" else ~is_in
        if value is None:
            return pl.lit(False)
        compared = literal(value, name)
        return {
            "=": lambda: found == compared,
            "!=": lambda: found != compared,
            "<": lambda: found < compared,
            "<=": lambda: found <= compared,
            ">": lambda: found > compared,
            ">=": lambda: found >= compared,
        }[operator]()

    groups = [pl.all_horizontal([term(*one) for one in group]) for group in where]
    return pl.any_horizontal(groups)


def kind_of(name, kinds):
    """The type of a column or of a field of a struct."""
    column, _, inner = name.partition(".")
    kind = KINDS[kinds[column]].type
    return kind.field(inner).type if inner else kind


class HudiRs(Scan):
    """hudi-rs: whole snapshots, and conditions of one column of numbers or text."""

    name, meaning, refuses_lost = "hudi-rs", TOTAL, False

    def rows(self, asked, question):
        import hudi

        if question.since is not None or question.keys is not None:
            raise UnaskedError
        options = hudi.HudiReadOptions(projection=list(asked.names(question)))
        if question.where is not None:
            options = options.with_filters(self._filters(question.where, asked.state(question).kinds))
        if question.as_of is not None:
            options = options.with_as_of_timestamp(asked.as_of(question))
        batches = hudi.HudiTableBuilder.from_base_uri(asked.path).build().read(options)
        return pa.Table.from_batches([pa.record_batch(batch) for batch in batches]) if batches else []

    def _filters(self, where, kinds):
        if len(where) > 1:
            raise UnaskedError
        return [self._filter(term, kinds) for term in where[0]]

    def _filter(self, term, kinds):
        name, operator, value = term
        if operator in ("in", "not in") or value is None or kinds.get(name) not in ("int", "long", "text", "double"):
            raise UnaskedError
        if isinstance(value, float) and kinds[name] != "double":
            raise UnaskedError  # it takes the text for an integer
        return (name, operator, str(value))


def as_expressions(asked, question):
    """The columns, in Spark's SQL; times as numbers, for Python's Spark cannot collect one of the year 1."""
    names, kinds = asked.names(question), asked.state(question).kinds
    return [f"unix_micros(`{name}`) AS `{name}`" if kinds[name] == "time" else f"`{name}`" for name in names]


class SparkReader(Scan):
    """`read_hudi`: the condition is given to it, as tuples.

    Args:
        spark: the session.
    """

    name = "read_hudi"

    def __init__(self, spark):
        self._spark = spark

    def frame(self, asked, question, where=None):
        from hudistream import read_hudi

        if question.keys is not None or question.feed is not None:
            raise UnaskedError
        given = {"as_of": asked.as_of(question)} if question.as_of is not None else {}
        if question.since is not None:
            given |= {"since": asked.since(question), "until": asked.until(question)}
        return read_hudi(self._spark, asked.path, where=where, **given)

    def rows(self, asked, question):
        return self.collected(self.frame(asked, question, question.where), asked, question)

    def collected(self, frame, asked, question):
        return [row.asDict(recursive=True) for row in frame.selectExpr(*as_expressions(asked, question)).collect()]


class SparkFilter(SparkReader):
    """`read_hudi`, and Spark's own condition on the DataFrame."""

    name, meaning = "read_hudi, filtered", SQL

    def rows(self, asked, question):
        if question.where is None:
            raise UnaskedError
        frame = self.frame(asked, question)
        where = as_sql(question.where, asked.state(question).kinds, SPARK)
        return self.collected(frame.where(where), asked, question)


class RealHudi(Scan):
    """Hudi's own reader of Spark: snapshots, and ranges of commits.

    Args:
        hudi: its process (`oracles.hudi.Hudi`).
        version: which Hudi it is.
        skips: whether it reads by the metadata table and skips by statistics of columns.
    """

    meaning, refuses_lost = SQL, False

    def __init__(self, hudi, version, *, skips):
        self._hudi, self.version, self._skips = hudi, version, skips
        self.name = f"Hudi {version}, data skipping {'on' if skips else 'off'}"

    def rows(self, asked, question):
        if not self._is_asked(asked, question):
            raise UnaskedError
        switch = str(self._skips).lower()
        options = {"hoodie.metadata.enable": switch, "hoodie.enable.data.skipping": switch}
        options |= self._times(asked, question)
        kinds = asked.state(question).kinds
        where = None if question.where is None else as_sql(question.where, kinds, SPARK)
        return self._hudi.read(asked.path, options, as_expressions(asked, question), where)

    def _is_asked(self, asked, question):
        if question.feed is not None or question.keys is not None or (self._skips and question.where is None):
            return False
        if question.since is not None and not asks_range(asked.model.shape):
            return False
        return not (self.version.startswith("1.0") and asked.version() > NEW_TIMELINE)

    def _times(self, asked, question):
        if question.as_of is not None:
            return {"as.of.instant": asked.as_of(question)}
        if question.since is None:
            return {}
        kind, read = {"hoodie.datasource.query.type": "incremental"}, "hoodie.datasource.read"
        begin = "000" if question.since == 0 else asked.since(question)
        if question.since and self.version.startswith("1.0") and asked.version() == NEW_TIMELINE:
            begin = str(int(begin) + 1)  # there 1.0.2 takes a range to include its begin
        end = {f"{read}.end.instanttime": asked.until(question)} if question.until is not None else {}
        return {**kind, f"{read}.begin.instanttime": begin, **end}


def asks_range(shape):
    """Whether Hudi answers a range as we do.

    Of log files it merges only those of the range: a late record is shown that lost to an older one. Rows without meta
    columns do not say which commit wrote them.
    """
    return not shape.virtual and (not shape.merge_on_read or shape.merging == "commit")


PLAIN = (Scan(), Batches(), Splits(), Count(), Dataset(), DuckDB(), Polars(), HudiRs())
__all__ = ["KEY", "PLAIN", "Asked", "RealHudi", "SparkFilter", "SparkReader", "UnaskedError"]
