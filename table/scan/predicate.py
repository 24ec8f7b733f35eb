"""The condition of a scan: an Arrow expression, and the record keys that it compares for equality (pure).

A condition is either a ``pyarrow.compute.Expression``, or the lists of tuples that pyarrow, pandas and delta-rs take.
Arrow simplifies a condition under a guarantee, such as ``day == "2024-01-01"``. This decides whether a partition can
hold a row, and whether a condition requires one key. An expression's text alone decides nothing.
"""

import ast
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timezone
from decimal import Decimal, InvalidOperation
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from table.columns.near_name import did_you_mean
from table.errors import InvalidConfigError
from table.scan.exact_values import exact_values
from table.scan.moments import moment_of
from table.schema.avro_schema import without_meta_columns

Where = Any  # pc.Expression | Sequence[tuple] | Sequence[Sequence[tuple]]

_COMPARED = {"=": eq, "==": eq, "!=": ne, "<": lt, ">": gt, "<=": le, ">=": ge}
_OPERATORS = (*_COMPARED, "in", "not in")
_EQUAL = ("=", "==", "!=")
_NOWHERE = LocalFileSystem()  # fragments need a file system; it is never used
_TEXTS = re.compile(r'"(?:[^"\\]|\\.)*"')
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


def parse_where(where: Where, schema: pa.Schema, key_columns: Sequence[str] = (), zone: str = "UTC") -> Predicate:
    """Parses a user's condition.

    Args:
        where: an expression; or tuples ``(column, operator, value)``, which all must be true; or a list of such lists,
            of which one must be true. Operators: ``= == != < > <= >= in``, ``not in``. A field of a struct is
            ``column.field``. Text that is compared to a date, a time or a number is converted. As in SQL, a comparison
            with a null is true for no row: null differs from nothing, and ``not in`` a list with a null finds nothing.
        schema: the table's columns (Arrow), meta columns included.
        key_columns: columns that hold the record key, as text or as a whole number.
        zone: the table's, ``UTC`` or ``LOCAL``: of times in tuples that name none.

    Raises:
        InvalidConfigError: a column is not in the table, or a value cannot be compared to it.
    """
    if isinstance(where, pc.Expression):
        if "FieldPath(" in _TEXTS.sub("", _text_of(where)):
            raise InvalidConfigError(f"where={where}: it names a column by its place: name it, as with pc.field('id')")
        keys = _keys_of_expression(where, schema, key_columns)
        return _bound(where, schema, keys)
    typed = typed_terms(where, schema, zone)
    try:
        expression = _expression_of(typed, schema)
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
        return where & _expression_of([list(terms)])
    return [[*group, *terms] for group in _groups_of(where)]


def typed_terms(where: Where, schema: pa.Schema, zone: str = "UTC") -> list[list[tuple[str, str, Any]]]:
    """Lists of terms with values of the columns' types and without nulls. All terms of at least one list must be true.

    Args:
        where: tuples, or lists of tuples; see `parse_where`.
        schema: the table's columns (Arrow), meta columns included.
        zone: as in `parse_where`.

    Raises:
        InvalidConfigError: as `parse_where`.
    """
    return [[_typed(term, schema, zone) for term in group] for group in _groups_of(where)]


def find_column(name: str, schema: pa.Schema) -> tuple[tuple[str, ...], pa.DataType] | None:
    """The path and the type (Arrow) of a column, or of a field of a struct (``column.field``); None: there is none.

    Args:
        name: as users write it; a column whose name has the dots comes first.
        schema: the table's columns (Arrow).
    """
    if name in schema.names:
        return (name,), schema.field(name).type
    for at in (at for at, character in enumerate(name) if character == "."):
        kind = schema.field(name[:at]).type if name[:at] in schema.names else None
        inner = find_column(name[at + 1 :], pa.schema(list(kind))) if kind and pa.types.is_struct(kind) else None
        if inner is not None:
            return (name[:at], *inner[0]), inner[1]
    return None


