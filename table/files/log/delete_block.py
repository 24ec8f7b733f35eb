"""The content of DELETE blocks: keys and ordering values (HoodieDeleteBlock, DeleteRecord).

::

    4  version, 3
    4  length
       HoodieDeleteRecordList in Avro's binary form
"""

import io
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.errors import CorruptFileError, HudiError, UnsupportedTableError
from table.files.log.avro_cursors import Bytes, Longs
from table.files.log.avro_encoders import Encoder, Items, Piece, RecordEncoder, make_encoder
from table.files.log.framing import LogBlock

_VERSION = 3
_SERIALIZED = (1, 2)  # records in the form of Java's Kryo
_PRECISION, _SCALE = 30, 15  # of DecimalWrapper
_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": _PRECISION, "scale": _SCALE}
# the wrappers of ordering values, in the order of their union's branches
_WRAPPED: tuple[tuple[str, Any], ...] = (
    ("BooleanWrapper", "boolean"),
    ("IntWrapper", "int"),
    ("LongWrapper", "long"),
    ("FloatWrapper", "float"),
    ("DoubleWrapper", "double"),
    ("BytesWrapper", "bytes"),
    ("StringWrapper", "string"),
    ("DateWrapper", "int"),
    ("DecimalWrapper", _DECIMAL),
    ("TimeMicrosWrapper", "long"),
    ("TimestampMicrosWrapper", "long"),
)


def _record(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


_LIST = "ArrayWrapper"  # of the values of several ordering fields
_LISTED = ["null", *(name for name, _ in _WRAPPED), _record("LocalDateWrapper", {"value": "int"})]
_ORDER = [
    "null",
    *(_record(name, {"value": kind}) for name, kind in _WRAPPED),
    _record(_LIST, {"wrappedValues": ["null", {"type": "array", "items": _LISTED}]}),
]
_DELETE = _record(
    "HoodieDeleteRecord",
    {"recordKey": ["null", "string"], "partitionPath": ["null", "string"], "orderingVal": _ORDER},
)
_SCHEMA = fastavro.parse_schema(
    _record("HoodieDeleteRecordList", {"deleteRecordList": {"type": "array", "items": _DELETE}}), named_schemas={}
)


_BRANCHES = {name: branch for branch, name in enumerate([*(name for name, _ in _WRAPPED), _LIST], 1)}

_KINDS: tuple[tuple[Callable[[pa.DataType], bool], tuple[str, ...]], ...] = (
    (pa.types.is_int32, ("IntWrapper",)),
    (pa.types.is_int64, ("LongWrapper", "IntWrapper")),
    (pa.types.is_float32, ("FloatWrapper", "LongWrapper", "IntWrapper")),
    (pa.types.is_float64, ("DoubleWrapper", "FloatWrapper", "LongWrapper", "IntWrapper")),
    (pa.types.is_timestamp, ("LongWrapper", "TimestampMicrosWrapper", "TimeMicrosWrapper")),
    (pa.types.is_time64, ("LongWrapper", "TimestampMicrosWrapper", "TimeMicrosWrapper")),
    (pa.types.is_date32, ("IntWrapper", "DateWrapper", "LocalDateWrapper")),
    (pa.types.is_string, ("StringWrapper",)),
    (pa.types.is_decimal, ("DecimalWrapper",)),
    (pa.types.is_boolean, ("BooleanWrapper",)),
)
_WRAPPED_TYPES = {
    "BooleanWrapper": pa.bool_(),
    "IntWrapper": pa.int32(),
    "LongWrapper": pa.int64(),
    "FloatWrapper": pa.float32(),
    "DoubleWrapper": pa.float64(),
    "StringWrapper": pa.string(),
    "DateWrapper": pa.int32(),
    "LocalDateWrapper": pa.int32(),
    "DecimalWrapper": pa.decimal128(38, _SCALE),  # other writers put longer ones into it
    "TimeMicrosWrapper": pa.int64(),
    "TimestampMicrosWrapper": pa.int64(),
}


@dataclass(frozen=True)
class Deletes:
    """Deletes of a block, in its order.

    Attributes:
        keys: record keys (string).
        order: ordering values, a column for each of the table's ordering fields; null where a delete has none. A number
            that was written before its column was widened has the present type.
        removes: for each delete, whether it deletes its key regardless of earlier ordering values: it has no ordering
            value, or one of a kind that the column never had, or of another number of fields.
    """

    keys: pa.Array
    order: pa.Table
    removes: npt.NDArray[np.bool_]


def read_deletes(block: LogBlock, ordering: pa.Schema, name: str) -> Deletes:
    """Deletes of a DELETE block.

    Args:
        block: the block.
        ordering: the table's ordering fields with their types; no field where the table has none.
        name: name of the file, for the error.

    Raises:
        CorruptFileError: the content cannot be decoded.
        UnsupportedTableError: the block has a version that only Java can read.
    """
    try:
        records = _decode(block.content, name)
        keys = pa.array([record["recordKey"] for record in records], pa.string())
        order, removes = _ordering_values([record["orderingVal"] for record in records], ordering)
    except HudiError:
        raise
    except Exception as error:  # damaged bytes can fail in any way
        raise CorruptFileError(f"{name}: a delete block is damaged: {error!r}") from error
    if keys.null_count:
        raise CorruptFileError(f"{name}: a delete block has a delete without a record key")
    return Deletes(keys, order, removes)


def _decode(content: bytes | memoryview, name: str) -> list[Any]:
    version, length = struct.unpack_from(">ii", content, 0)
    if version in _SERIALIZED:
        raise UnsupportedTableError(
            f"{name}: its deletes are in the form of Java's serialization (delete block version {version}): "
            "let a Hudi from 0.14 on compact the table"
        )
    if version != _VERSION or length != len(content) - 8:
        raise CorruptFileError(f"{name}: a delete block of version {version} and {length} bytes")
    found: Any = fastavro.schemaless_reader(io.BytesIO(content[8:]), _SCHEMA, None, return_record_name=True)
    records: list[Any] = found["deleteRecordList"]
    return records


def encode_deletes(keys: pa.Array, partition_path: str, order: pa.Table) -> bytes:
    """Content of a DELETE block.

    Args:
        keys: record keys (string).
        partition_path: partition path of all the keys.
        order: ordering values, a column for each of the table's ordering fields. Null where a delete has none: it is
            written as an int 0, as Hudi does. Without columns no delete has any.
    """
    values: pa.Array = pa.nulls(len(keys))
    if order.column_names:
        parts = order.to_struct_array().chunks
        values = pa.concat_arrays([*parts, pa.array([], pa.struct(list(order.schema)))])
    paths = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(keys), np.int32)), pa.array([partition_path]))
    columns = [keys, paths.cast(pa.string()), values]
    records = pa.StructArray.from_arrays(columns, ["recordKey", "partitionPath", "orderingVal"])
    piece = Items(_deletes_encoder(order.schema)).piece_of(records, np.array([len(keys)]))
    out = np.empty(int(piece.lengths[0]), np.uint8)
    piece.write(out, np.zeros(1, np.int64))
    return struct.pack(">ii", _VERSION, len(out)) + out.tobytes()


