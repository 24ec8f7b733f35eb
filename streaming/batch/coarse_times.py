"""A warning about tables with milliseconds, as Flink makes them: microseconds of a batch are rounded down."""

import pyarrow as pa

from table.log import get_logger
from table.options.operation import Operation
from table.schema.evolution import coarser_columns

log = get_logger("hudistream.sink")


class CoarseTimesAdvice:
    """Warns once of a sink that its times lose their microseconds."""

    def __init__(self) -> None:
        self._has_told = False

    def note(self, table: str, operation: Operation, batch: pa.Schema, schema: pa.Schema) -> None:
        """Compares the columns of a batch with those of its table.

        Args:
            table: address of the table, for the log.
            operation: of the batch.
            batch: columns of the batch (Arrow).
            schema: columns of the commit (Arrow).
        """
        if self._has_told or operation.takes_keys_alone or not (columns := coarser_columns(batch, schema)):
            return
        self._has_told = True
        log.warning(
            "times_rounded_down",
            table=table,
            columns=columns,
            hint="the table stores milliseconds (timestamp-millis, as Flink makes it), and goes on so: microseconds "
            "of these columns are dropped, as Flink drops them",
        )
