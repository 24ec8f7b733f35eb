"""Least and greatest value of a file's columns, with counts: what statistics of the metadata table say (pure).

They come from the footer of a base file, or from the rows of a log file. Values are physical ones, as Parquet stores
them: a date is a number of days, a timestamp a number of microseconds, a decimal its unscaled number. So JSON carries
them from a task to the driver.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from decimal import Context
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from table.files.parquet.footer import MAGIC
from table.files.parquet.value_bounds import MOST_BOUND_BYTES, is_text, lower_bound, upper_bound

PhysicalValue = bool | int | float | str  # of binary columns a str with a character for each byte
_INFINITE = float("inf")
ALL_DIGITS = Context(prec=77)  # Python's decimals keep 28 digits unless they are told


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """What a file's statistics say of one column.

    Attributes:
        least: the least value, or a bound below it; None where there is no value. It is -infinity where infinity was
            seen beside a NaN: by one value as both bounds, readers lose the NaN for ``<>`` that value.
        greatest: the greatest value, or a bound above it. It is infinite where a NaN was seen: Hudi takes a bound that
            is NaN as one that no number reaches, and loses numbers. Footers of other writers leave NaN out.
        values: rows, with nulls.
        nulls: rows without a value.
        size: compressed bytes; 0 in log files.
        uncompressed: bytes before compression; 0 in log files.
    """

    least: PhysicalValue | None
    greatest: PhysicalValue | None
    values: int
    nulls: int
    size: int = 0
    uncompressed: int = 0


Ranges = Mapping[str, ColumnRange]


def is_ranged(kind: pa.DataType) -> bool:
    """Whether columns of a type (Arrow) have ranges: neither nested ones nor times of day do."""
    return bool(
        pa.types.is_boolean(kind)
        or kind in (pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32())
        or pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_decimal128(kind)
        or (pa.types.is_timestamp(kind) and kind.unit == "us")
    )


def ranges_of_footer(footer: bytes, columns: Sequence[str]) -> dict[str, ColumnRange] | None:
    """As `ranges_of_file`, of a file that was just written.

    Args:
        footer: the end of the file, from the Thrift bytes on.
        columns: names of columns.
    """
    return ranges_of_file(pq.read_metadata(pa.BufferReader(MAGIC + footer)), columns)


def ranges_of_file(metadata: pq.FileMetaData, columns: Sequence[str]) -> dict[str, ColumnRange] | None:
    """The ranges of a base file.

    Args:
        metadata: its footer.
        columns: names of columns without nested ones; a column that the file does not have gets no range.

    Returns:
        The ranges by column. None where the footer does not bound the values of a column.
    """
    places = {metadata.schema.column(number).path: number for number in range(metadata.num_columns)}
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    found = {}
    for name in columns:
        if name not in places:
            continue
        kind = metadata.schema.column(places[name])
        parts = [_range_of_chunk(group.column(places[name]), kind) for group in groups]
        whole = [part for part in parts if part is not None]
        if len(whole) < len(parts):
            return None
        found[name] = widen(whole)
    return found


def _range_of_chunk(chunk: pq.ColumnChunkMetaData, kind: pq.ColumnSchema) -> ColumnRange | None:
    statistics = chunk.statistics
    if statistics is None or statistics.null_count is None:
        return None
    count, nulls = chunk.num_values, statistics.null_count
    size, uncompressed = chunk.total_compressed_size, chunk.total_uncompressed_size
    if nulls == count:
        return ColumnRange(None, None, count, nulls, size, uncompressed)
    if statistics.has_min_max:
        least, greatest = _physical(statistics.min_raw, kind), _physical(statistics.max_raw, kind)
    elif kind.physical_type in ("FLOAT", "DOUBLE"):
        least = greatest = _INFINITE  # no value is a number
    else:
        return None
    return ColumnRange(least, greatest, count, nulls, size, uncompressed)


def _physical(raw: Any, kind: pq.ColumnSchema) -> PhysicalValue:
    if not isinstance(raw, bytes):
        number: PhysicalValue = raw
        return number
    logical = kind.logical_type.type
    if logical == "DECIMAL":
        return int.from_bytes(raw, "big", signed=True)
    return raw.decode() if logical == "STRING" else raw.decode("latin-1")


def ranges_of_rows(tables: Iterable[pa.Table], columns: Sequence[str]) -> dict[str, ColumnRange]:
    """The ranges of rows that a log file holds.

    Args:
        tables: the rows (Arrow).
        columns: names of columns. One that rows do not have is null there. One of another type than `is_ranged`, or
            with a value that cannot be bounded, gets no range.
    """
    parts: dict[str, list[ColumnRange]] = {name: [] for name in columns}
    for rows in tables:
        for name in tuple(parts):
            found = _range_in(rows, name)
            if found is None:
                del parts[name]
            else:
                parts[name].append(found)
    return {name: widen(of_column) for name, of_column in parts.items()}


def _range_in(rows: pa.Table, name: str) -> ColumnRange | None:
    if name not in rows.column_names:
        return ColumnRange(None, None, len(rows), len(rows))
    column = rows.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return _range_of_column(column) if is_ranged(column.type) else None


def _range_of_column(column: pa.ChunkedArray) -> ColumnRange | None:
    kind, count, nulls = column.type, len(column), column.null_count
    if nulls == count:
        return ColumnRange(None, None, count, nulls)
    ends = pc.min_max(column)
    if is_text(kind) or pa.types.is_binary(kind):
        return _bounded(ends, kind, count, nulls)
    least, greatest = _plain(ends["min"], kind), _plain(ends["max"], kind)
    if pa.types.is_floating(kind) and pc.any(pc.is_nan(column)).as_py():
        greatest = _INFINITE
        if least == _INFINITE:
            least = -_INFINITE
        elif least != least:  # noqa: PLR0124 all are NaN
            least = _INFINITE
    return ColumnRange(least, greatest, count, nulls)


def _bounded(ends: pa.StructScalar, kind: pa.DataType, count: int, nulls: int) -> ColumnRange | None:
    """The range of strings or binaries: long values are cut, as in footers. None where a bound would be too long."""
    text = is_text(kind)
    lower, _ = lower_bound(ends["min"].as_buffer().to_pybytes(), is_text=text)
    upper, _ = upper_bound(ends["max"].as_buffer().to_pybytes(), is_text=text)
    if len(upper) > MOST_BOUND_BYTES:
        return None
    encoding = "utf-8" if text else "latin-1"
    return ColumnRange(lower.decode(encoding), upper.decode(encoding), count, nulls)


def _plain(value: pa.Scalar, kind: pa.DataType) -> PhysicalValue:
    if pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        return int(value.value)
    if pa.types.is_decimal128(kind):
        return int(value.as_py().scaleb(kind.scale, ALL_DIGITS))
    plain: PhysicalValue = value.as_py()
    return plain


def _order(value: PhysicalValue) -> tuple[bool, Any]:
    """Spark's and Java's order: NaN is greater than all numbers, and equals itself."""
    is_nan = value != value  # noqa: PLR0124
    return is_nan, 0 if is_nan else value


def as_read(found: ColumnRange, kind: pa.DataType) -> ColumnRange:
    """The range of a file's column as readers see it, whose column has become a float since the file was written.

    Args:
        found: by the file's footer.
        kind: the column's type in the table (Arrow).
    """
    if not pa.types.is_floating(kind) or not isinstance(found.least, int) or not isinstance(found.greatest, int):
        return found
    return replace(found, least=rounded_to(found.least, kind), greatest=rounded_to(found.greatest, kind))


def rounded_to(number: int, kind: pa.DataType) -> float:
    """A whole number as a column of floats holds it: rounded once."""
    return float(np.int64(number).astype(kind.to_pandas_dtype()))


def covers(known: ColumnRange, found: ColumnRange) -> tuple[bool, bool]:
    """Whether a range begins no later than another one, and whether it ends no earlier.

    Args:
        known: the range. A NaN in it, which Hudi records and earlier versions of this project recorded, stands for
            infinity.
        found: the other one.
    """
    if found.least is None or found.greatest is None:
        return True, True
    if known.least is None or known.greatest is None:
        return False, False
    least, greatest = (_INFINITE if end != end else end for end in (known.least, known.greatest))  # noqa: PLR0124
    return _order(least) <= _order(found.least), _order(found.greatest) <= _order(greatest)


def widen(ranges: Sequence[ColumnRange]) -> ColumnRange:
    """One range for the values of all; counts and sizes are added."""
    bounded = [one for one in ranges if one.least is not None and one.greatest is not None]
    return ColumnRange(
        min((one.least for one in bounded if one.least is not None), default=None, key=_order),
        max((one.greatest for one in bounded if one.greatest is not None), default=None, key=_order),
        sum(one.values for one in ranges),
        sum(one.nulls for one in ranges),
        sum(one.size for one in ranges),
        sum(one.uncompressed for one in ranges),
    )


def encode_ranges(ranges: Ranges | None) -> Any:
    """The ranges of a file as JSON has them, for the way from a task to the driver."""
    return None if ranges is None else {name: astuple(found) for name, found in ranges.items()}


def decode_ranges(encoded: Any) -> dict[str, ColumnRange] | None:
    """The inverse of `encode_ranges`."""
    return None if encoded is None else {name: ColumnRange(*found) for name, found in encoded.items()}
