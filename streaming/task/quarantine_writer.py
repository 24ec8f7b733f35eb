"""Bad rows of one task on their way to the quarantine: Parquet files in the staging folder of their commit."""

from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

from streaming.plan.quarantine import Quarantine
from table.files.base.hudi_footer import CALENDAR
from table.quarantine.place import BATCH_ID, REASON, SINK_ID, TIME
from table.storage.interface import join


class QuarantineWriter:
    """Writes the bad rows of one task.

    Args:
        quarantine: where.
        write_token: of this attempt.
    """

    def __init__(self, quarantine: Quarantine, write_token: str) -> None:
        self._quarantine = quarantine
        self._name = quarantine.file_name(write_token)
        self._writer: pq.ParquetWriter | None = None

    def write(self, rows: pa.Table, reason: str) -> None:
        """Writes rows (table columns, Arrow) that cannot be stored, all for the same reason."""
        count, quarantine = len(rows), self._quarantine
        table = (
            rows.append_column(REASON, pa.array([reason] * count, pa.string()))
            .append_column(BATCH_ID, pa.array([quarantine.batch_id] * count, pa.int64()))
            .append_column(SINK_ID, pa.array([quarantine.sink_id] * count, pa.string()))
            .append_column(TIME, pa.array([quarantine.time_us] * count, pa.timestamp("us", "UTC")))
        )
        if self._writer is None:
            self._sink = quarantine.storage.open_output(join(quarantine.staging_folder, self._name))
            self._writer = pq.ParquetWriter(self._sink, table.schema, compression="zstd", store_schema=False)
            # as in base files: Spark refuses old dates in files that do not name their calendar
            self._writer.add_key_value_metadata(CALENDAR)
        self._writer.write_table(table)

    def close(self) -> str | None:
        """Finishes the file. Returns its name, or None when there were no bad rows."""
        if self._writer is None:
            return None
        self._writer.close()
        self._sink.close()
        return self._name

    def abandon(self) -> None:
        """Closes and discards the open file after a failure. The rollback of the batch deletes the folder."""
        if self._writer is None:
            return
        with suppress(Exception):  # the first failure must be raised
            self._writer.close()
        with suppress(Exception):
            self._quarantine.storage.discard(join(self._quarantine.staging_folder, self._name), None, self._sink)
