"""Which rows a condition is true for: as tuples mean it, as SQL engines do, and as hudi-rs does (pure)."""

from operator import eq, ge, gt, le, lt, ne

import pyarrow as pa

from .kinds import KINDS, order_of, spell

COMPARED = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
# what a condition on floats means: NaN differs from everything; NaN equals itself and is greatest; zeros differ, too
TUPLES, SQL, TOTAL = "tuples", "SQL", "total"


def holds(where, row, kinds, meaning=TUPLES):
    """Whether a row is wanted.

    Args:
        where: lists of terms ``(column, operator, value)``; None wants all rows.
        row: its values by column.
        kinds: kinds of the columns.
        meaning: `TUPLES`; `SQL` of Spark, DuckDB and Polars; `TOTAL` of hudi-rs. Lists tell zeros apart but for `SQL`.
    """
    return where is None or any(all(_true(term, row, kinds, meaning) for term in group) for group in where)


def _true(term, row, kinds, meaning):
    name, operator, value = term
    column, _, inner = name.partition(".")
    found, kind = row.get(column), KINDS[kinds[column]].type
    if inner:
        found, kind = None if found is None else found[inner], kind.field(inner).type
    if operator == "not in" and not value:
        return True
    if found is None:
        return False
    if operator in COMPARED:
        return value is not None and _compared(COMPARED[operator], found, value, meaning)
    if any(one is None for one in value) and operator == "not in":
        return False
    among = {_in_list(one, kind, meaning) for one in value if one is not None}
    return (_in_list(found, kind, meaning) in among) == (operator == "in")


def _compared(compare, found, value, meaning):
    if meaning == TUPLES or not isinstance(found, float):
        return compare(found, value)
    if meaning == TOTAL:
        return compare(order_of(found), order_of(value))
    return compare(order_of(found)[:2], order_of(value)[:2])


def _in_list(value, kind, meaning):
    if pa.types.is_integer(kind) and isinstance(value, float) and not value.is_integer():
        return repr(value)  # no integer is equal
    return spell(value + 0.0 if meaning == SQL and isinstance(value, float) else value, kind)
