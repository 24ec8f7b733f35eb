"""The content of DELETE blocks: keys and ordering values (HoodieDeleteBlock, DeleteRecord).

::

    4  version, 3
    4  length
       HoodieDeleteRecordList in Avro's binary form
"""

import io
import struct
from dataclasses import dataclass
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
_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}
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


_ORDER = ["null", *(_record(name, {"value": kind}) for name, kind in _WRAPPED)]
_DELETE = _record(
    "HoodieDeleteRecord",
    {"recordKey": ["null", "string"], "partitionPath": ["null", "string"], "orderingVal": _ORDER},
)
_SCHEMA = fastavro.parse_schema(
    _record("HoodieDeleteRecordList", {"deleteRecordList": {"type": "array", "items": _DELETE}}), named_schemas={}
)


@dataclass(frozen=True)
class Deletes:
    """Deletes of a block, in its order.

    Attributes:
        keys: record keys (string).
        order: ordering values, of the type of the table's ordering field; null where a delete has none.
        removes: for each delete, whether it deletes its key regardless of earlier ordering values: it has no ordering
            value, or one of another type.
    """

    keys: pa.Array
    order: pa.Array
    removes: npt.NDArray[np.bool_]


def read_deletes(block: LogBlock, ordering: pa.DataType, name: str) -> Deletes:
    """Deletes of a DELETE block.

    Args:
        block: the block.
        ordering: type of the table's ordering field; the null type where the table has none.
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


def encode_deletes(keys: pa.Array, partition_path: str, order: pa.Array) -> bytes:
    """Content of a DELETE block.

    Args:
        keys: record keys (string).
        partition_path: partition path of all the keys.
        order: ordering values, of the type of the table's ordering field. Null where a delete has none: it is written
            as an int 0, as Hudi does.
    """
    paths = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(keys), np.int32)), pa.array([partition_path]))
    columns = [keys, paths.cast(pa.string()), order]
    records = pa.StructArray.from_arrays(columns, ["recordKey", "partitionPath", "orderingVal"])
    piece = Items(_deletes_encoder(order.type)).piece_of(records, np.array([len(keys)]))
    out = np.empty(int(piece.lengths[0]), np.uint8)
    piece.write(out, np.zeros(1, np.int64))
    return struct.pack(">ii", _VERSION, len(out)) + out.tobytes()


def _deletes_encoder(ordering: pa.DataType) -> Encoder:
    text = make_encoder(["null", "string"])
    return RecordEncoder(["recordKey", "partitionPath", "orderingVal"], [text, text, _OrderEncoder(ordering)])


class _OrderEncoder(Encoder):
    """Ordering values in their wrapper; a null is written as an int 0."""

    _INT = next(branch for branch, (name, _) in enumerate(_WRAPPED, 1) if name == "IntWrapper")

    def __init__(self, ordering: pa.DataType) -> None:
        names, self._stored = _wrapper_of(ordering)
        self.arrow = ordering
        self._branch = next((at for at, (name, _) in enumerate(_WRAPPED, 1) if name in names[:1]), self._INT)

    def piece(self, values: pa.Array) -> Piece:
        is_valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
        rows, none = np.flatnonzero(is_valid), np.flatnonzero(~is_valid)
        inner = self._values(values.take(pa.array(rows)).cast(self._stored))
        lengths = np.full(len(values), 2, np.int64)
        lengths[rows] = 1 + inner.lengths

        def write(out: Bytes, at: Longs) -> None:
            out[at[none]] = 2 * self._INT
            out[at[none] + 1] = 0
            out[at[rows]] = 2 * self._branch
            inner.write(out, at[rows] + 1)

        return Piece(lengths, write)

    def _values(self, values: pa.Array) -> Piece:
        if pa.types.is_null(values.type):
            return Piece(np.zeros(0, np.int64), lambda *_: None)
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


def _ordering_values(found: list[Any], ordering: pa.DataType) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Values of the ordering field's type. An int 0 means that the delete has none (DeleteRecord, OrderingValues)."""
    wrapper, stored = _wrapper_of(ordering)
    values = []
    for order in found:
        name, value = (None, None) if order is None else (order[0].rsplit(".", 1)[-1], order[1]["value"])
        is_none = name not in wrapper or (name == "IntWrapper" and value == 0)
        values.append(None if is_none else value)
    removes = np.array([value is None for value in values], np.bool_)
    return pa.array(values, stored).cast(ordering, safe=False), removes


def _wrapper_of(ordering: pa.DataType) -> tuple[tuple[str, ...], pa.DataType]:  # noqa: PLR0911 a line per kind of type
    """The wrappers that values of a type may have, and the Arrow type of the wrapped value."""
    if pa.types.is_int32(ordering):
        return ("IntWrapper",), pa.int32()
    if pa.types.is_int64(ordering):
        return ("LongWrapper",), pa.int64()
    if pa.types.is_timestamp(ordering) or pa.types.is_time64(ordering):
        return ("LongWrapper", "TimestampMicrosWrapper", "TimeMicrosWrapper"), pa.int64()
    if pa.types.is_date32(ordering):
        return ("DateWrapper", "IntWrapper"), pa.int32()
    if pa.types.is_float32(ordering):
        return ("FloatWrapper",), pa.float32()
    if pa.types.is_float64(ordering):
        return ("DoubleWrapper",), pa.float64()
    if pa.types.is_string(ordering):
        return ("StringWrapper",), pa.string()
    if pa.types.is_decimal(ordering):
        return ("DecimalWrapper",), pa.decimal128(38, 15)
    if pa.types.is_boolean(ordering):
        return ("BooleanWrapper",), pa.bool_()
    return (), pa.null()
