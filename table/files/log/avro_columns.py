"""Avro records decoded a field at a time for all records together: a cursor per record in one numpy array.

The records have one schema and known places in a byte array. A few numpy operations read each field of all records, and
advance their cursors. Lengths and counts are checked against the end of their record before they are used:
damaged bytes cannot make the decoder allocate more memory than the bytes themselves have.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table.files.log.avro_cursors import Bytes, Cursors, Flags, Longs, gathered
from table.schema.avro_schema import arrow_type_of, relaxed_type

MOST_ITEMS = 512  # items of a list or map: each item costs some numpy operations, however few records have it
# a type may also be named like one of these: Hudi's decimals are fixed types with the name "fixed"
_KINDS = frozenset(
    ["boolean", "int", "long", "float", "double", "bytes", "string", "record", "array", "map", "enum", "fixed"]
)


class LongListError(Exception):
    """A list or map has so many items that decoding the records one by one is faster."""


class Decoder(ABC):
    """Reads values of one Avro type.

    Attributes:
        arrow: Arrow type of the decoded column; every part nullable.
    """

    arrow: pa.DataType

    @abstractmethod
    def read(self, cursors: Cursors) -> pa.Array:
        """Reads one value of each record."""

    def skip(self, cursors: Cursors) -> None:
        """Passes over a value of each record."""
        self.read(cursors)


class _Number(Decoder):
    def __init__(self, arrow: pa.DataType, *, is_int: bool) -> None:
        self.arrow, self._is_int = arrow, is_int

    def read(self, cursors: Cursors) -> pa.Array:
        values = cursors.longs()
        if not self._is_int:
            return pa.array(values).view(self.arrow)
        narrow = values.astype(np.int32)
        if (narrow != values).any():
            raise ValueError("an int has more than 32 bits")
        return pa.array(narrow).view(self.arrow)

    def skip(self, cursors: Cursors) -> None:
        cursors.longs()


class _Fixed(Decoder):
    """Values of a fixed number of bytes: boolean, float, double."""

    def __init__(self, arrow: pa.DataType, kind: str) -> None:
        self.arrow, self._kind = arrow, np.dtype(kind)

    def read(self, cursors: Cursors) -> pa.Array:
        raw = cursors.fixed(self._kind.itemsize)
        if self._kind == np.dtype("u1"):
            return pa.array(raw[:, 0] != 0)
        return pa.array(np.ascontiguousarray(raw).view(self._kind)[:, 0])

    def skip(self, cursors: Cursors) -> None:
        cursors.skip(self._kind.itemsize)


class _Bytes(Decoder):
    """Text and bytes. Values of a fixed type have its size and no length."""

    def __init__(self, arrow: pa.DataType, size: int | None = None) -> None:
        self.arrow, self._size = arrow, size

    def read(self, cursors: Cursors) -> pa.Array:
        lengths = self._lengths(cursors)
        starts = cursors.at
        cursors.skip(lengths)
        values = gathered(cursors.data, starts, lengths)
        if self._size is not None:
            return pa.Array.from_buffers(self.arrow, len(values), [None, values.buffers()[2] or pa.py_buffer(b"")])
        if not pa.types.is_string(self.arrow):
            return values
        text = values.view(self.arrow)
        text.validate(full=True)
        return text

    def skip(self, cursors: Cursors) -> None:
        cursors.skip(self._lengths(cursors))

    def _lengths(self, cursors: Cursors) -> Longs:
        return cursors.lengths() if self._size is None else np.full(len(cursors), self._size, np.int64)


class _Decimal(Decoder):
    """Two's complements, the most significant byte first."""

    def __init__(self, arrow: pa.DataType, size: int | None) -> None:
        self.arrow, self._size = arrow, size

    def read(self, cursors: Cursors) -> pa.Array:
        lengths = cursors.lengths() if self._size is None else np.full(len(cursors), self._size, np.int64)
        if (lengths > 16).any() or (lengths < 1).any():
            raise ValueError("a decimal does not have 1 to 16 bytes")
        starts = cursors.at
        cursors.skip(lengths)
        sign = np.where(cursors.data[starts] >= 0x80, 0xFF, 0).astype(np.uint8)
        out = np.repeat(sign[:, None], 16, axis=1)
        for place in range(int(lengths.max(initial=0))):
            rows = np.flatnonzero(lengths > place)
            out[rows, place] = cursors.data[starts[rows] + lengths[rows] - 1 - place]
        values = pa.Array.from_buffers(self.arrow, len(lengths), [None, pa.py_buffer(out)])
        values.validate(full=True)
        return values


