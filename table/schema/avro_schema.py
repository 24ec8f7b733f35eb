"""Converts Arrow and Avro schemas, adds the five ``_hoodie_`` meta columns, and checks a batch's columns (pure).

Hudi keeps the Avro form in ``extraMetadata.schema`` and in Parquet footers (AvroConversionUtils, HoodieAvroUtils):
record ``<table>_record`` in namespace ``hoodie.<table>``.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from table.columns.storable import no_fields_problem
from table.errors import CorruptFileError, SchemaMismatchError

COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME = META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
DELETE_MARKER = "_hoodie_is_deleted"  # a boolean; a row where it is true deletes its key
META_PREFIX = "_hoodie_"  # of columns that are Hudi's own
RESERVED_PREFIX = "_hudistream_"  # the sink's own columns in rows sent to tasks and in put-aside rows
NO_ROWS = {b"hudistream.rows": b"0"}  # metadata of the schema of a batch that is known to have no rows
MOST_LEVELS, MOST_PARQUET_LEVELS = 63, 98  # that Arrow's IPC, and its reader of Parquet, read
META_FIELDS = tuple(pa.field(name, pa.string()) for name in META_COLUMNS)

_AVRO_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
_TO_AVRO: Mapping[pa.DataType, Any] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
    # Flink makes tables with milliseconds
    pa.timestamp("ms", "UTC"): {"type": "long", "logicalType": "timestamp-millis"},
    pa.timestamp("ms"): {"type": "long", "logicalType": "local-timestamp-millis"},
}
_FROM_AVRO = {avro: arrow for arrow, avro in _TO_AVRO.items() if isinstance(avro, str)}
_FROM_LOGICAL = {
    "date": pa.date32(),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "time-micros": pa.time64("us"),
    "time-millis": pa.time32("ms"),
}


def with_meta_columns(schema: pa.Schema) -> pa.Schema:
    """The five meta columns, followed by the table's columns: the schema of a base file."""
    return pa.schema([*META_FIELDS, *schema])


def without_meta_columns(schema: pa.Schema) -> pa.Schema:
    """The table's columns, without the meta columns."""
    return pa.schema([field for field in schema if field.name not in META_COLUMNS])


def avro_record_name(table_name: str) -> tuple[str, str]:
    """Avro record name and namespace of a table; characters that Avro does not allow become ``_``."""
    clean = re.sub(r"[^A-Za-z0-9_]", "_", table_name)
    if clean[:1].isdigit():
        clean = "_" + clean
    return f"{clean}_record", f"hoodie.{clean}"


def to_avro(schema: pa.Schema, table_name: str) -> dict[str, Any]:
    """Avro record schema of Arrow columns.

    Args:
        schema: columns; nullable ones become ``["null", T]`` with default null.
        table_name: name of the table, from which the record's name follows.

    Raises:
        SchemaMismatchError: names the column whose type or name cannot be stored.
    """
    name, namespace = avro_record_name(table_name)
    return _avro_record(list(schema), name, namespace, "")


def _avro_record(columns: list[pa.Field], name: str, namespace: str, inside: str) -> dict[str, Any]:
    fields = [_avro_field(column, f"{namespace}.{name}", inside) for column in columns]
    return {"type": "record", "name": name, "namespace": namespace, "fields": fields}


def _avro_field(column: pa.Field, namespace: str, inside: str) -> dict[str, Any]:
    full_name = f"{inside}.{column.name}" if inside else column.name
    if not _AVRO_NAME.match(column.name):
        raise SchemaMismatchError(
            f"the column name {full_name!r} cannot be stored: use letters, digits and _, with no digit first"
        )
    if column.name in META_COLUMNS and not inside:
        return {"name": column.name, "type": ["null", "string"], "doc": "", "default": None}
    avro = _avro_type(column.type, column.name, namespace, full_name)
    if column.nullable:
        return {"name": column.name, "type": ["null", avro], "default": None}
    return {"name": column.name, "type": avro}


