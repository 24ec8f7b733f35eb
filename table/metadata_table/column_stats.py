"""Statistics of columns <-> Avro records of the metadata table (HoodieMetadataColumnStats).

Index version 1 wraps a value by its type. Version 2 wraps the physical value, and names the type beside it
(HoodieValueTypeInfo, ValueType).
"""

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from io import BytesIO
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa

from table.errors import CorruptFileError, UnsupportedTableError
from table.files.column_ranges import ALL_DIGITS, ColumnRange, PhysicalValue, is_ranged, rounded_to
from table.metadata_table.record_codec import parsed_schema, schema_of
from table.metadata_table.records import RecordType, Value

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
_NO_TYPE = b"\x02\x02\x00"  # number 1: of a file without rows


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
        self._form = _form_of(version)
        self._wrappers = {name: self._wrapper_of(kind) for name, kind in kinds.items() if _name_of(kind) in _WRAPPERS}

    def _wrapper_of(self, kind: pa.DataType) -> tuple[bytes, bytes, Callable[[Any], bytes]]:
        """The branch of a type's wrapper, the mark of the type, and how a value is encoded."""
        wrapper = _WRAPPERS[_name_of(kind)]
        name = wrapper.if_typed if self._is_typed else wrapper.name
        branch = _long(self._form.wrappers.index(name))
        if not pa.types.is_decimal(kind):
            return branch, b"\x02" + _long(wrapper.ordinal) + b"\x00", _ENCODERS[name]
        digits = b"\x02" + _long(wrapper.ordinal) + b"\x02" + _text(f"{kind.precision},{kind.scale}")
        shift = 1 if self._is_typed else 10 ** (_DECIMAL_SCALE - kind.scale)
        return branch, digits, lambda number: _bytes(_two_complement(number * shift))

    def encode(self, kind: RecordType, stats: ColumnStats) -> bytes:
        """The value of a key: Avro without a header. A commit has thousands, so it is written without a schema's walk.

        Args:
            kind: whether it is about a file or a partition path.
            stats: the record.

        Raises:
            UnsupportedTableError: the range has values of another type than the column.
        """
        found, (branch, typed, encode) = stats.range, self._wrappers[stats.column]
        self._check_fits(stats)
        parts = [
            self._form.head,
            _long(int(kind)),
            self._form.before,
            b"\x02\x02",
            _text(stats.name),
            b"\x02",
            _text(stats.column),
        ]
        for end in (found.least, found.greatest):
            parts += (b"\x00",) if end is None else (branch, encode(end))
        for count in (found.values, found.nulls, found.size, found.uncompressed):
            parts += (b"\x02", _long(count))
        parts += (_boolean(stats.is_deleted), _boolean(stats.is_tight))
        if self._form.has_type:
            no_type = b"\x00" if not self._is_typed else _NO_TYPE
            parts.append(typed if self._is_typed and found.values else no_type)
        return b"".join((*parts, self._form.behind))

    def _check_fits(self, stats: ColumnStats) -> None:
        kind = self._kinds[stats.column]
        wanted = str if pa.types.is_string(kind) or pa.types.is_binary(kind) else (int, float)
        for end in (stats.range.least, stats.range.greatest):
            if end is not None and (
                not isinstance(end, wanted) or isinstance(end, bool) != pa.types.is_boolean(kind)
                or (isinstance(end, float) and not pa.types.is_floating(kind))
            ):  # fmt: skip
                raise UnsupportedTableError(
                    f"the column {stats.column!r} is {kind}, and {stats.name} has {end!r} in it"
                )

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


class _Form(NamedTuple):
    """The schema of a version's records, as far as bytes depend on it.

    Attributes:
        head: the fields before the type of a record: meta columns, all null, and an empty key.
        before: the fields between the type of a record and its statistics, all null.
        behind: the fields after the statistics, all null.
        wrappers: names of the wrappers, in the order of their union's branches.
        has_type: whether the statistics have room for a type.
    """

    head: bytes
    before: bytes
    behind: bytes
    wrappers: tuple[str, ...]
    has_type: bool


