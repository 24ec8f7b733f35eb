"""The condition of a scan: an Arrow expression, and the record keys that it compares for equality (pure).

A condition is either a ``pyarrow.compute.Expression``, or the lists of tuples that pyarrow, pandas and delta-rs take.
Arrow simplifies a condition under a guarantee, such as ``day == "2024-01-01"``. This decides whether a partition can
hold a row, and whether a condition requires one key. An expression's text alone decides nothing.
"""

import ast
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from table.columns.near_name import did_you_mean
from table.errors import InvalidConfigError

Where = Any  # pc.Expression | Sequence[tuple] | Sequence[Sequence[tuple]]

_OPERATORS = ("=", "==", "!=", "<", ">", "<=", ">=", "in", "not in")
_NOWHERE = LocalFileSystem()  # fragments need a file system; it is never used
_EQUALS_TEXT = re.compile(r'\((?P<name>[^()"]+) == (?P<text>"(?:[^"\\]|\\.)*"|-?\d+)\)')


@dataclass(frozen=True, eq=False)
class Predicate:
    """A condition on rows, bound to the columns of a table.

    Attributes:
        expression: true for the rows that are wanted.
        columns: names of the columns that it reads; may contain more.
        keys: the only record keys that a wanted row can have (string array without nulls, no key twice); None where
            the condition does not restrict keys.
    """

    expression: pc.Expression
    columns: frozenset[str]
    keys: pa.Array | None = None


def parse_where(where: Where, schema: pa.Schema, key_columns: Sequence[str] = ()) -> Predicate:
    """Parses a user's condition.

    Args:
        where: an expression; or tuples ``(column, operator, value)``, which all must be true; or a list of such lists,
            of which one must be true. Operators: ``= == != < > <= >= in``, ``not in``. Text that is compared to a date,
            a time or a number is converted.
        schema: the table's columns (Arrow), meta columns included.
        key_columns: columns that hold the record key, as text or as a whole number.

    Raises:
        InvalidConfigError: a column is not in the table, or a value cannot be compared to it.
    """
    if isinstance(where, pc.Expression):
        keys = _keys_of_expression(where, schema, key_columns)
        return _bound(where, schema, keys)
    typed = typed_terms(where, schema)
    try:
        expression = pq.filters_to_expression(typed)
    except (ValueError, TypeError, pa.ArrowException) as error:
        raise InvalidConfigError(f"where={where!r}: {error}") from error
    return _bound(expression, schema, _keys_of_groups(typed, key_columns))


def with_terms(where: Where | None, terms: Sequence[tuple[str, str, Any]]) -> Where | None:
    """Adds terms to a condition.

    Args:
        where: as `parse_where`; None means all rows.
        terms: tuples, which all must be true.

    Raises:
        InvalidConfigError: `where` has an unknown form.
    """
    if not terms:
        return where
    if where is None:
        return list(terms)
    if isinstance(where, pc.Expression):
        return where & pq.filters_to_expression(list(terms))
    return [[*group, *terms] for group in _groups_of(where)]


def typed_terms(where: Where, schema: pa.Schema) -> list[list[tuple[str, str, Any]]]:
    """Lists of terms with values of the columns' types. All terms of at least one list must be true.

    Args:
        where: tuples, or lists of tuples; see `parse_where`.
        schema: the table's columns (Arrow), meta columns included.

    Raises:
        InvalidConfigError: as `parse_where`.
    """
    return [[_typed(term, schema) for term in group] for group in _groups_of(where)]


def _bound(expression: pc.Expression, schema: pa.Schema, keys: pa.Array | None) -> Predicate:
    try:
        ds.dataset(schema.empty_table()).scanner(filter=expression)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidConfigError(
            f"where={expression}: {reason}; the table has the columns {', '.join(schema.names)}"
        ) from error
    text = _text_of(expression)
    by_place = not text or "FieldPath(" in text
    named = frozenset(name for name in schema.names if by_place or name in text)
    return Predicate(expression, named, keys)


def _groups_of(where: Any) -> list[list[tuple[str, str, Any]]]:
    """The condition as a list of lists of tuples."""
    if isinstance(where, Sequence) and not isinstance(where, (str, bytes)) and len(where):
        groups = [list(where)] if all(_is_term(term) for term in where) else [list(group) for group in where]
        if all(group and all(_is_term(term) for term in group) for group in groups):
            return groups
    raise InvalidConfigError(
        f"where={where!r}: give a pyarrow expression, or tuples (column, operator, value) with one of the operators "
        f"{', '.join(_OPERATORS)}"
    )