class _Enum(Decoder):
    def __init__(self, symbols: Sequence[str]) -> None:
        self.arrow, self._symbols = pa.string(), pa.array(symbols, pa.string())

    def read(self, cursors: Cursors) -> pa.Array:
        return self._symbols.take(pa.array(cursors.longs()))


class _Union(Decoder):
    """Null or a value. A union of one type has a branch in front of each value, too."""

    def __init__(self, value: Decoder, branch: int, branches: int) -> None:
        self.arrow, self._value, self._branch, self._count = value.arrow, value, branch, branches
        self._byte = branch * 2 if branch < 64 else -1  # the branch's number; no byte is it if it takes two

    def read(self, cursors: Cursors) -> pa.Array:
        if cursors.skip_byte(self._byte):
            return self._value.read(cursors)
        present, rows = self._branches(cursors)
        if len(rows) == len(cursors):
            return self._value.read(cursors)
        if not len(rows):
            return pa.nulls(len(cursors), self.arrow)
        inner = cursors.part(rows)
        values = self._value.read(inner)
        cursors.at[rows] = inner.at
        return values.take(pa.array(np.cumsum(present) - 1, mask=~present))

    def skip(self, cursors: Cursors) -> None:
        if cursors.skip_byte(self._byte):
            self._value.skip(cursors)
            return
        _, rows = self._branches(cursors)
        inner = cursors.part(rows)
        self._value.skip(inner)
        cursors.at[rows] = inner.at

    def _branches(self, cursors: Cursors) -> tuple[Flags, Longs]:
        branches = cursors.longs()
        if ((branches < 0) | (branches >= self._count)).any():
            raise ValueError("a union has no such branch")
        present = branches == self._branch
        return present, np.flatnonzero(present)


class _Record(Decoder):
    def __init__(self, names: Sequence[str], values: Sequence[Decoder]) -> None:
        self.names, self.values = list(names), list(values)
        if not self.names:
            raise ValueError("a record has no fields")
        fields = [pa.field(name, value.arrow) for name, value in zip(names, values, strict=True)]
        self.arrow = pa.struct(fields)

    def read(self, cursors: Cursors) -> pa.Array:
        parts = [value.read(cursors) for value in self.values]
        return pa.StructArray.from_arrays(parts, fields=list(self.arrow))

    def skip(self, cursors: Cursors) -> None:
        for value in self.values:
            value.skip(cursors)


class _Items(Decoder):
    """Lists, and maps as lists of key and value. Items are read side by side: the first of all records, the second …"""

    def __init__(self, item: Decoder) -> None:
        self._item, self.arrow = item, pa.list_(pa.field("element", item.arrow))

    def read(self, cursors: Cursors) -> pa.Array:
        counts = np.zeros(len(cursors), np.int64)
        owners: list[Longs] = []
        pieces: list[pa.Array] = []
        rows = np.arange(len(cursors))
        while len(rows):
            inner = cursors.part(rows)
            remaining = self._count(inner)
            cursors.at[rows] = inner.at
            rows, remaining = rows[remaining > 0], remaining[remaining > 0]
            self._read_run(cursors, rows, remaining, owners, pieces)
            counts[rows] += remaining
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return self._made(pa.array(offsets), self._ordered(owners, pieces))

    def _read_run(
        self, cursors: Cursors, rows: Longs, left: Longs, owners: list[Longs], pieces: list[pa.Array]
    ) -> None:
        for turn in range(int(left.max(initial=0))):
            if len(pieces) >= MOST_ITEMS:
                raise LongListError
            active = rows[left > turn]
            inner = cursors.part(active)
            pieces.append(self._item.read(inner))
            cursors.at[active] = inner.at
            owners.append(active)

    def _ordered(self, owners: list[Longs], pieces: list[pa.Array]) -> pa.Array:
        if not pieces:
            return pa.array([], self._item.arrow)
        return pa.concat_arrays(pieces).take(pa.array(np.argsort(np.concatenate(owners), kind="stable")))

    def _count(self, cursors: Cursors) -> Longs:
        """Items of the next run of each record; 0 at the end."""
        counts = cursors.longs()
        sized = np.flatnonzero(counts < 0)
        if len(sized):
            inner = cursors.part(sized)
            inner.longs()
            cursors.at[sized] = inner.at
        counts = np.abs(counts)
        if (counts < 0).any() or (counts > cursors.ends - cursors.at).any():
            raise ValueError("a list has more items than its record has bytes")
        return counts

    def _made(self, offsets: pa.Array, items: pa.Array) -> pa.Array:
        return pa.ListArray.from_arrays(offsets, items, type=self.arrow)