def _expression_of(groups: Sequence[Sequence[tuple[str, str, Any]]], schema: pa.Schema | None = None) -> pc.Expression:
    """Terms as an expression, with nulls as in SQL.

    Args:
        groups: terms, as `typed_terms` gives them.
        schema: the table's columns (Arrow); None: no term names a field of a struct.
    """

    def compared(name: str, operator: str, value: Any) -> pc.Expression:
        column = find_column(name, schema) if schema is not None else None
        return _compared(ds.field(column[0] if column is not None and len(column[0]) > 1 else name), operator, value)

    return reduce(or_, [reduce(and_, [compared(*term) for term in group]) for group in groups])


def _compared(field: pc.Expression, operator: str, value: Any) -> pc.Expression:
    if operator == "in":
        return field.isin(value)
    if operator == "not in":
        return ~field.isin(value) & field.is_valid() if len(value) else pc.scalar(True)
    return _COMPARED[operator](field, value)


def _bound(expression: pc.Expression, schema: pa.Schema, keys: pa.Array | None) -> Predicate:
    try:
        # some kernels refuse types only when they get a row
        pa.Table.from_pylist([{}], schema).filter(expression)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidConfigError(
            f"where={expression}: {reason}; the table has the columns {', '.join(schema.names)}"
        ) from error
    text = _text_of(expression)
    named = frozenset(name for name in schema.names if not text or name in text)
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