def _is_term(term: Any) -> bool:
    return (
        isinstance(term, tuple)
        and len(term) == 3
        and isinstance(term[0], str)
        and isinstance(term[1], str)
        and term[1] in _OPERATORS
    )


def _typed(term: tuple[str, str, Any], schema: pa.Schema) -> tuple[str, str, Any]:
    name, operator, value = term
    if name not in schema.names:
        raise InvalidConfigError(
            f"where={term!r}: the table has no column {name!r}; it has {', '.join(schema.names)}"
            f"{did_you_mean(name, schema.names)}"
        )
    kind = schema.field(name).type
    if operator not in ("in", "not in"):
        if pa.types.is_integer(kind) and isinstance(value, float) and math.isfinite(value):
            return name, operator, _whole(operator, value)
        return name, operator, _value(value, kind, term)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidConfigError(f"where={term!r}: {operator!r} takes a list of values")
    values = [_value(one, kind, term) for one in value]
    return name, operator, values or pa.array([], kind)


def _whole(operator: str, value: float) -> int | float:
    """An equivalent whole number for a comparison with whole numbers: Arrow would compare floats and lose precision."""
    if value.is_integer() or operator in ("<", ">="):
        return math.ceil(value)
    return math.floor(value) if operator in (">", "<=") else value


def _value(value: Any, kind: pa.DataType, term: object) -> Any:
    """Converts a value to the column's type for a comparison, text included."""
    if pa.types.is_decimal(kind):
        return _decimal(value, kind, term)
    if not isinstance(value, str) or not (pa.types.is_temporal(kind) or pa.types.is_primitive(kind)):
        return value
    try:
        return pa.scalar(value).cast(kind).as_py()
    except (pa.ArrowException, ValueError) as error:
        raise InvalidConfigError(f"where={term!r}: {value!r} is no {kind}, the type of the column") from error


def _decimal(value: Any, kind: pa.DataType, term: object) -> Any:
    """A whole number or a text as a decimal: Arrow would give a whole number 19 digits, which a column may not have."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return value
    try:
        return Decimal(value)
    except InvalidOperation as error:
        raise InvalidConfigError(f"where={term!r}: {value!r} is no {kind}, the type of the column") from error


def _keys_of_groups(groups: Iterable[Iterable[tuple[str, str, Any]]], key_columns: Sequence[str]) -> pa.Array | None:
    keys: dict[str, None] = {}
    for group in groups:
        found = next((keys_of for term in group if (keys_of := _keys_of_term(term, key_columns)) is not None), None)
        if found is None:
            return None
        keys.update(dict.fromkeys(found))
    return pa.array(list(keys), pa.string())


def _keys_of_term(term: tuple[str, str, Any], key_columns: Sequence[str]) -> list[str] | None:
    name, operator, value = term
    if name not in key_columns or operator not in ("=", "==", "in"):
        return None
    values = list(value) if operator == "in" else [value]
    if not all(isinstance(one, (str, int)) and not isinstance(one, bool) for one in values):
        return None
    return [str(one) for one in values]


def _text_of(expression: pc.Expression) -> str:
    """The text of an expression; "" where it holds bytes that are no text."""
    try:
        return str(expression)
    except UnicodeDecodeError:
        return ""


def _keys_of_expression(where: pc.Expression, schema: pa.Schema, key_columns: Sequence[str]) -> pa.Array | None:
    """The key that an expression requires. Its text proposes a key; Arrow checks that no other key can match."""
    for found in _EQUALS_TEXT.finditer(_text_of(where)):
        name, text = found["name"], found["text"]
        if name not in key_columns:
            continue
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            continue
        field = ds.field(name)
        others = [field < value, field > value, field.is_null()]
        try:
            if not which_may_hold(where, others, schema):
                return pa.array([str(value)], pa.string())
        except (pa.ArrowException, TypeError, ValueError):
            continue
    return None


def which_may_hold(condition: pc.Expression, guarantees: Sequence[pc.Expression], schema: pa.Schema) -> list[int]:
    """Indexes of the guarantees under which a condition can be true for a row.

    Args:
        condition: bound to the schema.
        guarantees: expressions, each of which is true for a set of rows.
        schema: the columns (Arrow).
    """
    parquet = ds.ParquetFileFormat()
    fragments = [
        parquet.make_fragment(str(number), _NOWHERE, partition_expression=known)
        for number, known in enumerate(guarantees)
    ]
    dataset = ds.FileSystemDataset(fragments, schema, parquet, _NOWHERE)
    return sorted(int(fragment.path) for fragment in dataset.get_fragments(filter=condition))
