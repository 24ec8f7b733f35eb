"""Conditions as SQL, of Spark and of DuckDB (pure)."""

import math
from decimal import Decimal

import pyarrow as pa

from .kinds import EPOCH, KINDS

SPARK, DUCKDB = "spark", "duckdb"
FLOATS = {pa.float32(): "FLOAT", pa.float64(): "DOUBLE"}


def as_sql(where, kinds, dialect):
    """A condition as SQL; all rows for None."""
    if where is None:
        return "true"
    return " OR ".join("(" + " AND ".join(_term(term, kinds, dialect) for term in group) + ")" for group in where)


def _term(term, kinds, dialect):
    name, operator, value = term
    column, _, inner = name.partition(".")
    quote = "`" if dialect == SPARK else '"'
    spelled = ".".join(f"{quote}{part}{quote}" for part in ([column, inner] if inner else [column]))
    kind = KINDS[kinds[column]].type
    kind = kind.field(inner).type if inner else kind
    if operator in ("in", "not in"):
        if not value:
            return "true" if operator == "not in" else "false"
        return f"{spelled} {operator.upper()} ({', '.join(literal(one, kind, dialect) for one in value)})"
    return f"{spelled} {'<>' if operator == '!=' else operator} {literal(value, kind, dialect)}"


def literal(value, kind, dialect):
    """A value as a literal that the optimizer knows at once."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        kind = kind if pa.types.is_floating(kind) else pa.float64()
        text = "NaN" if math.isnan(value) else repr(value).replace("inf", "Infinity")
        return f"CAST('{text}' AS {FLOATS[kind]})"
    if isinstance(value, int):
        return f"CAST('{value}' AS {'INT' if kind == pa.int32() else 'BIGINT'})"
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS DECIMAL({kind.precision}, {kind.scale}))"
    if pa.types.is_timestamp(kind):
        micros = (value - EPOCH) // (EPOCH.resolution)
        return f"timestamp_micros({micros})" if dialect == SPARK else f"make_timestamptz({micros})"
    if pa.types.is_date(kind):
        return f"DATE '{value.isoformat()}'"
    return _text(value, dialect)


def _text(value, dialect):
    if dialect == SPARK:
        made = f"X'{(value if isinstance(value, bytes) else value.encode()).hex()}'"
        return made if isinstance(value, bytes) else f"CAST({made} AS STRING)"
    if isinstance(value, bytes):
        return "'" + "".join(f"\\x{byte:02x}" for byte in value) + "'::BLOB"
    return "'" + value.replace("'", "''") + "'"
