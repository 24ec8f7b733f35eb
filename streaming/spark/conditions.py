"""Translates the condition of a scan to Spark, so that Spark pushes it down into the files."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

from streaming.spark.same_comparison import compares_alike
from table.keys.sql_text import quote_name
from table.scan.change_range import ChangeRange
from table.scan.predicate import Where, typed_terms
from table.schema.avro_schema import COMMIT_TIME

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def spark_condition(
    where: Where | None, changes: ChangeRange | None, schema: pa.Schema, zone: str = "UTC"
) -> Column | None:
    """The condition of a scan as a Spark column.

    Args:
        where: a condition that `table.scan.predicate.parse_where` has accepted; None means all rows.
        changes: the commits whose rows are wanted; None means all.
        schema: the table's columns (Arrow), meta columns included.
        zone: the table's, of times that name none.

    Returns:
        None where the condition is an Arrow expression, or where Spark may evaluate it differently from Arrow.
    """
    condition = F.lit(True)
    if where is not None:
        if isinstance(where, pc.Expression):
            return None
        groups = [
            [
                (name, operator, value.to_pylist() if isinstance(value, pa.Array) else value)
                for name, operator, value in group
            ]
            for group in typed_terms(where, schema, zone)
        ]
        for name, *rest in (term for group in groups for term in group):
            if name not in schema.names or not compares_alike(schema.field(name).type, *rest):
                return None  # a field of a struct, or a comparison that Spark may see in another way
        condition = reduce(or_, [reduce(and_, [_compared(*term) for term in group]) for group in groups])
    return condition & _written_in(changes) if changes is not None else condition


def _written_in(changes: ChangeRange) -> Column:
    written = F.col(COMMIT_TIME)
    if changes.times is not None:
        return _is_in(written, sorted(changes.times))
    return (written > changes.since) & (written <= changes.until)


def _compared(name: str, operator: str, value: Any) -> Column:
    column = F.col(quote_name(name))
    if operator == "in":
        return _is_in(column, value)
    if operator == "not in":
        return ~_is_in(column, value)
    other = _literal(value)
    compared: Column = {
        "=": column == other,
        "==": column == other,
        "!=": column != other,
        "<": column < other,
        ">": column > other,
        "<=": column <= other,
        ">=": column >= other,
    }[operator]
    return compared


def _is_in(column: Column, values: Sequence[Any]) -> Column:
    return column.isin([_literal(value) for value in values]) if len(values) else F.lit(False)


def _literal(value: Any) -> Column:
    """A literal. PySpark would take dates and times to the JVM by its old classes, which have another calendar."""
    if isinstance(value, datetime):
        return F.timestamp_micros(F.lit((value - _EPOCH) // timedelta(microseconds=1)))
    return F.lit(value.isoformat()).cast("date") if isinstance(value, date) else F.lit(value)
