"""Records with some of their columns alone, and which they have (pure; SparkRecordMergingUtils).

A column of bits travels with such records: bit n stands for the n-th column of the table that holds them. Tables
without this column hold whole records.
"""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

PRESENT_COLUMN = "_hudistream_present"

Flags = npt.NDArray[np.bool_]
_Bits = npt.NDArray[np.uint8]


def present_type(columns: int) -> pa.DataType:
    """The type of the column of bits for so many columns, itself included."""
    return pa.binary(-(-columns // 8))


def present_column(names: Sequence[str], present: Collection[str] | None, count: int) -> pa.Array:
    """What so many records have.

    Args:
        names: of all columns of their table, the one of bits included.
        present: those that the records have; None: all of them.
        count: number of records.
    """
    flags = np.array([present is None or name in present for name in names], np.bool_)
    return _column(np.tile(np.packbits(flags), (count, 1)))


def completed(old: pa.Table, new: pa.Table, newer: Flags) -> pa.Table:
    """The newer of two records each, with the columns that it lacks from the older one.

    Args:
        old: records in the order of arrival; ones without the column of bits are whole.
        new: as many, which have the column of bits.
        newer: of which pairs the second record is the newer one.

    Returns:
        Records with the columns of `old`.
    """
    names, count = new.column_names, len(new)
    later = _bits(new)
    earlier = _bits(old) if PRESENT_COLUMN in old.column_names else np.full_like(later, 0xFF)
    columns = []
    for name in old.column_names:
        if name == PRESENT_COLUMN:
            columns.append(_column(later | earlier))
            continue
        byte, bit = divmod(names.index(name), 8)
        has_new, has_old = ((bits[:, byte] & (0x80 >> bit)) != 0 for bits in (later, earlier))
        use_new = np.where(newer, has_new | ~has_old, has_new & ~has_old)
        first, second = old.column(name), new.column(name)
        both = pa.chunked_array([*first.chunks, *second.chunks], first.type)
        columns.append(both.take(pa.array(np.where(use_new, count, 0) + np.arange(count))))
    return pa.Table.from_arrays(columns, schema=old.schema)


def _bits(rows: pa.Table) -> _Bits:
    column = rows.column(PRESENT_COLUMN)
    width = column.type.byte_width
    pieces = [np.frombuffer(chunk.buffers()[1], np.uint8).reshape(-1, width)[chunk.offset :][: len(chunk)]
              for chunk in column.chunks if len(chunk)]  # fmt: skip
    return np.concatenate(pieces) if pieces else np.zeros((0, width), np.uint8)


def _column(bits: _Bits) -> pa.Array:
    made = np.ascontiguousarray(bits)
    return pa.Array.from_buffers(pa.binary(made.shape[1]), len(made), [None, pa.py_buffer(made)])
