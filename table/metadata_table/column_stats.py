"""Statistics of columns <-> Avro records of the metadata table (HoodieMetadataColumnStats).

Index version 1 wraps a value by its type. Version 2 wraps the physical value, and names the type beside it
(HoodieValueTypeInfo, ValueType).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from io import BytesIO
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa

from table.errors import CorruptFileError
from table.files.column_ranges import ALL_DIGITS, ColumnRange, PhysicalValue, is_ranged
from table.metadata_table.record_codec import parsed_schema, schema_of
from table.metadata_table.records import RecordType, Value

_PACKAGE = "org.apache.hudi.avro.model."
_DECIMAL_SCALE, _DECIMAL_WHOLE = 15, 15  # of a decimal in a wrapper: 30 digits


class _Wrapper(NamedTuple):
    """How values of a type are wrapped: in version 1, in version 2, and the number of the type there."""

    name: str
    if_typed: str
    ordinal: int


_WRAPPERS: Mapping[str, _Wrapper] = {
    "bool": _Wrapper("BooleanWrapper", "BooleanWrapper", 2),
    "int32": _Wrapper("IntWrapper", "IntWrapper", 3),
    "int64": _Wrapper("LongWrapper", "LongWrapper", 4),
    "float": _Wrapper("FloatWrapper", "FloatWrapper", 5),
    "double": _Wrapper("DoubleWrapper", "DoubleWrapper", 6),
    "string": _Wrapper("StringWrapper", "StringWrapper", 7),
    "binary": _Wrapper("BytesWrapper", "BytesWrapper", 8),
    "decimal": _Wrapper("DecimalWrapper", "BytesWrapper", 10),
    "date32[day]": _Wrapper("DateWrapper", "IntWrapper", 12),
    "timestamp[us, tz=UTC]": _Wrapper("LongWrapper", "LongWrapper", 16),
}
_COUNTS = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
_NO_TYPE = {"typeOrdinal": 1, "additionalInfo": None}  # of a file without rows


def _name_of(kind: pa.DataType) -> str:
    return "decimal" if pa.types.is_decimal(kind) else str(kind)


def is_indexed(kind: pa.DataType, *, is_typed: bool) -> bool:
    """Whether columns of a type (Arrow) have statistics in the metadata table.

    Args:
        kind: the type.
        is_typed: whether the index is of version 2; version 1 has no room for decimals of many digits.
    """
    if not is_ranged(kind) or _name_of(kind) not in _WRAPPERS:
        return False
    if not pa.types.is_decimal(kind) or is_typed:
        return True
    return bool(kind.scale <= _DECIMAL_SCALE and kind.precision - kind.scale <= _DECIMAL_WHOLE)


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """One record.

    Attributes:
        name: of the file, or the partition path.
        column: name of the column.
        range: least and greatest value, with counts.
        is_tight: whether a partition path's range was computed anew from all its files. Else it widens the earlier one.
        is_deleted: whether the record takes back earlier ones.
    """

    name: str
    column: str
    range: ColumnRange
    is_tight: bool = False
    is_deleted: bool = False


class StatsCodec:
    """Encodes and decodes records of a table's statistics.

    Args:
        kinds: column -> type (Arrow); only types for which `is_indexed` holds.
        is_typed: whether the index is of version 2.
        version: of the metadata table.
    """

    def __init__(self, kinds: Mapping[str, pa.DataType], version: int, *, is_typed: bool) -> None:
        self._kinds, self._is_typed = kinds, is_typed
        self._schema = parsed_schema(schema_of(version))

    def encode(self, kind: RecordType, stats: ColumnStats) -> bytes:
        """The value of a key.

        Args:
            kind: whether it is about a file or a partition path.
            stats: the record.
        """
        arrow, found = self._kinds[stats.column], stats.range
        about: dict[str, Any] = {
            "fileName": stats.name,
            "columnName": stats.column,
            "minValue": self._wrapped(found.least, arrow),
            "maxValue": self._wrapped(found.greatest, arrow),
            "valueCount": found.values,
            "nullCount": found.nulls,
            "totalSize": found.size,
            "totalUncompressedSize": found.uncompressed,
            "isDeleted": stats.is_deleted,
            "isTightBound": stats.is_tight,
        }
        if self._is_typed:
            about["valueType"] = self._type_of(arrow) if found.values else _NO_TYPE
        out = BytesIO()
        fastavro.schemaless_writer(out, self._schema, {"key": "", "type": int(kind), "ColumnStatsMetadata": about})
        return out.getvalue()

    def _type_of(self, kind: pa.DataType) -> dict[str, Any]:
        digits = f"{kind.precision},{kind.scale}" if pa.types.is_decimal(kind) else None
        return {"typeOrdinal": _WRAPPERS[_name_of(kind)].ordinal, "additionalInfo": digits}

    def _wrapped(self, value: PhysicalValue | None, kind: pa.DataType) -> tuple[str, dict[str, Any]] | None:
        if value is None:
            return None
        wrapper = _WRAPPERS[_name_of(kind)]
        name = wrapper.if_typed if self._is_typed else wrapper.name
        plain: Any = value
        if pa.types.is_decimal(kind):
            plain = (
                _two_complement(int(value)) if self._is_typed else Decimal(int(value)).scaleb(-kind.scale, ALL_DIGITS)
            )
        elif isinstance(value, str) and name == "BytesWrapper":
            plain = value.encode("latin-1")
        return _PACKAGE + name, {"value": plain}

    def decode(self, value: bytes, schema: str) -> ColumnStats | None:
        """Decodes the value of a key.

        Args:
            value: Avro without a header.
            schema: the writer's Avro schema.

        Returns:
            The record; None where it is about a column that is not known here.

        Raises:
            CorruptFileError: the value does not follow the schema, or is no record of statistics.
        """
        try:
            record: Any = fastavro.schemaless_reader(BytesIO(value), parsed_schema(schema), None)
            about = record["ColumnStatsMetadata"]
            arrow = self._kinds.get(about["columnName"])
            if arrow is None:
                return None
            return ColumnStats(
                about["fileName"],
                about["columnName"],
                ColumnRange(
                    _unwrapped(about["minValue"], arrow),
                    _unwrapped(about["maxValue"], arrow),
                    int(about["valueCount"] or 0),
                    int(about["nullCount"] or 0),
                    int(about["totalSize"] or 0),
                    int(about["totalUncompressedSize"] or 0),
                ),
                bool(about["isTightBound"]),
                bool(about["isDeleted"]),
            )
        except Exception as error:  # fastavro's errors have no common base
            raise CorruptFileError(f"a record of the metadata table is damaged: {error}") from error


def _unwrapped(wrapped: dict[str, Any] | None, kind: pa.DataType) -> PhysicalValue | None:
    if wrapped is None:
        return None
    value = wrapped["value"]
    if pa.types.is_decimal(kind):
        if isinstance(value, bytes):
            return int.from_bytes(value, "big", signed=True)
        return int(Decimal(value).scaleb(kind.scale, ALL_DIGITS))
    plain: PhysicalValue = value.decode("latin-1") if isinstance(value, bytes) else value
    return plain


def _two_complement(number: int) -> bytes:
    """The least bytes that hold a number, most significant first (BigInteger.toByteArray)."""
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def newest_value(values: Sequence[Value], version: int) -> bytes | None:
    """The record of a file and column that counts: the last one; None where it was deleted.

    Args:
        values: what the layers of a slice say of its key, oldest first.
        version: of the metadata table, whose schema the result has.
    """
    return None if values[-1].data is None else _with_schema(values[-1], version)


def widened_value(values: Sequence[Value], version: int) -> bytes | None:
    """The record of a partition path and column (HoodieTableMetadataUtil.mergeColumnStatsRecords).

    A tight record replaces earlier ones; another one widens them.

    Args:
        values: what the layers of a slice say of its key, oldest first.
        version: of the metadata table, whose schema the result has.

    Raises:
        CorruptFileError: a record does not follow its schema.
    """
    first = next((at for at in range(len(values) - 1, -1, -1) if values[at].data is None), -1) + 1
    left = values[first:]
    if len(left) <= 1:
        return _with_schema(left[0], version) if left else None
    known: dict[str, Any] | None = None
    for value in left:
        about = _about(value)
        if known is None or about["isTightBound"] or about["isDeleted"] or known["isDeleted"]:
            known = about
        else:
            known = _widened(known, about)
    if known is None or known["isDeleted"]:
        return None
    return _encode_about(known, RecordType.PARTITION_STATS, version)


def _widened(known: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    ends = {
        name: choose((one[name] for one in (known, more) if one[name] is not None), key=_ordered(more), default=None)
        for name, choose in (("minValue", min), ("maxValue", max))
    }
    counts = {name: (known[name] or 0) + (more[name] or 0) for name in _COUNTS}
    return {**more, **ends, **counts}


def _ordered(about: dict[str, Any]) -> Callable[[Any], Any]:
    """The order of wrapped values: the bytes of a decimal are a signed number."""
    is_decimal = (about.get("valueType") or {}).get("typeOrdinal") == _WRAPPERS["decimal"].ordinal

    def order(wrapped: Any) -> Any:
        value = wrapped[1]["value"]
        return int.from_bytes(value, "big", signed=True) if is_decimal and isinstance(value, bytes) else value

    return order


def _with_schema(value: Value, version: int) -> bytes:
    """The bytes of a record in the schema of a version: those at hand where its writer has the same."""
    assert value.data is not None, "a deleted record has no bytes"
    if value.schema == schema_of(version):
        return value.data
    record = _record(value)
    return _encode_about(record["ColumnStatsMetadata"], record["type"], version)


def _about(value: Value) -> dict[str, Any]:
    about: dict[str, Any] = _record(value)["ColumnStatsMetadata"]
    return about


def _record(value: Value) -> dict[str, Any]:
    """A record, with the name of the wrapper beside each wrapped value."""
    try:
        data = BytesIO(value.data or b"")
        record: Any = fastavro.schemaless_reader(
            data, parsed_schema(value.schema), None, return_record_name=True, return_record_name_override=True
        )
        return {**record, "ColumnStatsMetadata": dict(record["ColumnStatsMetadata"])}
    except Exception as error:  # fastavro's errors have no common base
        raise CorruptFileError(f"a record of the metadata table is damaged: {error}") from error


def _encode_about(about: dict[str, Any], kind: int, version: int) -> bytes:
    out = BytesIO()
    value = {"key": "", "type": int(kind), "ColumnStatsMetadata": about}
    fastavro.schemaless_writer(out, parsed_schema(schema_of(version)), value)
    return out.getvalue()
