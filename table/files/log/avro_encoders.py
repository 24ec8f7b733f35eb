"""Arrow columns encoded as Avro, a field at a time for all records together: the mirror of `avro_columns` (pure).

Each encoder first says how many bytes each value takes, and then writes all values to their places in one array. So a
record's fields lie one after the other although they are written column by column.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table.files.log.avro_cursors import Bytes, Longs
from table.schema.avro_schema import arrow_type_of, relaxed_type

_LONG_VALUE = 128  # average bytes of a value, from which on values are copied one by one
_VARINT_STEPS = np.array([1 << (7 * count) for count in range(1, 10)], np.uint64)


@dataclass(frozen=True)
class Piece:
    """Values of one Avro type, ready to be written.

    Attributes:
        lengths: bytes of each value.
        write: writes each value to its place. Arguments: the output, and the place of the first byte of each value.
    """

    lengths: Longs
    write: Callable[[Bytes, Longs], None]


class Encoder(ABC):
    """Writes values of one Avro type.

    Attributes:
        arrow: the type that values come in.
        takes_nulls: whether values may be null.
    """

    arrow: pa.DataType
    takes_nulls = False

    @abstractmethod
    def piece(self, values: pa.Array) -> Piece:
        """Prepares values."""


def numbers(values: Longs) -> Piece:
    """Zigzag numbers of variable length."""
    zigzag = (values.view(np.uint64) << np.uint64(1)) ^ (values >> np.int64(63)).view(np.uint64)
    lengths = np.searchsorted(_VARINT_STEPS, zigzag, side="right").astype(np.int64) + 1

    def write(out: Bytes, at: Longs) -> None:
        rows, rest, ends = at, zigzag, lengths
        for place in range(int(lengths.max(initial=0))):
            if place:
                more = np.flatnonzero(ends > place)
                rows, rest, ends = rows[more], rest[more], ends[more]
            low = (rest & np.uint64(0x7F)).astype(np.uint8)
            out[rows + place] = low | np.where(ends > place + 1, np.uint8(0x80), np.uint8(0))
            rest = rest >> np.uint64(7)

    return Piece(lengths, write)


def _fixed(raw: Bytes) -> Piece:
    """Values of the same number of bytes, a row each."""
    size = raw.shape[1]

    def write(out: Bytes, at: Longs) -> None:
        out[at[:, None] + np.arange(size)] = raw

    return Piece(np.full(len(raw), size, np.int64), write)


def scatter(out: Bytes, at: Longs, flat: Bytes, offsets: Longs) -> None:
    """Copies values that lie one after the other to their places. Long ones are copied one by one."""
    if int(offsets[-1] - offsets[0]) < _LONG_VALUE * len(at):
        lengths = np.diff(offsets)
        out[np.repeat(at - offsets[:-1], lengths) + np.arange(offsets[0], offsets[-1])] = flat[offsets[0] : offsets[-1]]
        return
    bounds = offsets.tolist()
    for start, end, place in zip(bounds[:-1], bounds[1:], at.tolist(), strict=True):
        out[place : place + end - start] = flat[start:end]


class _Number(Encoder):
    def __init__(self, arrow: pa.DataType) -> None:
        self.arrow = arrow

    def piece(self, values: pa.Array) -> Piece:
        plain = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
        return numbers(plain.to_numpy().astype(np.int64))


class _Plain(Encoder):
    """Values of a fixed number of bytes: boolean, float, double."""

    def __init__(self, arrow: pa.DataType, kind: str) -> None:
        self.arrow, self._kind = arrow, kind

    def piece(self, values: pa.Array) -> Piece:
        raw = np.ascontiguousarray(values.to_numpy(zero_copy_only=False).astype(self._kind))
        return _fixed(raw.view(np.uint8).reshape(len(values), raw.itemsize))


class _Decimal(Encoder):
    """Two's complements of a fixed size, the most significant byte first."""

    def __init__(self, arrow: pa.DataType, size: int) -> None:
        self.arrow, self._size = arrow, size

    def piece(self, values: pa.Array) -> Piece:
        raw = np.frombuffer(values.buffers()[1] or b"", np.uint8).reshape(-1, 16)
        mine = raw[values.offset : values.offset + len(values)]
        return _fixed(np.ascontiguousarray(mine[:, : self._size][:, ::-1]))


