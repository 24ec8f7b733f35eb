"""Writes one base file: Parquet with Hudi's footer (HoodieAvroParquetWriter, HoodieMergeHandle).

A file that continues another one has three parts: the older file's bytes, copied; the few chunks in which
the older rows name their file; the new rows, encoded. Small row groups at the end of the older
file are decoded and encoded together with the new rows (`table.files.base.tail_merge`). Where the older file
cannot be copied, all its rows are decoded and encoded.

Rows come in as Arrow tables and leave as row groups of bounded size. Only the record keys are kept until the
end, because the filter is sized by their number.
"""

from contextlib import suppress

import pyarrow as pa

from table.columns.memory_size import rows_bytes
from table.errors import StorageError
from table.files.base.continued import Continued
from table.files.base.copied_groups import CopiedGroups
from table.files.base.file_keys import FileKeys
from table.files.base.hudi_footer import encode_entries
from table.files.base.joined_file import JoinedFile, find_doubt
from table.files.base.repeated_columns import file_schema, restamp_carried_rows
from table.files.base.summary import Announced, BaseFileSummary, FileContents
from table.files.base.tail_merge import CHEAP_GROUP_BYTES, plan_tail_merge
from table.files.parquet.footer import MAGIC, join_footer
from table.files.parquet.row_group_writer import RowGroupWriter
from table.files.publication import discard, publish
from table.log import get_logger
from table.options.groups import BaseFileSettings
from table.schema.avro_schema import FILE_NAME, RECORD_KEY
from table.storage.interface import OutputFile, Stage, Storage

log = get_logger("hudistream.base_file")