class _Map(_Items):
    def __init__(self, value: Decoder) -> None:
        super().__init__(_Record(["key", "value"], [_Bytes(pa.string()), value]))
        self.arrow = pa.map_(pa.string(), pa.field("value", value.arrow))

    def _made(self, offsets: pa.Array, items: pa.Array) -> pa.Array:
        keys, values = (pc.struct_field(items, name) for name in ("key", "value"))
        return pa.MapArray.from_arrays(offsets, keys, values).cast(self.arrow)


def _decoder(avro: Any, names: dict[str, Decoder]) -> Decoder:  # noqa: C901, PLR0911 a line per kind of type
    if isinstance(avro, list):
        branch = next(number for number, inner in enumerate(avro) if inner != "null")
        return _Union(_decoder(avro[branch], names), branch, len(avro))
    kind = avro if isinstance(avro, str) else avro["type"]
    if isinstance(kind, (list, dict)):
        return _decoder(kind, names)
    if kind not in _KINDS:
        return names[kind]
    if kind == "record":
        return _named(avro, names, _record(avro, names))
    if kind == "array":
        return _Items(_decoder(avro["items"], names))
    if kind == "map":
        return _Map(_decoder(avro["values"], names))
    arrow = relaxed_type(arrow_type_of(avro))
    if kind == "enum":
        return _named(avro, names, _Enum(avro["symbols"]))
    if kind in ("fixed", "bytes"):
        size = avro["size"] if kind == "fixed" else None
        is_decimal = pa.types.is_decimal(arrow)
        made = _Decimal(arrow, size) if is_decimal else _Bytes(arrow, size)
        return _named(avro, names, made) if kind == "fixed" else made
    if kind in ("int", "long"):
        return _Number(arrow, is_int=kind == "int")
    if kind == "string":
        return _Bytes(arrow)
    return _Fixed(arrow, {"boolean": "u1", "float": "<f4", "double": "<f8"}[kind])


def _record(avro: Mapping[str, Any], names: dict[str, Decoder]) -> _Record:
    fields = avro["fields"]
    return _Record([field["name"] for field in fields], [_decoder(field["type"], names) for field in fields])


def _named(avro: Mapping[str, Any], names: dict[str, Decoder], made: Decoder) -> Decoder:
    names[avro["name"]] = made
    names[f"{avro.get('namespace', '')}.{avro['name']}"] = made
    return made


class RowDecoder:
    """Reads records of one schema into columns.

    Args:
        avro: the schema, a record.
        columns: names of the wanted fields; other fields are skipped.

    Raises:
        ValueError, KeyError, TypeError: the schema is not a valid record schema.
    """

    def __init__(self, avro: Mapping[str, Any], columns: Sequence[str]) -> None:
        self._record = _record(avro, {})
        self._wanted = frozenset(columns)

    def read(self, data: Bytes, starts: Longs, ends: Longs) -> pa.Table:
        """The records at these places, with the columns wanted in the order of the schema.

        Args:
            data: bytes, with at least 16 more after the end of the last record.
            starts: first byte of each record.
            ends: the byte after each record.

        Raises:
            ValueError, ArrowException: the bytes are not records of this schema.
            LongListError: a list or map is too long for decoding by field.
        """
        cursors, columns = Cursors(data, starts, ends), {}
        for name, value in zip(self._record.names, self._record.values, strict=True):
            if name in self._wanted:
                columns[name] = value.read(cursors)
            else:
                value.skip(cursors)
        if (cursors.at != ends).any():
            raise ValueError("a record goes on behind its last field")
        return pa.table(columns)