class _Bytes(Encoder):
    """Text and bytes, after their lengths."""

    def __init__(self, arrow: pa.DataType) -> None:
        self.arrow = arrow

    def piece(self, values: pa.Array) -> Piece:
        return _lengthy(*_text_of(values))


def _text_of(values: pa.Array) -> tuple[Bytes, Longs]:
    """The bytes of all values, and where each begins and ends in them."""
    if not len(values):
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    _, places, data = values.buffers()
    offsets = np.frombuffer(places, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    return np.frombuffer(data if data is not None else b"", np.uint8), offsets


def _lengthy(flat: Bytes, offsets: Longs) -> Piece:
    sizes = np.diff(offsets)
    count = numbers(sizes)

    def write(out: Bytes, at: Longs) -> None:
        count.write(out, at)
        scatter(out, at + count.lengths, flat, offsets)

    return Piece(count.lengths + sizes, write)


class _Union(Encoder):
    """Null or a value. A union of one type has a branch in front of each value, too."""

    def __init__(self, value: Encoder, branch: int, branches: int) -> None:
        self.arrow, self._value = value.arrow, value
        self._present, self._null = np.uint8(2 * branch), np.uint8(2 - 2 * branch)
        self.takes_nulls = branches > 1

    def piece(self, values: pa.Array) -> Piece:
        if values.null_count:
            rows = np.flatnonzero(pc.is_valid(values).to_numpy(zero_copy_only=False))
            inner = self._value.piece(values.take(pa.array(rows)))
        else:
            rows, inner = np.arange(len(values)), self._value.piece(values)
        lengths = np.ones(len(values), np.int64)
        lengths[rows] += inner.lengths

        def write(out: Bytes, at: Longs) -> None:
            out[at] = self._null
            out[at[rows]] = self._present
            inner.write(out, at[rows] + 1)

        return Piece(lengths, write)


class RecordEncoder(Encoder):
    """Records: their fields one after the other."""

    def __init__(self, names: Sequence[str], values: Sequence[Encoder]) -> None:
        self.names, self.values = list(names), list(values)
        self.arrow = pa.struct([pa.field(name, value.arrow) for name, value in zip(names, values, strict=True)])

    def piece(self, values: pa.Array) -> Piece:  # noqa: D102
        return self.piece_of(values.flatten())

    def piece_of(self, columns: Sequence[pa.Array]) -> Piece:
        """Records of columns in the order of the fields.

        Raises:
            ValueError: a field that may not be null has nulls.
        """
        for name, value, column in zip(self.names, self.values, columns, strict=True):
            check_nulls(column, f"the column {name!r}", takes_nulls=value.takes_nulls)
        parts = [value.piece(column) for value, column in zip(self.values, columns, strict=True)]

        def write(out: Bytes, at: Longs) -> None:
            for part in parts:
                part.write(out, at)
                at = at + part.lengths

        return Piece(np.sum([part.lengths for part in parts], axis=0, dtype=np.int64), write)


class Items(Encoder):
    """Lists in one run each: how many items, the items, and a 0."""

    def __init__(self, item: Encoder) -> None:
        self._item, self.arrow = item, pa.list_(pa.field("element", item.arrow))

    def piece(self, values: pa.Array) -> Piece:  # noqa: D102
        offsets = values.offsets.to_numpy().astype(np.int64)
        return self.piece_of(self._items(values, int(offsets[0]), int(offsets[-1])), np.diff(offsets))

    def _items(self, values: pa.Array, first: int, last: int) -> pa.Array:
        return values.values.slice(first, last - first)

    def piece_of(self, items: pa.Array, counts: Longs) -> Piece:
        """Lists, one after the other: `counts` says how many of the items each list has.

        Raises:
            ValueError: an item that may not be null is.
        """
        check_nulls(items, "a list", takes_nulls=self._item.takes_nulls)
        inner = self._item.piece(items)
        ends = np.concatenate([[0], np.cumsum(inner.lengths)])
        bounds = np.concatenate([[0], np.cumsum(counts)])
        before = ends[bounds[:-1]]
        some = np.flatnonzero(counts)
        head = numbers(counts[some])
        heads = np.zeros(len(counts), np.int64)
        heads[some] = head.lengths
        bodies = heads + ends[bounds[1:]] - before

        def write(out: Bytes, at: Longs) -> None:
            head.write(out, at[some])
            inner.write(out, np.repeat(at + heads - before, counts) + ends[:-1])
            out[at + bodies] = 0

        return Piece(bodies + 1, write)


def check_nulls(values: pa.Array | pa.ChunkedArray, where: str, *, takes_nulls: bool) -> None:
    """Refuses nulls that a schema does not allow.

    Raises:
        ValueError: names the place.
    """
    if values.null_count and not takes_nulls:
        raise ValueError(f"{where} has nulls, which its schema does not allow")


class _Map(Items):
    def __init__(self, value: Encoder) -> None:
        super().__init__(RecordEncoder(["key", "value"], [_Bytes(pa.string()), value]))
        self.arrow = pa.map_(pa.string(), pa.field("value", value.arrow))

    def _items(self, values: pa.Array, first: int, last: int) -> pa.Array:
        parts = [part.slice(first, last - first) for part in (values.keys, values.items)]
        return pa.StructArray.from_arrays(parts, ["key", "value"])


def make_encoder(avro: Any) -> Encoder:  # noqa: PLR0911 a line per kind of type
    """The encoder of a type of a table's schema, as `table.schema.avro_schema.to_avro` makes them.

    Raises:
        ValueError: tables written here have no such type.
    """
    if isinstance(avro, list):
        [branch] = [number for number, inner in enumerate(avro) if inner != "null"]
        return _Union(make_encoder(avro[branch]), branch, len(avro))
    kind = avro if isinstance(avro, str) else avro["type"]
    if kind == "record":
        return _record(avro)
    if kind == "array":
        return Items(make_encoder(avro["items"]))
    if kind == "map":
        return _Map(make_encoder(avro["values"]))
    arrow = relaxed_type(arrow_type_of(avro))
    if kind in ("int", "long"):
        return _Number(arrow)
    if kind in ("string", "bytes") and not pa.types.is_decimal(arrow):
        return _Bytes(arrow)
    if kind == "fixed" and pa.types.is_decimal(arrow):
        return _Decimal(arrow, avro["size"])
    plain = {"boolean": "u1", "float": "<f4", "double": "<f8"}
    if kind not in plain:
        raise ValueError(f"the type {avro!r} is not written")
    return _Plain(arrow, plain[kind])


def _record(avro: Mapping[str, Any]) -> RecordEncoder:
    fields = avro["fields"]
    return RecordEncoder([field["name"] for field in fields], [make_encoder(field["type"]) for field in fields])


class RowEncoder:
    """Writes rows as records of one schema, each after four bytes of its length.

    Args:
        avro: the schema, a record.

    Raises:
        ValueError: the schema has a type that tables written here do not have.
    """

    def __init__(self, avro: Mapping[str, Any]) -> None:
        self._record = _record(avro)

    def encode(self, rows: pa.Table) -> Bytes:
        """The records, one after the other.

        Args:
            rows: with the columns of the schema, in any order.

        Raises:
            ArrowInvalid: a column has another type.
            ValueError: a column that may not be null has nulls.
        """
        columns = []
        for name, value in zip(self._record.names, self._record.values, strict=True):
            column = rows.column(name).cast(value.arrow).combine_chunks()
            if isinstance(column, pa.ChunkedArray):
                column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], value.arrow)
            columns.append(column)
        piece = self._record.piece_of(columns)
        ends = np.cumsum(piece.lengths + 4)
        out = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
        starts = ends - piece.lengths
        out[starts[:, None] + np.arange(-4, 0)] = piece.lengths.astype(">i4").view(np.uint8).reshape(-1, 4)
        piece.write(out, starts)
        return out
