"""Thrift's compact encoding, without a schema: the encoding of Parquet footers (pure).

A struct is decoded into a dict from field id to `Field`, in the order of the bytes. Unknown fields survive a
round trip. Input may be hostile: the decoder allocates no more than the input's length justifies, and nesting
is bounded. The encoding is that of the Thrift project's ``thrift-compact-protocol.md``.
"""

import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

from table.errors import CorruptFileError

STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(13)
_INTEGERS = frozenset((I16, I32, I64))
_BOOLEANS = frozenset((TRUE, FALSE))
_LISTS = frozenset((LIST, SET))
MAX_DEPTH = 32
MAX_VARINT_BYTES = 10
_make = tuple.__new__  # called directly, not through NamedTuple's constructor: a footer has hundreds of fields


class Field(NamedTuple):
    """One value of a struct.

    Attributes:
        type: one of the types above; booleans are TRUE or FALSE.
        value: int, bool, float, bytes, `Struct`, `Items` or `Pairs`.
    """

    type: int
    value: Any


class Items(NamedTuple):
    """A list or a set: the type of its elements, and the elements."""

    type: int
    values: list[Any]


class Pairs(NamedTuple):
    """A map: types of keys and values, and the entries in order."""

    key_type: int
    value_type: int
    entries: list[tuple[Any, Any]]


Struct = dict[int, Field]


def decode_struct(data: bytes | memoryview, behind: int = 0) -> Struct:
    """Decodes a struct.

    Args:
        data: exactly one struct, or the rest of one. If it is a view, the decoded texts are views, too.
        behind: id of the field before the rest.

    Raises:
        CorruptFileError: when the bytes are not a struct.
    """
    try:
        decoded, end = _read_struct(data, 0, 0, behind)
    except (IndexError, struct.error) as error:
        raise CorruptFileError("a Thrift struct is cut short") from error
    if end != len(data):
        raise CorruptFileError(f"a Thrift struct has {len(data) - end} bytes too many")
    return decoded


def _read_struct(data: bytes | memoryview, at: int, depth: int, number: int = 0) -> tuple[Struct, int]:
    if depth > MAX_DEPTH:
        raise CorruptFileError(f"a Thrift struct is nested more than {MAX_DEPTH} deep")
    fields: Struct = {}
    while True:
        head = data[at]
        at += 1
        if head == STOP:
            return fields, at
        kind, delta = head & 15, head >> 4
        if delta:
            number += delta
        else:
            raw, at = _read_varint(data, at)
            number = raw >> 1 ^ -(raw & 1)
        if number in fields:
            raise CorruptFileError(f"a Thrift struct has field {number} twice")
        if kind in _INTEGERS:
            # most values of a footer are small integers, so they are read inline
            raw = data[at]
            at += 1
            if raw > 127:
                raw, at = _read_varint(data, at - 1)
            fields[number] = _make(Field, (kind, raw >> 1 ^ -(raw & 1)))
        elif kind in _BOOLEANS:
            fields[number] = Field(kind, kind == TRUE)
        else:
            value, at = _read_value(data, at, kind, depth)
            fields[number] = _make(Field, (kind, value))


def _read_value(data: bytes | memoryview, at: int, kind: int, depth: int) -> tuple[Any, int]:  # noqa: PLR0911 one a type
    if kind == BINARY:
        size, at = _read_varint(data, at)
        _check_size(data, at, size)
        return data[at : at + size], at + size
    if kind == STRUCT:
        return _read_struct(data, at, depth + 1)
    if kind in _INTEGERS:
        raw, at = _read_varint(data, at)
        return raw >> 1 ^ -(raw & 1), at
    if kind in _LISTS:
        return _read_items(data, at, depth + 1)
    if kind == MAP:
        return _read_pairs(data, at, depth + 1)
    if kind == BYTE:
        return data[at], at + 1
    if kind in _BOOLEANS:  # elements of a collection
        return data[at] == TRUE, at + 1
    if kind == DOUBLE:
        return struct.unpack_from("<d", data, at)[0], at + 8
    raise CorruptFileError(f"a Thrift value has the unknown type {kind}")


def _read_items(data: bytes | memoryview, at: int, depth: int) -> tuple[Items, int]:
    if depth > MAX_DEPTH:
        raise CorruptFileError(f"a Thrift list is nested more than {MAX_DEPTH} deep")
    head = data[at]
    at += 1
    kind, size = head & 15, head >> 4
    if size == 15:
        size, at = _read_varint(data, at)
    _check_size(data, at, size)
    values = []
    for _ in range(size):
        value, at = _read_value(data, at, kind, depth)
        values.append(value)
    return Items(kind, values), at


def _read_pairs(data: bytes | memoryview, at: int, depth: int) -> tuple[Pairs, int]:
    if depth > MAX_DEPTH:
        raise CorruptFileError(f"a Thrift map is nested more than {MAX_DEPTH} deep")
    size, at = _read_varint(data, at)
    if not size:
        return Pairs(STOP, STOP, []), at
    kinds = data[at]
    _check_size(data, at, size)
    at += 1
    entries = []
    for _ in range(size):
        key, at = _read_value(data, at, kinds >> 4, depth)
        value, at = _read_value(data, at, kinds & 15, depth)
        entries.append((key, value))
    return Pairs(kinds >> 4, kinds & 15, entries), at


def _check_size(data: bytes | memoryview, at: int, size: int) -> None:
    # every element takes at least a byte
    if size > len(data) - at:
        raise CorruptFileError(f"a Thrift value says it has {size} elements, and {len(data) - at} bytes are left")


def _read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift >= 7 * MAX_VARINT_BYTES:
            raise CorruptFileError("a Thrift integer is longer than ten bytes")


