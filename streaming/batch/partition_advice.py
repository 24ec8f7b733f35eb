"""Warnings about partition paths that make many small files: one path per timestamp, or many paths with few rows."""

from collections.abc import Iterable

import pyarrow as pa

from table.config.key_generator import KeyGenerator
from table.config.table_config import TableConfig
from table.log import get_logger
from table.timeline.metadata.commit import WriteStat

MANY_PATHS = 100  # partition paths in one batch
FEW_ROWS = 100  # rows per path, on average

log = get_logger("hudistream.sink")


def find_time_fields(config: TableConfig, schema: pa.Schema) -> tuple[str, ...]:
    """Partition fields that hold timestamps: each distinct timestamp gets its own partition path (pure).

    Args:
        config: the table's properties.
        schema: the batch's columns (Arrow).
    """
    if config.keygen_type not in (KeyGenerator.SIMPLE, KeyGenerator.COMPLEX):
        return ()
    known = [name for name in config.partition_fields if name in schema.names]
    return tuple(name for name in known if pa.types.is_timestamp(schema.field(name).type))


def find_tiny_paths(stats: Iterable[WriteStat]) -> tuple[int, int] | None:
    """Number of partition paths in a batch, and rows per path; None if paths are few or have enough rows (pure)."""
    rows: dict[str, int] = {}
    for stat in stats:
        arrived = stat.num_inserts + stat.num_update_writes + stat.num_deletes
        rows[stat.partition_path] = rows.get(stat.partition_path, 0) + arrived
    average = sum(rows.values()) // max(1, len(rows))
    return (len(rows), average) if len(rows) >= MANY_PATHS and average < FEW_ROWS else None


def tell_time_fields(table: str, config: TableConfig, schema: pa.Schema) -> None:
    """Warns when a table is created whose partition paths are timestamps."""
    fields = find_time_fields(config, schema)
    if fields:
        log.warning(
            "partition_by_timestamp",
            table=table,
            fields=list(fields),
            hint="each moment gets a folder of its own. Partition by a date column, or let the key generator format: "
            "hoodie.datasource.write.keygenerator.type=TIMESTAMP, "
            "hoodie.keygen.timebased.timestamp.type=EPOCHMICROSECONDS, "
            "hoodie.keygen.timebased.output.dateformat=yyyy-MM-dd",
        )


class PartitionAdvice:
    """Warns once about many partition paths with few rows."""

    def __init__(self) -> None:
        self._has_told = False

    def note(self, table: str, stats: Iterable[WriteStat]) -> None:
        """Checks the files that a batch wrote.

        Args:
            table: address of the table, for the log.
            stats: write stats of the batch's files.
        """
        found = None if self._has_told else find_tiny_paths(stats)
        if found is None:
            return
        self._has_told = True
        log.warning(
            "many_small_partitions",
            table=table,
            partition_paths=found[0],
            rows_per_path=found[1],
            hint="each path gets files of its own in each batch: partition by less, or trigger less often",
        )
