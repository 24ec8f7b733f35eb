"""Finds text that is not UTF-8, a column at a time, and makes it readable (pure).

Spark accepts any bytes as a string (``CAST(X'FF' AS STRING)``), and neither Arrow nor Parquet checks them. A reader of
such a value fails later.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.columns.cast import entries_of, list_offsets, rebuilt_map

_SHOWN_BYTES = 20

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class BadText:
    """Rows with bytes in a string column that are not UTF-8.

    Attributes:
        column: path of the column; within structs, lists and maps the names are joined by dots.
        rows: for each row, whether it holds such bytes.
        example: the bytes of one bad value.
    """

    column: str
    rows: Flags
    example: bytes

    @property
    def reason(self) -> str:
        """The fault in these rows, in words."""
        more = "…" if len(self.example) > _SHOWN_BYTES else ""
        return f"the text in column {self.column!r} is not UTF-8, such as X'{self.example[:_SHOWN_BYTES].hex()}{more}'"


def find_bad_text(rows: pa.Table) -> list[BadText]:
    """String columns, at any depth, that hold bytes which are not UTF-8. One pass of Arrow if there are none."""
    found: list[BadText] = []
    for name in rows.column_names:
        column = rows.column(name)
        if not all(map(_is_text, column.chunks)):
            for path, flags, example in _bad_parts(name, _one_array(column)):
                found.append(BadText(path, flags, example))
    return found


def holds_text(kind: pa.DataType) -> bool:
    """Whether a type contains strings, at any depth."""
    if pa.types.is_dictionary(kind):
        return holds_text(kind.value_type)
    if pa.types.is_nested(kind):
        return any(holds_text(kind.field(number).type) for number in range(kind.num_fields))
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def made_readable(rows: pa.Table) -> pa.Table:
    """The same rows, with each byte that is not UTF-8 replaced by four characters: a backslash, x, two digits."""
    columns = [_readable(_one_array(column)) if holds_text(column.type) else column for column in rows.columns]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _is_text(array: pa.Array) -> bool:
    """Whether all strings in an array are UTF-8. In a slice only the slice's own nested values are checked."""
    kind = array.type
    if not holds_text(kind):
        return True
    if pa.types.is_struct(kind):
        return all(map(_is_text, array.flatten()))
    if pa.types.is_map(kind):
        first, last = (array.offsets[at].as_py() for at in (0, -1))
        return all(_is_text(part.slice(first, last - first)) for part in (array.keys, array.items))
    if pa.types.is_nested(kind):
        return _is_text(array.flatten())
    try:
        (array.dictionary if pa.types.is_dictionary(kind) else array).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array whose children begin with its first row, so that nested values are easy to attribute."""
    whole = column.combine_chunks()
    whole = pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
    return whole.take(pa.array(np.arange(len(whole))))


def _bad_parts(path: str, array: pa.Array) -> Iterator[tuple[str, Flags, bytes]]:
    """For each string part with bad values: its path, a flag for each row, and the bytes of one bad value."""
    kind = array.type
    if not holds_text(kind):
        return
    if pa.types.is_dictionary(kind):
        yield from _bad_parts(path, array.dictionary_decode())
    elif pa.types.is_struct(kind):
        for number, part in enumerate(array.flatten()):
            yield from _bad_parts(f"{path}.{kind.field(number).name}", part)
    elif pa.types.is_map(kind):
        yield from _bad_parts(path, entries_of(array))
    elif pa.types.is_nested(kind):
        parents = pc.list_parent_indices(array).to_numpy()
        inner = f"{path}.element" if not pa.types.is_struct(kind.value_type) else path
        for part_path, part, example in _bad_parts(inner, array.flatten()):
            flags = np.zeros(len(array), np.bool_)
            flags[parents[part]] = True
            yield part_path, flags, example
    else:
        values = array.cast(pa.large_binary()).to_pylist()
        flags = np.array([value is not None and not _decodes(value) for value in values], np.bool_)
        if flags.any():
            yield path, flags, values[int(flags.argmax())]


def _decodes(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _readable(array: pa.Array) -> pa.Array:
    kind = array.type
    if not holds_text(kind):
        return array
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(array.indices, _readable(array.dictionary))
    if pa.types.is_struct(kind):
        parts = [_readable(part) for part in array.flatten()]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=pc.is_null(array))
    if pa.types.is_map(kind):
        return rebuilt_map(array, _readable, _readable, kind)
    if pa.types.is_nested(kind):
        values = _readable(array.flatten())
        return pa.ListArray.from_arrays(list_offsets(array), values, type=kind, mask=pc.is_null(array))
    values = array.cast(pa.large_binary()).to_pylist()
    return pa.array([None if value is None else value.decode("utf-8", "backslashreplace") for value in values], kind)