def reads_as_none(order: pa.Table) -> bool:
    """Whether readers of a block would take one of these ordering values for none: a single int 0, or day 0 of a date.

    Hudi's readers do so, too (OrderingValues.isDefault).

    Args:
        order: as of `encode_deletes`.
    """
    if order.num_columns != 1 or _wrapped_type(order.schema.types[0]) != pa.int32():
        return False
    return bool(pc.any(pc.equal(order.column(0).cast(pa.int32()), 0)).as_py())


def may_be_too_long(ordering: pa.DataType) -> bool:
    """Whether a column may have values that no block can hold: decimals beyond Hudi's decimal(30,15)."""
    if not pa.types.is_decimal(ordering):
        return False
    return bool(ordering.scale > _SCALE or ordering.precision - ordering.scale > _PRECISION - _SCALE)


def find_too_long(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Which values of an ordering column no block can hold."""
    kind, nothing = column.type, np.zeros(len(column), np.bool_)
    if not may_be_too_long(kind):
        return nothing
    try:
        column.cast(pa.decimal128(_PRECISION, _SCALE))
    except pa.ArrowInvalid:
        long = pa.chunked_array([pa.array(nothing)])
        if kind.scale > _SCALE:
            long = pc.or_(long, pc.not_equal(pc.round(column, _SCALE), column))
        if kind.precision - kind.scale > _PRECISION - _SCALE:
            least = pa.scalar(Decimal(10) ** (_PRECISION - _SCALE), kind)
            long = pc.or_(long, pc.greater_equal(pc.abs(column), least))
        flags: npt.NDArray[np.bool_] = pc.fill_null(long, False).to_numpy()
        return flags
    return nothing


def _deletes_encoder(ordering: pa.Schema) -> Encoder:
    text = make_encoder(["null", "string"])
    return RecordEncoder(["recordKey", "partitionPath", "orderingVal"], [text, text, _OrderEncoder(ordering)])


class _OrderEncoder(Encoder):
    """The ordering values of a delete: one in its wrapper, several in a list. Where one is null: an int 0."""

    takes_nulls = True

    def __init__(self, ordering: pa.Schema) -> None:
        self.arrow = pa.struct(list(ordering)) if len(ordering) else pa.null()
        self._values = [_WrappedEncoder(field.type) for field in ordering]
        count = len(self._values)
        # branch of the list, branch of its only form, number of values; a 0 ends the list
        self._head, self._tail = (bytes([2 * _BRANCHES[_LIST], 2, 2 * count]), b"\0") if count > 1 else (b"", b"")

    def piece(self, values: pa.Array) -> Piece:
        columns = values.flatten() if self._values else [values]
        is_valid = np.logical_and.reduce([pc.is_valid(column).to_numpy(zero_copy_only=False) for column in columns])
        rows, none = np.flatnonzero(is_valid), np.flatnonzero(~is_valid)
        parts = [
            encoder.piece(column.take(pa.array(rows))) for encoder, column in zip(self._values, columns, strict=False)
        ]
        lengths = np.full(len(values), 2, np.int64)
        lengths[rows] = np.sum([part.lengths for part in parts], axis=0) + len(self._head) + len(self._tail)

        def write(out: Bytes, at: Longs) -> None:
            out[at[none]] = 2 * _BRANCHES["IntWrapper"]
            out[at[none] + 1] = 0
            place = _put(out, at[rows], self._head)
            for part in parts:
                part.write(out, place)
                place = place + part.lengths
            _put(out, place, self._tail)

        return Piece(lengths, write)


def _put(out: Bytes, at: Longs, content: bytes) -> Longs:
    """Writes the same bytes to each place, and returns the places after them."""
    for offset, byte in enumerate(content):
        out[at + offset] = byte
    return at + len(content)


class _WrappedEncoder(Encoder):
    """Values of an ordering field in their wrapper. None of them is null."""

    def __init__(self, ordering: pa.DataType) -> None:
        names, self._stored = _wrappers_of(ordering), _wrapped_type(ordering)
        self.arrow = ordering
        self._branch = _BRANCHES[names[0]] if names else 0

    def piece(self, values: pa.Array) -> Piece:
        inner = self._values(values.cast(self._stored))

        def write(out: Bytes, at: Longs) -> None:
            out[at] = 2 * self._branch
            inner.write(out, at + 1)

        return Piece(1 + inner.lengths, write)

    def _values(self, values: pa.Array) -> Piece:
        if pa.types.is_null(values.type):
            return Piece(np.zeros(len(values), np.int64), lambda *_: None)
        if pa.types.is_decimal(values.type):
            return make_encoder("bytes").piece(_two_complements(values))
        name = {pa.int32(): "int", pa.int64(): "long", pa.float32(): "float", pa.float64(): "double"}
        return make_encoder("boolean" if pa.types.is_boolean(values.type) else name.get(values.type, "string")).piece(
            values
        )


def _two_complements(values: pa.Array) -> pa.Array:
    """Decimals as bytes, the most significant first."""
    raw = np.frombuffer(values.buffers()[1] or b"", np.uint8).reshape(-1, 16)
    mine = np.ascontiguousarray(raw[values.offset : values.offset + len(values)][:, ::-1])
    return pa.Array.from_buffers(pa.binary(16), len(values), [None, pa.py_buffer(mine)]).cast(pa.binary())


def _ordering_values(found: list[Any], ordering: pa.Schema) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
    """Values of the ordering fields. An int 0 means that the delete has none (DeleteRecord, OrderingValues)."""
    kinds = [_wrappers_of(field.type) for field in ordering]
    rows: list[Sequence[tuple[str, Any]] | None] = []
    for order in found:
        parts = [] if order is None else _wrapped_parts(order)
        fits = len(parts) == len(kinds) and all(name in names for (name, _), names in zip(parts, kinds, strict=True))
        is_none = not parts or not fits or parts == [("IntWrapper", 0)]
        rows.append(None if is_none else parts)
    removes = np.array([row is None for row in rows], np.bool_)
    columns = [
        _present_values([None if row is None else row[at] for row in rows], kinds[at], field.type)
        for at, field in enumerate(ordering)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema([field.with_nullable(True) for field in ordering])), removes


def _present_values(parts: Sequence[tuple[str, Any] | None], names: Sequence[str], present: pa.DataType) -> pa.Array:
    """Values of one field with the column's present type, whatever type it had when they were written."""
    used = {part[0] for part in parts if part is not None} or {*names[:1]}
    columns = [
        pa.array(
            [part[1] if part is not None and part[0] == name else None for part in parts], _WRAPPED_TYPES[name]
        ).cast(present, safe=False)  # a long that a float cannot hold exactly is rounded, as in rows
        for name in used
    ]
    if not columns:
        return pa.nulls(len(parts), present)
    return columns[0] if len(columns) == 1 else pc.coalesce(*columns)


def _wrapped_parts(order: tuple[str, dict[str, Any]]) -> list[tuple[str, Any]]:
    """The wrappers and values of a delete's order."""
    kind, wrapped = order
    if kind.rsplit(".", 1)[-1] != _LIST:
        return [(kind.rsplit(".", 1)[-1], wrapped["value"])]
    parts = wrapped["wrappedValues"] or []
    return [("null", None) if part is None else (part[0].rsplit(".", 1)[-1], part[1]["value"]) for part in parts]


def _wrappers_of(ordering: pa.DataType) -> tuple[str, ...]:
    """The wrappers that values of a column may have: first the one that is written.

    The last ones are those of the types from which the column may have been widened. Hudi's readers compare a date as
    an int.
    """
    for is_kind, names in _KINDS:
        if is_kind(ordering):
            return names
    return ()


def _wrapped_type(ordering: pa.DataType) -> pa.DataType:
    """The Arrow type of the values in the wrapper that is written."""
    names = _wrappers_of(ordering)
    return _WRAPPED_TYPES[names[0]] if names else pa.null()
