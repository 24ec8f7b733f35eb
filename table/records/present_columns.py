"""Records without some of their columns, and which columns they have (pure; SparkRecordMergingUtils).

A table of such records has a column of bits: bit n says whether the record has the n-th column of the table. A table
without this column holds whole records.
"""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table.columns.take import take_values

PRESENT_COLUMN = "_hudistream_present"

Flags = npt.NDArray[np.bool_]
_Bits = npt.NDArray[np.uint8]


def present_type(columns: int) -> pa.DataType:
    """The type of the column of bits for a number of columns, which includes that column."""
    return pa.binary(-(-columns // 8))


def present_column(names: Sequence[str], present: Collection[str] | None, count: int) -> pa.Array:
    """The column of bits for records that have the same columns.

    Args:
        names: all columns of their table, the column of bits included.
        present: the columns that the records have; None: all.
        count: number of records.
    """
    flags = np.array([present is None or name in present for name in names], np.bool_)
    return _column(np.tile(np.packbits(flags), (count, 1)))


def completed(old: pa.Table, new: pa.Table, newer: Flags) -> pa.Table:
    """The newer record of each pair, with the columns that it does not have from the older one.

    Args:
        old: the records of the pairs that arrived first; without the column of bits they are whole.
        new: the records of the pairs that arrived second, with the column of bits.
        newer: in which pairs the record of `new` is the newer one.

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
        columns.append(take_values(both, np.where(use_new, count, 0) + np.arange(count)))
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
