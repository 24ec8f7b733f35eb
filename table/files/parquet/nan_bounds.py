"""Bounds of float chunks that hold a NaN, for which Arrow's writer gives those of their numbers (pure).

To Spark, Hudi, DuckDB and Polars NaN is greater than every number. By the bounds of the numbers they lose its rows:
``x > 5`` passes over ``[1.0, NaN]``, and ``x <> 3`` over ``[3.0, NaN]``. So such a chunk has an infinite upper bound,
and where all its numbers are infinity, an infinite lower one.
"""

import struct
from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from table.files.parquet import chunk_statistics
from table.files.parquet.dictionary_choice import leaves
from table.files.parquet.field_ids import CHUNK_META, COLUMNS, TYPE
from table.files.parquet.row_groups import chunk_path, chunks_of, field_value
from table.files.parquet.thrift_compact import LIST, STRUCT, Field, Items, Struct

Path = tuple[bytes, ...]

# physical type -> its least and its greatest value
_ENDS = {
    kind: (struct.pack(form, float("-inf")), struct.pack(form, float("inf"))) for kind, form in ((4, "<f"), (5, "<d"))
}


def find_nan(batches: Iterable[pa.Table]) -> frozenset[Path]:
    """The paths in Parquet of the columns with a NaN, those in nested columns included.

    Args:
        batches: the rows of a row group.
    """
    return frozenset(path for rows in batches for path in _paths_with_nan(rows))


def _paths_with_nan(rows: pa.Table) -> Iterator[Path]:
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if not has_floats(column.type):
            continue
        for chunk in column.chunks:
            for path, values in leaves(name, chunk):
                if pa.types.is_floating(values.type) and _has_nan(values):
                    yield tuple(path.encode().split(b"."))


def has_floats(kind: pa.DataType) -> bool:
    """Whether a type (Arrow) is that of floats, or contains them."""
    if pa.types.is_nested(kind):
        return any(has_floats(kind.field(number).type) for number in range(kind.num_fields))
    return bool(pa.types.is_floating(kind))


def _has_nan(values: pa.Array) -> bool:
    """Whether there is a NaN. A sum is cheap, and without NaN it is a number nearly always."""
    total = pc.sum(values).as_py()
    return total is not None and total != total and bool(pc.any(pc.is_nan(values)).as_py())  # noqa: PLR0124


def with_open_bounds(group: Struct, paths: Collection[Path]) -> Struct:
    """A row group in which the chunks of these columns have an infinite upper bound, if they have bounds.

    Args:
        group: the row group.
        paths: columns with a NaN.
    """
    chunks = [
        chunk_statistics.with_open_bounds(chunk, *_ENDS[field_value(field_value(chunk, CHUNK_META), TYPE)])
        if chunk_path(chunk) in paths
        else chunk
        for chunk in chunks_of(group)
    ]
    return {**group, COLUMNS: Field(LIST, Items(STRUCT, chunks))}