def _avro_type(arrow: pa.DataType, name: str, namespace: str, column: str) -> Any:
    """The Avro type of an Arrow type. The column's path names records and fixed types, as in Hudi's converters."""
    if arrow in _TO_AVRO:
        return _TO_AVRO[arrow]
    if pa.types.is_decimal128(arrow):
        return {
            "type": "fixed",
            "name": "fixed",
            "namespace": f"{namespace}.{name}",
            "size": decimal_bytes(arrow.precision),
            "logicalType": "decimal",
            "precision": arrow.precision,
            "scale": arrow.scale,
        }
    if pa.types.is_struct(arrow) and arrow.num_fields:
        return _avro_record(list(arrow), name, namespace, column)
    if pa.types.is_list(arrow):
        return {"type": "array", "items": _avro_inner(arrow.value_field, name, namespace, f"{column}.element")}
    if pa.types.is_map(arrow) and pa.types.is_string(arrow.key_type):
        return {"type": "map", "values": _avro_inner(arrow.item_field, name, namespace, f"{column}.value")}
    if pa.types.is_struct(arrow):
        raise SchemaMismatchError(no_fields_problem(column))
    raise SchemaMismatchError(
        f"the column {column!r} has the type {arrow}, which cannot be stored: cast it to a type that "
        "docs/concepts/keys-and-types.md lists"
    )


def _avro_inner(field: pa.Field, name: str, namespace: str, column: str) -> Any:
    inner = _avro_type(field.type, name, namespace, column)
    return ["null", inner] if field.nullable else inner


def find_untyped(arrow: pa.DataType, path: str) -> list[str]:
    """The parts of a column that have no type of their own: Arrow's null, Spark's void.

    Args:
        arrow: type of the column.
        path: its name, with those of the columns around it.
    """
    if pa.types.is_null(arrow):
        return [path]
    if pa.types.is_struct(arrow):
        return [found for field in arrow for found in find_untyped(field.type, f"{path}.{field.name}")]
    if pa.types.is_list(arrow):
        return find_untyped(arrow.value_type, f"{path}.element")
    return find_untyped(arrow.item_type, f"{path}.value") if pa.types.is_map(arrow) else []


def untyped_problem(path: str) -> str:
    """Why a new column without a type of its own is refused."""
    return (
        f"the column {path!r} has no type of its own, as all values are null, and the table does not know it: cast it "
        "to a type, or drop it"
    )


def typed(schema: pa.Schema) -> pa.Schema:
    """The columns with text where a part has no type of its own: what a schema with such parts is compared as."""
    return pa.schema([field.with_type(_typed(field.type)) for field in schema])


def _typed(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_null(arrow):
        return pa.string()
    if pa.types.is_struct(arrow):
        return pa.struct([field.with_type(_typed(field.type)) for field in arrow])
    if pa.types.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(_typed(arrow.value_type)))
    if pa.types.is_map(arrow):
        return pa.map_(arrow.key_type, arrow.item_field.with_type(_typed(arrow.item_type)))
    return arrow


def relaxed_type(arrow: pa.DataType) -> pa.DataType:
    """The type with every part nullable, and with the inner names that lists and maps have in files."""
    if pa.types.is_struct(arrow):
        return pa.struct([pa.field(field.name, relaxed_type(field.type)) for field in arrow])
    if pa.types.is_list(arrow):
        return pa.list_(pa.field("element", relaxed_type(arrow.value_type)))
    if pa.types.is_map(arrow):
        return pa.map_(arrow.key_type, pa.field("value", relaxed_type(arrow.item_type)))
    return arrow


def relaxed(schema: pa.Schema) -> pa.Schema:
    """The columns as they are sent to tasks and written to files: every part is nullable.

    Columns that the Avro schema requires are checked row by row. A required Parquet column could not hold the row that
    breaks the rule, so the error could not name the row.
    """
    return pa.schema([pa.field(field.name, relaxed_type(field.type)) for field in schema])


def decimal_bytes(precision: int) -> int:
    """Least number of bytes of a two's complement that holds a decimal of this precision."""
    largest: int = 10**precision - 1
    return (largest.bit_length() + 1 + 7) // 8


def schema_json(schema: pa.Schema, table_name: str) -> str:
    """The Avro schema as compact JSON text, as it stands in ``extraMetadata.schema``."""
    return json.dumps(to_avro(schema, table_name), separators=(",", ":"), ensure_ascii=False)


def from_avro(text: str) -> pa.Schema:
    """Arrow columns of an Avro record schema.

    Args:
        text: JSON of a record schema, with or without meta columns.

    Returns:
        Columns in order; ``["null", T]`` is nullable. Lists have the inner name ``element``.

    Raises:
        CorruptFileError: when the text is not a record schema, or has a type that tables do not have.
    """
    try:
        record = json.loads(text)
        names: dict[str, Any] = {}
        return pa.schema([_arrow_field(field, names) for field in record["fields"]])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptFileError(f"the stored schema cannot be parsed: {error}: {text[:200]!r}") from error