class CopyInDoubtError(Exception):
    """A file that was joined from copied row groups is not as it should be. Written without copying, it may be.

    It never leaves `table.write`: the caller writes the file again, or fails the batch.

    Attributes:
        reason: the fault.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class BaseFileWriter:
    """Writes one base file.

    Use: `write` any number of times, then `close`; `abandon` after a failure.

    Args:
        path: relative to the table.
        schema: meta columns and table columns (Arrow).
        avro_schema: Avro schema of these columns (JSON), for the footer.
        settings: codec, sizes, filter.
        continued: the file that this one continues.
        announced: announces the file. None: the file is written in place; a commit's files never are.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        schema: pa.Schema,
        avro_schema: str,
        settings: BaseFileSettings,
        continued: Continued | None = None,
        announced: Announced | None = None,
    ) -> None:
        self._has_meta_fields = settings.has_meta_fields
        self._storage, self._path, self._settings = storage, path, settings
        self._continued, self._announced = continued, announced
        self._schema, self._avro_schema = file_schema(schema), avro_schema
        self._pending: list[pa.Table] = []
        self._pending_bytes = self._rows = 0
        self._sink: OutputFile | None = None
        self._stage: Stage | None = None
        self._groups: RowGroupWriter | None = None
        self._copied: CopiedGroups | None = None
        self._keys = FileKeys(settings)
        self._is_started = continued is None
        if continued is not None:
            stored, remaining = continued.stored, continued.left
            # a caller that writes all rows may drop some: the range is then that of the rows that it writes
            self._keys = FileKeys(settings, stored.footer, knows_bounds=bool(remaining or continued.patches))
            if continued.is_copied:
                self._copied = CopiedGroups(stored, self._schema, settings)
                self._rows = sum(stored.group_rows[number] for number in (*remaining, *continued.patches))

    @property
    def is_begun(self) -> bool:
        """Whether rows have reached the store."""
        return self._sink is not None

    def write(self, rows: pa.Table, *, carried: bool = False) -> None:
        """Takes rows with all columns of the schema; they reach the store a row group at a time.

        Args:
            rows: the rows.
            carried: whether the older file holds their keys.
        """
        if not len(rows):
            return
        self._start()
        self._rows += len(rows)
        rows = rows.cast(self._schema) if rows.schema != self._schema else rows
        if self._has_meta_fields:
            self._keys.add(rows.column(RECORD_KEY).chunks, carried=carried)
        self._pending.append(rows)
        self._pending_bytes += rows_bytes(rows)
        if self._pending_bytes >= self._settings.row_group_bytes:
            self._flush()

    def _start(self) -> None:
        """Writes what comes before the caller's rows."""
        if self._is_started or self._continued is None:
            return
        self._is_started = True
        if self._copied is None:
            for rows in self._continued.stored.read_batches(self._schema, self._continued.left):
                self.write(self._restamped(rows), carried=True)
        elif self._continued.patches:
            self._opened()  # before the caller's rows are held: a patch takes memory of its own

    def _flush(self) -> RowGroupWriter:
        if self._groups is None:
            self._groups = RowGroupWriter(self._opened(), self._schema, self._settings)
        if self._pending:
            rows = pa.concat_tables(self._pending).unify_dictionaries()
            parts = -(-self._pending_bytes // self._settings.row_group_bytes)
            self._pending, self._pending_bytes = [], 0
            self._groups.write(rows, max(1, parts))
        return self._groups

    def _opened(self) -> OutputFile:
        """The open file. It begins with row groups of the older file: as they are, and patched."""
        if self._sink is not None:
            return self._sink
        if self._announced is not None:
            self._stage = self._announced.announce()
        if self._copied is None or self._continued is None:
            self._sink = self._storage.open_output(self._path, self._stage)
            self._sink.write(MAGIC)
            return self._sink
        kept = self._decode_tail(self._continued)
        self._sink = sink = self._copied.open(self._storage, self._path, self._stage, kept)
        for number, make_patch in self._continued.patches.items():
            self._copied.patch(sink, number, make_patch())
        return sink

    def _decode_tail(self, continued: Continued) -> list[int]:
        """Adds the older file's last rows to those to be encoded. Returns the row groups that stay as they are."""
        remaining = continued.left
        kept = (
            len(remaining)
            if continued.is_planned
            else self._plan_kept([continued.stored.group_rows[n] for n in remaining])
        )
        if kept < len(remaining):
            tail = [self._restamped(rows) for rows in continued.stored.read_batches(self._schema, remaining[kept:])]
            if self._has_meta_fields:
                self._keys.add_tail([chunk for rows in tail for chunk in rows.column(RECORD_KEY).chunks])
            self._pending = tail + self._pending
            self._pending_bytes += sum(map(rows_bytes, tail))
        return remaining[:kept]

    def _plan_kept(self, group_rows: list[int]) -> int:
        pending = sum(map(len, self._pending))
        if not pending:
            return len(group_rows)
        row_bytes = max(1, self._pending_bytes // pending)
        full, cheap = self._settings.row_group_bytes // row_bytes, CHEAP_GROUP_BYTES // row_bytes
        return plan_tail_merge(group_rows, pending, max(1, full), cheap)

    @property
    def _file_name(self) -> str:
        return self._path.rsplit("/", 1)[-1]

    def _restamped(self, rows: pa.Table) -> pa.Table:
        return restamp_carried_rows(rows, self._file_name) if self._has_meta_fields else rows

    def close(self) -> BaseFileSummary:
        """Writes the last row group and the footer; the file is whole when this returns.

        Raises:
            CopyInDoubtError: a check of a file with copied row groups failed. The caller writes the file again, with
                the error's reason in `Continued.reason`.
            StorageError: the store fails.
        """
        summary, footer = self._finish()
        if self._copied is not None:
            by_store = self._copied.is_copied_by_store
            joined = JoinedFile(self._path, summary.rows, summary.size_bytes, footer, by_store, self._schema)
            doubt = find_doubt(self._storage, joined, self._settings.verify_share)
            if doubt is not None:
                log.warning("copied_file_discarded", path=self._path, reason=doubt)
                raise CopyInDoubtError(f"in doubt: {doubt}")
        return summary

    def _finish(self) -> tuple[BaseFileSummary, bytearray]:
        copied = self._copied
        self._start()
        added, like = self._flush().finish()
        sink = self._opened()
        groups = copied.renamed(sink, self._file_name if self._has_meta_fields else None) if copied is not None else []
        first = len(groups)
        groups += [group.as_row_group(first + number, FILE_NAME) for number, group in enumerate(added)]
        data_end = sink.tell()
        bloom, bounds = None, None
        if self._has_meta_fields:
            bloom, bounds = self._keys.summarize(self._rows, data_end, copied.read_keys if copied is not None else list)
        footer = join_footer(groups, like, encode_entries(self._avro_schema, bloom, bounds), self._settings.codec)
        sink.write(footer)
        size = data_end + len(footer)
        self._publish(sink, size)
        kept = copied.row_ranges if copied is not None else ()
        contents = FileContents(bounds, bloom, kept, tuple(self._keys.written)) if bloom is not None else None
        reason = self._continued.reason if self._continued is not None else None
        copied_bytes = copied.size_bytes if copied is not None else 0
        return BaseFileSummary(self._rows, size, len(footer), reason, copied_bytes, contents, bytes(footer)), footer

    def _publish(self, sink: OutputFile, size_bytes: int) -> None:
        if self._announced is not None and self._stage is not None:
            publish(self._storage, self._path, self._stage, sink, self._announced.check_not_ended)
            self._sink = None  # what is published is not abandoned
            self._announced.flush(size_bytes)
        else:
            sink.close()
            self._storage.sync(self._path)

    def abandon(self) -> None:
        """Closes the open file after a failure. The rollback finds a file that may be left."""
        sink, self._sink = self._sink, None
        if sink is None:
            return
        with suppress(OSError, StorageError):
            discard(self._storage, self._path, self._stage, sink)
