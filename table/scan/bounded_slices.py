"""What statistics of columns guarantee for all rows of a slice, as an Arrow expression (pure).

If a scan's condition contradicts it, no row of the slice can match. Each value of a row comes from one of the slice's
files.
"""

from collections.abc import Mapping
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from table.files.column_ranges import ALL_DIGITS, ColumnRange, PhysicalValue, is_ranged, widen
from table.view.file_group import FileSlice


def boundable_columns(schema: pa.Schema, names: frozenset[str]) -> dict[str, pa.DataType]:
    """The columns of a condition whose statistics can guarantee anything, with their types.

    Floats are left out: statistics do not count values that are no numbers, for which ``!=`` is true. So are binaries:
    Hudi orders their bytes as signed ones where it puts ranges together.

    Args:
        schema: the table's columns (Arrow), meta columns included.
        names: columns of the condition.
    """
    kinds = {name: schema.field(name).type for name in sorted(names & set(schema.names))}
    return {
        name: kind
        for name, kind in kinds.items()
        if is_ranged(kind) and not pa.types.is_floating(kind) and not pa.types.is_binary(kind)
    }


def slice_guarantee(
    found: FileSlice, kinds: Mapping[str, pa.DataType], ranges: Mapping[tuple[str, str], ColumnRange]
) -> pc.Expression | None:
    """An expression that is true for every row of a slice; None where no statistics bound it.

    Args:
        found: the slice.
        kinds: of `boundable_columns`.
        ranges: path of a file and column -> range.
    """
    known: pc.Expression | None = None
    for name, kind in kinds.items():
        parts = [ranges.get((file.path, name)) for file in found.files]
        bounded = [part for part in parts if part is not None]
        bound = (
            _bound(name, kind, widen(bounded))
            if len(bounded) == len(parts) and all(map(_is_bounded, bounded))
            else None
        )
        if bound is not None:
            known = bound if known is None else known & bound
    return known


def _is_bounded(found: ColumnRange) -> bool:
    """Whether a range bounds the values of its file.

    Hudi records a file without bounds in its footer as one of nulls alone. So nulls alone bound nothing.
    """
    return found.values == 0 or (found.least is not None and found.greatest is not None)


def _bound(name: str, kind: pa.DataType, found: ColumnRange) -> pc.Expression | None:
    if found.least is None or found.greatest is None or _may_be_in_javas_order(found.least, found.greatest):
        return None
    least, greatest = _scalar(found.least, kind), _scalar(found.greatest, kind)
    if least is None or greatest is None:
        return None
    field = ds.field(name)
    low, high = field >= least, field <= greatest
    # in this form Arrow simplifies by a guarantee with nulls
    return (low | field.is_null()) & (high | field.is_null()) if found.nulls else low & high


def _may_be_in_javas_order(*ends: PhysicalValue) -> bool:
    """Whether bounds of strings may have Java's order, by UTF-16 units: it differs from ours from U+D800 on."""
    return any(isinstance(end, str) and any(character >= "\ud800" for character in end) for end in ends)


def _scalar(value: PhysicalValue, kind: pa.DataType) -> pa.Scalar | None:
    """A value as Arrow has it; None where the statistics are of another type than the column has now."""
    if isinstance(value, str) != pa.types.is_string(kind) or isinstance(value, bool) != pa.types.is_boolean(kind):
        return None
    try:
        if pa.types.is_date32(kind):
            return pa.scalar(value, pa.int32()).cast(kind)
        if pa.types.is_timestamp(kind):
            return pa.scalar(value, pa.int64()).cast(kind)
        if pa.types.is_decimal128(kind):
            return pa.scalar(Decimal(int(value)).scaleb(-kind.scale, ALL_DIGITS), kind)
        return pa.scalar(value, kind)
    except (pa.ArrowException, OverflowError):
        return None
