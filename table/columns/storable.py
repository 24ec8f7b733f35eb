"""Converts Arrow rows from any source to the types that a table stores (pure).

Types are converted if no value changes: text and lists with large offsets or views, dictionaries, shorter integers,
other units and zones of times. Columns that have no type of their own (Arrow's null) stay so: the table may know their
type. Any other type is refused; the error says how to convert the column.
"""

import pyarrow as pa
import pyarrow.compute as pc

from table.columns.cast import list_offsets, rebuilt_map
from table.errors import InvalidRecordError, SchemaMismatchError

# Avro has no smaller integers: Hudi stores smaller ones as int
_SAME = {
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),  # greater values are refused one by one
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.date64(): pa.date32(),
}
_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
_KEPT = (
    pa.null(),
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
)
_SAME |= _VIEWS | {kept: kept for kept in _KEPT}


def storable_schema(schema: pa.Schema) -> pa.Schema:
    """The columns with the types in which they are stored.

    Args:
        schema: schema of the caller's rows (Arrow).

    Raises:
        SchemaMismatchError: a column cannot be stored; names the column, its type, and how to convert it.
    """
    return pa.schema([pa.field(field.name, _storable(field.type, field.name), field.nullable) for field in schema])


def _storable(arrow: pa.DataType, column: str) -> pa.DataType:  # noqa: C901, PLR0911 a way a kind of type
    if arrow in _SAME:
        return _SAME[arrow]
    if isinstance(arrow, pa.BaseExtensionType):
        return _storable(arrow.storage_type, column)
    if pa.types.is_dictionary(arrow):
        return _storable(arrow.value_type, column)
    if pa.types.is_fixed_size_binary(arrow):
        return pa.binary()
    if pa.types.is_timestamp(arrow) and arrow.tz is not None:
        return pa.timestamp("us", "UTC")
    if pa.types.is_decimal(arrow) and arrow.precision <= 38 and arrow.scale >= 0:
        return pa.decimal128(arrow.precision, arrow.scale)
    if pa.types.is_struct(arrow):
        if not arrow.num_fields:
            raise SchemaMismatchError(no_fields_problem(column))
        fields = [arrow.field(number) for number in range(arrow.num_fields)]
        return pa.struct([pa.field(f.name, _storable(f.type, f"{column}.{f.name}"), f.nullable) for f in fields])
    if _is_list(arrow):
        inner = arrow.value_field
        return pa.list_(pa.field("element", _storable(inner.type, f"{column}.element"), inner.nullable))
    if pa.types.is_map(arrow) and _storable(arrow.key_type, f"{column}.key") == pa.string():
        inner = arrow.item_field
        return pa.map_(pa.string(), pa.field("value", _storable(inner.type, f"{column}.value"), inner.nullable))
    raise SchemaMismatchError(f"the column {column!r} has the type {arrow}, which cannot be stored: {_way_out(arrow)}")


def no_fields_problem(column: str) -> str:
    """Why a struct without fields is refused.

    Args:
        column: its name, with those of the columns around it.
    """
    return (
        f"the column {column!r} is a struct without fields, which no Parquet file can hold: leave it out, give it a "
        "field, or make it text"
    )


def _is_list(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow))


def _way_out(arrow: pa.DataType) -> str:
    if pa.types.is_timestamp(arrow):
        return (
            "Hudi has no timestamp without zone that its Spark writers and readers know; give it a zone, as with "
            "pyarrow.compute.assume_timezone, pandas' dt.tz_localize or Polars' dt.replace_time_zone"
        )
    return "cast it to a type that docs/concepts/keys-and-types.md lists"


def _way_of_values(arrow: pa.DataType) -> str:
    if pa.types.is_uint64(arrow):
        return "cast the column to decimal128(20, 0)"
    return "round it, or cast the column"


def as_storable(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with the types of `storable_schema`; columns that already have their type are not copied.

    Args:
        rows: the caller's rows.
        schema: the schema that `storable_schema` made from theirs.

    Raises:
        InvalidRecordError: a value does not fit, such as a time in nanoseconds between two microseconds.
    """
    if rows.schema.equals(schema):
        return rows
    columns = []
    for field, column in zip(schema, rows.columns, strict=True):
        try:
            columns.append(_cast(column, field.type))
        except pa.ArrowInvalid as error:
            raise InvalidRecordError(
                f"a value of the column {field.name!r} of type {column.type} cannot be stored as {field.type}: "
                f"{error}; {_way_of_values(column.type)}; nothing of the batch is visible"
            ) from error
    return pa.Table.from_arrays(columns, schema=schema)


def _cast(column: pa.ChunkedArray, arrow: pa.DataType) -> pa.ChunkedArray:
    if column.type.equals(arrow):
        return column
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    decode = _decoded if _has_dictionary(column.type) else lambda array: array
    return pa.chunked_array([_cast_chunk(decode(chunk), arrow) for chunk in column.chunks], arrow)


def _cast_chunk(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    try:
        return array.cast(arrow)
    except pa.ArrowNotImplementedError:  # older versions, such as 17, cannot cast views; Polars' strings are views
        return pa.array(array.to_pylist(), _without_views(array.type)).cast(arrow)


def _inner_types(arrow: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_struct(arrow):
        return [arrow.field(number).type for number in range(arrow.num_fields)]
    if pa.types.is_map(arrow):
        return [arrow.key_type, arrow.item_type]
    return [arrow.value_type] if _is_list(arrow) else []


def _has_dictionary(arrow: pa.DataType) -> bool:
    return pa.types.is_dictionary(arrow) or any(map(_has_dictionary, _inner_types(arrow)))


def _decoded(array: pa.Array) -> pa.Array:
    """Values without dictionaries, at any depth: Arrow decodes none that is nested or has views."""
    kind = array.type
    if not _has_dictionary(kind):
        return array
    if pa.types.is_dictionary(kind):
        return _decoded(_plain_text(array.dictionary)).take(array.indices)
    if pa.types.is_struct(kind):
        names = [kind.field(number).name for number in range(kind.num_fields)]
        parts = [_decoded(pc.struct_field(array, [number])) for number in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, names, mask=pc.is_null(array))
    if pa.types.is_map(kind):
        wanted = pa.map_(*(_type_decoded(part) for part in _inner_types(kind)))
        plain = _without_views(kind)  # Arrow takes no values of a view
        return rebuilt_map(array if plain == kind else array.cast(plain), _decoded, _decoded, wanted)
    return pa.ListArray.from_arrays(list_offsets(array), _decoded(array.flatten()), mask=pc.is_null(array))


def _plain_text(array: pa.Array) -> pa.Array:
    return _cast_chunk(array, _VIEWS[array.type]) if array.type in _VIEWS else array


def _type_decoded(arrow: pa.DataType) -> pa.DataType:
    return _decoded(pa.nulls(0, arrow)).type


def _without_views(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(arrow):
        fields = [arrow.field(number) for number in range(arrow.num_fields)]
        return pa.struct([field.with_type(_without_views(field.type)) for field in fields])
    if _is_list(arrow):
        return pa.list_(arrow.value_field.with_type(_without_views(arrow.value_type)))
    if pa.types.is_map(arrow):
        return pa.map_(_without_views(arrow.key_type), _without_views(arrow.item_type))
    return _VIEWS.get(arrow, arrow)
