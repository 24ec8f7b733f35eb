"""Statistics of text columns that are dictionaries (pure).

For its statistics Arrow looks up which values of a dictionary occur in each thousand rows. With many values that costs
more than the encoding. This module finds the values of the whole row group once, and Arrow makes no statistics.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from table.files.parquet.chunk_statistics import Bounds, TextStatistics
from table.files.parquet.dictionary_choice import TOLD_ROWS, leaves
from table.files.parquet.value_bounds import ARROW_KEEPS, Extremes, Path, as_bounds, find_extremes


def columns_told_here(schema: pa.Schema, group_rows: int) -> list[str]:
    """The columns whose statistics are made here: top-level dictionaries of text in row groups that are not small.

    Args:
        schema: schema of the rows that are written.
        group_rows: rows of each row group.
    """
    if group_rows < TOLD_ROWS:
        return []
    return [f.name for f in schema if pa.types.is_dictionary(f.type) and pa.types.is_string(f.type.value_type)]


def as_write_statistics(schema: pa.Schema, told_here: Sequence[str]) -> list[str] | bool:
    """The argument ``write_statistics`` of Arrow's writer: True for all columns, or the paths of some.

    Args:
        schema: schema of the rows that are written.
        told_here: columns for which Arrow makes no statistics.
    """
    if not told_here:
        return True
    others = [field for field in schema if field.name not in told_here]
    return [path for field in others for path, _ in leaves(field.name, pa.array([], field.type))] or False


def tell_dictionaries(rows: pa.Table, names: Sequence[str]) -> Mapping[Path, TextStatistics]:
    """Statistics of columns of a row group, by their paths.

    Args:
        rows: rows of the row group.
        names: the columns (`columns_told_here`).
    """
    extremes = find_extremes([rows.select(names)])
    found: dict[Path, TextStatistics] = {}
    for name in names:
        path = (name.encode(),)
        found[path] = TextStatistics(rows.column(name).null_count, _bounds_of(path, extremes.get(path)))
    return found


def _bounds_of(path: Path, found: Extremes | None) -> Bounds | None:
    if found is None:
        return None
    if max(len(found.least), len(found.greatest)) <= ARROW_KEEPS:
        return (found.least, True), (found.greatest, True)
    return as_bounds({path: found}).get(path)