def arrow_type_of(avro: Any) -> pa.DataType:
    """Arrow type of an Avro type that refers to no named type.

    Raises:
        CorruptFileError: when tables do not have this type.
    """
    try:
        return _arrow_type(avro, {})[0]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptFileError(f"the stored type is not one: {error}: {avro!r}") from error


def _arrow_field(field: Mapping[str, Any], names: dict[str, Any]) -> pa.Field:
    arrow, nullable = _arrow_type(field["type"], names)
    return pa.field(field["name"], arrow, nullable)


def _arrow_type(avro: Any, names: dict[str, Any]) -> tuple[pa.DataType, bool]:  # noqa: PLR0911
    if isinstance(avro, list):
        branches = [branch for branch in avro if branch != "null"]
        if len(branches) != 1:
            raise CorruptFileError(f"a union of several types is not supported: {avro}")
        return _arrow_type(branches[0], names)[0], len(branches) < len(avro)
    if isinstance(avro, str):
        return (_FROM_AVRO[avro] if avro in _FROM_AVRO else names[avro]), False
    kind, logical = avro["type"], avro.get("logicalType")
    if logical == "decimal":
        return pa.decimal128(avro["precision"], avro.get("scale", 0)), False
    if logical in _FROM_LOGICAL:
        return _FROM_LOGICAL[logical], False
    if kind == "record":
        arrow: pa.DataType = pa.struct([_arrow_field(field, names) for field in avro["fields"]])
        names[avro["name"]] = arrow
        return arrow, False
    if kind == "array":
        element, nullable = _arrow_type(avro["items"], names)
        return pa.list_(pa.field("element", element, nullable)), False
    if kind == "map":
        value, nullable = _arrow_type(avro["values"], names)
        return pa.map_(pa.string(), pa.field("value", value, nullable)), False
    if kind in ("fixed", "enum"):
        names[avro["name"]] = pa.string() if kind == "enum" else pa.binary(avro["size"])
        return names[avro["name"]], False
    return _arrow_type(kind, names)


def check_batch_columns(batch: pa.Schema) -> None:
    """Refuses a batch with columns that a table cannot have. Columns without a type of their own are none of them.

    Raises:
        SchemaMismatchError: for duplicate names, meta columns, and types that cannot be stored.
    """
    seen: set[str] = set()
    for name in batch.names:
        if name.lower() in META_COLUMNS or name.lower().startswith(RESERVED_PREFIX):
            raise SchemaMismatchError(
                f"the batch has the column {name!r}, a name that the table or the sink uses itself: drop it"
            )
        if name.lower() in seen:
            raise SchemaMismatchError(f"the batch has the column {name!r} twice (in any case): rename one")
        seen.add(name.lower())
    for field in batch:
        _check_fields(field.type, field.name)
    if not batch.names:
        raise SchemaMismatchError("the batch has no columns")
    to_avro(typed(batch), "check")
    for field in batch:
        _check_nesting(field)


def _check_fields(kind: pa.DataType, place: str) -> None:
    """Refuses a struct with two fields of one name in any case, at any depth: Avro has none, and Spark reads none."""
    fields = [kind.field(at) for at in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    names = [field.name.lower() for field in fields] if pa.types.is_struct(kind) else []
    twice = next((field.name for field in fields if names.count(field.name.lower()) > 1), None)
    if twice is not None:
        raise SchemaMismatchError(f"the column {place!r} has the field {twice!r} twice (in any case): rename one")
    for field in fields:
        _check_fields(field.type, f"{place}.{field.name}")


def _check_nesting(column: pa.Field) -> None:
    deep, deep_in_parquet = _levels(column.type)
    if deep > MOST_LEVELS or deep_in_parquet > MOST_PARQUET_LEVELS:
        raise SchemaMismatchError(
            f"the column {column.name!r} is nested {deep} levels deep ({deep_in_parquet} in Parquet), and readers take "
            f"{MOST_LEVELS} ({MOST_PARQUET_LEVELS}): split it into several columns, or make its inner part text"
        )


def _levels(arrow: pa.DataType) -> tuple[int, int]:
    """Levels of structs, lists and maps in Arrow and in Parquet, where a list has two, as has a map in both."""
    if pa.types.is_struct(arrow):
        inner = [_levels(field.type) for field in arrow]
        return 1 + max(level for level, _ in inner), 1 + max(level for _, level in inner)
    if pa.types.is_list(arrow):
        level, in_parquet = _levels(arrow.value_type)
        return 1 + level, 2 + in_parquet
    if pa.types.is_map(arrow):
        level, in_parquet = _levels(arrow.item_type)
        return 2 + level, 2 + in_parquet
    return 0, 0