def read_field_head(data: bytes, at: int, last: int) -> tuple[int, int, int]:
    """The type and the id of a field, and where its value begins.

    Args:
        data: encoded structs.
        at: where the field begins.
        last: id of the field before it; 0 for the first.

    Returns:
        The type is STOP at the end of the struct; the id is then `last`.
    """
    head = data[at]
    if head > 15 or head == STOP:
        return head & 15, last + (head >> 4), at + 1
    number, at = read_integer(data, at + 1)
    return head, number, at


def read_integer(data: bytes, at: int) -> tuple[int, int]:
    """An integer, and where it ends."""
    raw, at = _read_varint(data, at)
    return raw >> 1 ^ -(raw & 1), at


def read_list_header(data: bytes, at: int) -> tuple[int, int, int]:
    """The type of the elements of a list, their number, and where they begin."""
    head = data[at]
    if head >> 4 < 15:
        return head & 15, head >> 4, at + 1
    size, at = _read_varint(data, at + 1)
    return head & 15, size, at


def skip_struct(data: bytes, at: int, depth: int = 0) -> int:
    """Where a struct ends that begins at `at`.

    Raises:
        CorruptFileError: the bytes are not a struct.
        IndexError: they are cut short.
    """
    if depth > MAX_DEPTH:
        raise CorruptFileError(f"a Thrift struct is nested more than {MAX_DEPTH} deep")
    while True:
        head = data[at]
        at += 1
        if head == STOP:
            return at
        kind = head & 15
        if head < 16:
            at = _skip_varint(data, at)
        if kind in _INTEGERS:
            while data[at] > 127:
                at += 1
            at += 1
        elif kind not in _BOOLEANS:
            at = skip_value(data, at, kind, depth)


def skip_value(data: bytes, at: int, kind: int, depth: int = 0) -> int:
    """Where the value of a field ends; errors are those of `skip_struct`.

    Args:
        data: encoded structs.
        at: where the value begins.
        kind: its type.
        depth: of the struct around it.
    """
    if kind == BINARY:
        size = data[at]
        at += 1
        if size > 127:
            size, at = _read_varint(data, at - 1)
        _check_size(data, at, size)
        return at + size
    if kind == STRUCT:
        return skip_struct(data, at, depth + 1)
    if kind in _INTEGERS:
        return _skip_varint(data, at)
    if kind in _BOOLEANS:
        return at
    if kind in _LISTS:
        return _skip_items(data, at, depth + 1)
    return _read_value(data, at, kind, depth)[1]


def _skip_items(data: bytes, at: int, depth: int) -> int:
    if depth > MAX_DEPTH:
        raise CorruptFileError(f"a Thrift list is nested more than {MAX_DEPTH} deep")
    kind, size, at = read_list_header(data, at)
    _check_size(data, at, size)
    if kind in _BOOLEANS:
        return at + size
    if kind in _INTEGERS:
        for _ in range(size):
            at = _skip_varint(data, at)
        return at
    for _ in range(size):
        at = skip_value(data, at, kind, depth)
    return at


def _skip_varint(data: bytes, at: int) -> int:
    while data[at] > 127:
        at += 1
    return at + 1


def append_integer(out: bytearray, value: int) -> None:
    """Appends the bytes of an integer."""
    _write_varint(out, value << 1 ^ value >> 63)


def encode_struct(fields: Struct, behind: int = 0) -> bytes:
    """The bytes of a struct, or of the rest of one; the inverse of `decode_struct`."""
    out = bytearray()
    append_struct(out, fields, behind)
    return bytes(out)


def encode_list_header(kind: int, size: int) -> bytes:
    """The bytes before the elements of a list."""
    out = bytearray()
    if size < 15:
        out.append(size << 4 | kind)
    else:
        out.append(0xF0 | kind)
        _write_varint(out, size)
    return bytes(out)


def append_struct(out: bytearray, fields: Struct, behind: int = 0) -> None:
    """Appends the bytes of `encode_struct` to `out`."""
    last = behind
    for number, (kind, value) in fields.items():
        delta = number - last
        if 0 < delta <= 15:
            out.append(delta << 4 | kind)
        else:
            out.append(kind)
            _write_varint(out, number << 1 ^ number >> 63)
        last = number
        if kind in _INTEGERS:
            raw = value << 1 ^ value >> 63
            if 0 <= raw < 128:
                out.append(raw)
            else:
                _write_varint(out, raw)
        elif kind not in _BOOLEANS:
            _write_value(out, kind, value)
    out.append(STOP)


def _write_value(out: bytearray, kind: int, value: Any) -> None:  # noqa: C901 one branch a type
    if kind == BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        append_struct(out, value)
    elif kind in _INTEGERS:
        _write_varint(out, value << 1 ^ value >> 63)
    elif kind in _LISTS:
        out += encode_list_header(value.type, len(value.values))
        _write_all(out, value.type, value.values)
    elif kind == MAP:
        _write_varint(out, len(value.entries))
        if value.entries:
            out.append(value.key_type << 4 | value.value_type)
        for key, held in value.entries:
            _write_value(out, value.key_type, key)
            _write_value(out, value.value_type, held)
    elif kind == BYTE:
        out.append(value)
    elif kind in _BOOLEANS:
        out.append(TRUE if value else FALSE)
    elif kind == DOUBLE:
        out += struct.pack("<d", value)
    else:
        raise ValueError(f"{kind} is no type of Thrift's compact encoding")


def _write_all(out: bytearray, kind: int, values: Iterable[Any]) -> None:
    if kind == STRUCT:
        for value in values:
            append_struct(out, value)
    else:
        for value in values:
            _write_value(out, kind, value)


def _write_varint(out: bytearray, value: int) -> None:
    value &= 0xFFFFFFFFFFFFFFFF
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
