"""The content of DELETE blocks: keys, and what orders their deletes (HoodieDeleteBlock, DeleteRecord).

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

from table.errors import CorruptFileError, HudiError, UnsupportedTableError
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
        order: ordering values, of the type of the table's ordering field; null where there is none.
        removes: which delete their key whatever came before: those without a value, or with one of another type.
    """

    keys: pa.Array
    order: pa.Array
    removes: npt.NDArray[np.bool_]


def read_deletes(block: LogBlock, ordering: pa.DataType, name: str) -> Deletes:
    """Deletes of a DELETE block.

    Args:
        block: the block.
        ordering: type of the table's ordering field; null where it has none.
        name: of the file, for the error.

    Raises:
        CorruptFileError: the content is not such deletes.
        UnsupportedTableError: it is of a version that only Java reads.
    """
    try:
        records = _decode(block.content, name)
        keys = pa.array([record["recordKey"] for record in records], pa.string())
        order, removes = _ordering_values([record["orderingVal"] for record in records], ordering)
    except HudiError:
        raise
    except Exception as error:  # damaged bytes fail in any way
        raise CorruptFileError(f"{name}: a delete block is damaged: {error!r}") from error
    if keys.null_count:
        raise CorruptFileError(f"{name}: a delete block has a delete without a record key")
    return Deletes(keys, order, removes)


def _decode(content: bytes, name: str) -> list[Any]:
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


def encode_deletes(deletes: list[tuple[str, str, tuple[str, Any] | None]]) -> bytes:
    """Content of a DELETE block.

    Args:
        deletes: record key, partition path, and the ordering value with the name of its wrapper.
    """
    records = [
        {"recordKey": key, "partitionPath": path, "orderingVal": order and (order[0], {"value": order[1]})}
        for key, path, order in deletes
    ]
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _SCHEMA, {"deleteRecordList": records})
    return struct.pack(">ii", _VERSION, out.tell()) + out.getvalue()


def _ordering_values(found: list[Any], ordering: pa.DataType) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Values of the ordering field's type; an int 0 stands for none (DeleteRecord, OrderingValues)."""
    wrapper, stored = _wrapper_of(ordering)
    values = []
    for order in found:
        name, value = (None, None) if order is None else (order[0].rsplit(".", 1)[-1], order[1]["value"])
        is_none = name not in wrapper or (name == "IntWrapper" and value == 0)
        values.append(None if is_none else value)
    removes = np.array([value is None for value in values], np.bool_)
    return pa.array(values, stored).cast(ordering, safe=False), removes


def _wrapper_of(ordering: pa.DataType) -> tuple[tuple[str, ...], pa.DataType]:  # noqa: PLR0911 a line per kind of type
    """The wrappers in which values of a type come, and their own type."""
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