@lru_cache(maxsize=8)
def _form_of(version: int) -> _Form:
    fields = json.loads(schema_of(version))["fields"]
    places = {field["name"]: number for number, field in enumerate(fields)}
    kind, at = places["type"], places["ColumnStatsMetadata"]
    inner = {field["name"]: field["type"] for field in fields[at]["type"][1]["fields"]}
    names = tuple(one if isinstance(one, str) else one["name"] for one in inner["minValue"])
    return _Form(bytes(kind), bytes(at - kind - 1), bytes(len(fields) - at - 1), names, "valueType" in inner)


def _long(number: int) -> bytes:
    """A number in Avro's binary form (zigzag, seven bits a byte)."""
    zigzag = number << 1 if number >= 0 else (-number << 1) - 1
    if zigzag < 0x80:
        return bytes((zigzag,))
    out = bytearray()
    while zigzag >= 0x80:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _bytes(data: bytes) -> bytes:
    return _long(len(data)) + data


def _text(text: str) -> bytes:
    return _bytes(text.encode())


def _boolean(value: bool) -> bytes:  # noqa: FBT001
    return b"\x01" if value else b"\x00"


_FLOAT = pa.float32()
_ENCODERS: Mapping[str, Callable[[Any], bytes]] = {
    "BooleanWrapper": _boolean,
    "IntWrapper": _long,
    "LongWrapper": _long,
    "DateWrapper": _long,
    "FloatWrapper": lambda number: struct.pack("<f", rounded_to(number, _FLOAT) if isinstance(number, int) else number),
    "DoubleWrapper": struct.Struct("<d").pack,
    "StringWrapper": _text,
    "BytesWrapper": lambda text: _bytes(text.encode("latin-1")),
}


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


def newest_values(values: Sequence[Value]) -> Sequence[Value]:
    """The values after the last delete of a key.

    Args:
        values: what the layers of a slice say of the key, oldest first.
    """
    first = next((at for at in range(len(values) - 1, -1, -1) if values[at].data is None), -1) + 1
    return values[first:]


def widened_value(values: Sequence[Value], version: int) -> bytes | None:
    """The record of a file or partition path and a column (HoodieTableMetadataUtil.mergeColumnStatsRecords).

    A tight record replaces earlier ones; another one widens them. A file has several where Hudi appended to a log file.

    Args:
        values: what the layers of a slice say of its key, oldest first.
        version: of the metadata table, whose schema the result has.

    Raises:
        CorruptFileError: a record does not follow its schema, or has values of another type than an earlier one.
    """
    newest = newest_values(values)
    if len(newest) <= 1:
        return _with_schema(newest[0], version) if newest else None
    known: dict[str, Any] | None = None
    records = [_record(value) for value in newest]
    for record in records:
        about = record["ColumnStatsMetadata"]
        if known is None or about["isTightBound"] or about["isDeleted"] or known["isDeleted"]:
            known = about
        else:
            known = _widened(known, about)
    if known is None or known["isDeleted"]:
        return None
    return _encode_about(known, records[-1]["type"], version)


def _widened(known: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    order = _ordered(more)
    try:
        ends = {
            name: choose((one[name] for one in (known, more) if one[name] is not None), key=order, default=None)
            for name, choose in (("minValue", min), ("maxValue", max))
        }
    except TypeError as error:
        raise CorruptFileError(f"statistics of {more['columnName']!r} have values of two types: {error}") from error
    counts = {name: (known[name] or 0) + (more[name] or 0) for name in _COUNTS}
    return {**more, **ends, **counts}


def _ordered(about: dict[str, Any]) -> Callable[[Any], Any]:
    """The order of wrapped values: that of the values. The bytes of a decimal are a signed number."""
    is_decimal = (about.get("valueType") or {}).get("typeOrdinal") == _WRAPPERS["decimal"].ordinal

    def order(wrapped: Any) -> Any:
        value = wrapped[1]["value"]
        if is_decimal and isinstance(value, bytes):
            return False, int.from_bytes(value, "big", signed=True)
        return value != value, value  # noqa: PLR0124 NaN is greater than all numbers, as for Java

    return order


def _with_schema(value: Value, version: int) -> bytes:
    """The bytes of a record in the schema of a version: those at hand where its writer has the same."""
    assert value.data is not None, "a deleted record has no bytes"
    if value.schema == schema_of(version):
        return value.data
    record = _record(value)
    return _encode_about(record["ColumnStatsMetadata"], record["type"], version)


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
