"""The base file that a compaction makes of a slice: its name, its announcement, its meta columns."""

from dataclasses import dataclass

import pyarrow as pa

from table.files.base.repeated_columns import constant_column, file_schema
from table.files.base.stored_file import StoredBaseFile
from table.files.markers import CREATE, MERGE
from table.files.names import BaseFileName, MarkerName
from table.schema.avro_schema import DELETE_MARKER, FILE_NAME, PARTITION_PATH, with_meta_columns
from table.storage.interface import Stage, join
from table.timeline.metadata.compaction import CompactionOperation
from table.write.announce import announce, check_not_ended
from table.write.context import WriteContext

SAME_IN_ALL_ROWS = (PARTITION_PATH, FILE_NAME)


@dataclass(frozen=True)
class CompactedFile:
    """One file that a compaction writes.

    Attributes:
        context: the compaction's.
        operation: what is compacted.
        write_token: of the attempt.
        stored: the slice's base file, open; None where log files alone are compacted.
    """

    context: WriteContext
    operation: CompactionOperation
    write_token: str
    stored: StoredBaseFile | None = None
    changes: None = None  # a compaction changes no rows

    @property
    def name(self) -> str:
        """Of the file."""
        return str(BaseFileName(self.operation.file_id, self.write_token, self.context.instant_time))

    @property
    def path(self) -> str:
        """Relative to the table."""
        return join(self.operation.partition_path, self.name)

    @property
    def schema(self) -> pa.Schema:
        """Meta columns and table columns (Arrow)."""
        return with_meta_columns(self.context.schema)

    def announce(self) -> Stage:
        """Announces the file before it is opened. Returns where it waits."""
        return announce(self.context, MarkerName(self.path, MERGE if self.operation.base_file else CREATE))

    def check_not_ended(self) -> None:
        """Whether it is still wanted; raises when it is not."""
        check_not_ended(self.context, self.path)

    def flush(self, size_bytes: int) -> None:  # noqa: ARG002 of any size
        """Flushes the published file to the disk."""
        self.context.storage.sync(self.path)

    def stamp(self, rows: pa.Table) -> pa.Table:
        """Rows as the file has them: they keep their commit times and sequence numbers.

        Args:
            rows: all columns of the file but `SAME_IN_ALL_ROWS`, and maybe the column that marks deletes.
        """
        constants = dict(zip(SAME_IN_ALL_ROWS, (self.operation.partition_path, self.name), strict=True))
        schema, columns = file_schema(self.schema), []
        for field in schema:
            if field.name in constants:
                columns.append(pa.chunked_array([constant_column(constants[field.name], len(rows))]))
                continue
            column = rows.column(field.name)
            is_plain = pa.types.is_dictionary(field.type) and not pa.types.is_dictionary(column.type)
            columns.append(column.dictionary_encode() if is_plain else column)
        stamped = pa.Table.from_arrays(columns, schema=schema)
        if DELETE_MARKER in rows.column_names and DELETE_MARKER not in schema.names:
            return stamped.append_column(rows.schema.field(DELETE_MARKER), rows.column(DELETE_MARKER))
        return stamped