def _typed(term: tuple[str, str, Any], schema: pa.Schema, zone: str) -> tuple[str, str, Any]:
    name, operator, value = term
    column = find_column(name, schema)
    if column is None:
        raise InvalidConfigError(
            f"where={term!r}: the table has no column {name!r}; it has "
            f"{', '.join(without_meta_columns(schema).names) or 'none yet'}"
            f"{did_you_mean(name, schema.names)}"
        )
    kind = column[1]
    nothing = (name, "in", pa.array([], kind))
    if operator not in ("in", "not in"):
        if _is_null(value):
            return nothing
        value = _plain(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            operator, value = _of_number(operator, value, kind)
        return name, operator, _value(value, kind, term, zone)
    if isinstance(value, str | Iterator) or not isinstance(value, Iterable):  # an iterator would serve one look alone
        raise InvalidConfigError(f"where={term!r}: {operator!r} takes a list of values")
    given = list(value)
    if operator == "not in" and any(map(_is_null, given)):
        return nothing
    values = [_value(one, kind, term, zone) for one in given if not _is_null(one)]
    try:
        held = pa.array([one for value in values for one in exact_values(value, kind)], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidConfigError(f"where={term!r}: a value is no {kind}, the type of the column: {error}") from error
    if operator == "not in" and given and not len(held):  # none of them can be there: true for all but nulls
        return name, operator, pa.array([None], kind)
    return name, operator, held


def _is_null(value: Any) -> bool:
    is_of_pandas = type(value).__name__ in ("NaTType", "NAType")
    return value is None or is_of_pandas or (isinstance(value, pa.Scalar) and not value.is_valid)


def _ends_of(kind: pa.DataType) -> tuple[int, int]:
    """The least and the greatest value of a type of integers."""
    bits = kind.bit_width
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pa.types.is_signed_integer(kind) else (0, 2**bits - 1)


def _is_beyond(value: Any, kind: pa.DataType) -> bool:
    """Whether a number is none that a column of integers can have, because it is too small or too great."""
    if not pa.types.is_integer(kind) or not isinstance(value, int | float):
        return False
    least, greatest = _ends_of(kind)
    return not least <= value <= greatest


def _of_number(operator: str, value: float, kind: pa.DataType) -> tuple[str, Any]:
    """Operator and value of an equivalent comparison with a column of numbers, which Arrow evaluates exactly."""
    if pa.types.is_integer(kind):
        return _of_integers(operator, value, kind)
    if pa.types.is_floating(kind) and isinstance(value, int):
        return _of_floats(operator, value, kind)
    return operator, value


def _of_integers(operator: str, value: float, kind: pa.DataType) -> tuple[str, Any]:
    """As `_of_number`, with a column of integers."""
    if isinstance(value, float) and math.isfinite(value) and not value.is_integer() and operator in _EQUAL:
        return ("in", pa.array([], kind)) if operator != "!=" else (">=", _ends_of(kind)[0])
    if not _is_beyond(value, kind):
        return operator, _whole(operator, value) if isinstance(value, float) else value
    holds = {"<": value > 0, "<=": value > 0, ">": value < 0, ">=": value < 0, "!=": True}  # NaN: neither
    return (">=", _ends_of(kind)[0]) if holds.get(operator, False) else ("in", pa.array([], kind))


def _of_floats(operator: str, value: int, kind: pa.DataType) -> tuple[str, Any]:
    """As `_of_number`, with a column of floats, which may not have the whole number."""
    exact = exact_values(value, kind)
    if exact:
        return operator, exact[0]
    if operator in _EQUAL:
        return ("not in", pa.array([None], kind)) if operator == "!=" else ("in", pa.array([], kind))
    return ">" if operator in (">", ">=") else "<=", _next_below(value, kind)


def _next_below(value: int, kind: pa.DataType) -> float:
    """The greatest float of a type that is less than a whole number."""
    try:
        near = float(value)
    except OverflowError:
        near = math.inf if value > 0 else -math.inf
    with np.errstate(over="ignore"):
        found = np.float32(near) if kind == pa.float32() else np.float64(near)
    return float(found if float(found) < value else np.nextafter(found, found.dtype.type(-math.inf)))


def _plain(value: Any) -> Any:
    """A number of numpy or Arrow as a Python number: these compare exactly."""
    if isinstance(value, np.integer | np.floating | np.bool_):
        return value.item()
    is_number = isinstance(value, pa.Scalar) and (pa.types.is_primitive(value.type) or pa.types.is_decimal(value.type))
    return value.as_py() if is_number and not pa.types.is_temporal(value.type) else value


def _whole(operator: str, value: float) -> int | float:
    """An equivalent whole number for a comparison with whole numbers: Arrow would compare floats and lose precision."""
    if value.is_integer() or operator in ("<", ">="):
        return math.ceil(value)
    return math.floor(value) if operator in (">", "<=") else value


def _value(value: Any, kind: pa.DataType, term: object, zone: str) -> Any:
    """Converts a value to the column's type for a comparison, text included."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return _moment(value, kind, term, zone)
    if pa.types.is_decimal(kind):
        return _decimal(value, kind, term)
    if pa.types.is_date(kind) and isinstance(value, np.datetime64):
        day = value.astype("datetime64[D]")
        return day.item() if day == value else value
    if not isinstance(value, str) or not (pa.types.is_temporal(kind) or pa.types.is_primitive(kind)):
        return value
    try:
        return pa.scalar(value).cast(kind).as_py()
    except (pa.ArrowException, ValueError) as error:
        raise InvalidConfigError(f"where={term!r}: {value!r} is no {kind}, the type of the column") from error


def _moment(value: Any, kind: pa.DataType, term: object, zone: str) -> Any:
    """A time with a zone: what names none is in the table's zone, as in `as_of`."""
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    finest = getattr(value, "nanosecond", 0)
    if isinstance(value, np.datetime64):
        whole = value.astype("datetime64[us]")
        finest, value = whole != value, whole.item()
    if finest:
        raise InvalidConfigError(f"where={term!r}: the column has microseconds, and the value is between two of them")
    if not isinstance(value, (str, date)):
        return value
    try:
        return moment_of(value, zone).astimezone(timezone.utc)  # a list of times has one zone
    except (ValueError, OverflowError) as error:
        raise InvalidConfigError(f"where={term!r}: {value!r} is no {kind}, the type of the column") from error


def _decimal(value: Any, kind: pa.DataType, term: object) -> Any:
    """A whole number or a text as a decimal: Arrow would give a whole number 19 digits, which a column may not have."""
    if isinstance(value, bool) or not isinstance(value, (int, str, Decimal)):
        return value
    try:
        number = Decimal(value)
    except InvalidOperation as error:
        raise InvalidConfigError(f"where={term!r}: {value!r} is no {kind}, the type of the column") from error
    if not number.is_finite():
        raise InvalidConfigError(f"where={term!r}: {value!r} is no {kind}, the type of the column")
    return number


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
    values = value.to_pylist() if isinstance(value, pa.Array) else [value]
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
