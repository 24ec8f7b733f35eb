"""Rows of a change feed as a Spark DataFrame -> rows to upsert, with a mark on those to delete."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from table.scan.feed.choices import BEFORE, DELETED, OPERATION, UPDATED
from table.scan.feed.upserts import columns_to_upsert
from table.schema.avro_schema import DELETE_MARKER


def upserts_of_frame(frame: DataFrame, moved_by: Sequence[str]) -> DataFrame:
    """As `table.scan.feed.upserts.upserts_of`, for a DataFrame, also of a stream."""
    columns = columns_to_upsert(frame.columns, moved_by)
    mark = (F.col(OPERATION) == DELETED).alias(DELETE_MARKER)
    if not moved_by:
        return frame.select(*(_quoted(name) for name in columns), mark)
    row = F.struct(*(_quoted(name) for name in columns), mark)
    old = F.struct(*(_quoted(BEFORE, name).alias(name) for name in columns), F.lit(True).alias(DELETE_MARKER))
    stays = F.lit(True)
    for name in moved_by:
        stays = stays & _quoted(name).eqNullSafe(_quoted(BEFORE, name))
    moves = (F.col(OPERATION) == UPDATED) & ~stays
    return frame.select(F.inline(F.when(moves, F.array(old, row)).otherwise(F.array(row))))


def _quoted(*names: str) -> Column:
    """A column, or a field of a struct, whose names may have dots."""
    return F.col(".".join("`" + name.replace("`", "``") + "`" for name in names))
