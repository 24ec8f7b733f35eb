"""Writes the change file of a base file: which rows a commit inserted, updated and deleted in it (HoodieCDCLogger).

Readers of Hudi's change data capture open the change files that write stats name. The file is announced, published and
flushed like the base file beside it.
"""

from contextlib import suppress

import pyarrow as pa

from table.errors import StorageError
from table.files.log.avro_data import joined_runs
from table.files.log.change_records import DELETED, INSERTED, UPDATED, change_schema, encode_changes
from table.files.log.framing import BlockType, Header, LogBlock, encode_block
from table.files.names import CHANGE_FILE_SUFFIX, LogFileName, MarkerName
from table.files.publication import discard, publish
from table.schema.avro_schema import RECORD_KEY
from table.storage.interface import OutputFile, Stage, join
from table.write.announce import announce, check_not_ended, check_still_wanted
from table.write.context import Attempt, WriteContext

_BLOCK_BYTES = 32 * 1024 * 1024  # what a task holds of a change file, whatever the size of log blocks


class ChangeFile:
    """The change file of one base file.

    Use: `inserted`, `updated`, `deleted` any number of times, then `close`; `restart` where the base file is written
    once more; `abandon` after a failure.

    Args:
        context: of the commit; it has settings of change files.
        attempt: the attempt that writes the base file.
        partition_path: of the file group.
        file_id: the file group.
    """

    def __init__(self, context: WriteContext, attempt: Attempt, partition_path: str, file_id: str) -> None:
        assert context.change_files is not None
        self._context, self._attempt, self._settings = context, attempt, context.change_files
        self._name = str(LogFileName(file_id, context.instant_time, 1, attempt.write_token, CHANGE_FILE_SUFFIX))
        self._path = join(partition_path, self._name)
        self._block_bytes = min(_BLOCK_BYTES, context.log_settings.block_bytes)
        self._stage: Stage | None = None
        self._sink: OutputFile | None = None
        self._runs: list[tuple[int, bytes]] = []
        self._held_bytes = self._size_bytes = 0

    def inserted(self, rows: pa.Table) -> None:
        """Notes rows whose keys the file did not hold.

        Args:
            rows: meta columns and table columns (Arrow).
        """
        self._note(INSERTED, rows, None, rows)

    def updated(self, before: pa.Table, after: pa.Table) -> None:
        """Notes replaced rows.

        Args:
            before: the rows that were replaced, with meta columns and table columns (Arrow).
            after: the row that each of them became.
        """
        self._note(UPDATED, before, before, after)

    def deleted(self, rows: pa.Table) -> None:
        """Notes deleted rows (meta columns and table columns, Arrow)."""
        self._note(DELETED, rows, rows, None)

    def _note(self, operation: str, keyed: pa.Table, before: pa.Table | None, after: pa.Table | None) -> None:
        if not len(keyed):
            return
        context, images = self._context, self._settings.images
        keys = keyed.column(RECORD_KEY)
        for run in encode_changes(images, context.avro_schema, context.instant_time, operation, keys, before, after):
            self._runs.append(run)
            self._held_bytes += len(run[1])
            if self._held_bytes >= self._block_bytes:
                self._write_block()

    def _write_block(self) -> None:
        context = self._context
        if self._sink is None:
            self._stage = announce(context, MarkerName(self._path, self._settings.marker))
            self._sink = context.storage.open_output(self._path, self._stage)
        schema = change_schema(self._settings.images, context.avro_schema)
        header: dict[int, str] = {Header.INSTANT_TIME: context.instant_time, Header.SCHEMA: schema}
        data = encode_block(LogBlock(BlockType.CDC_DATA, header, joined_runs(self._runs)))
        self._sink.write(data)
        self._size_bytes += len(data)
        self._runs, self._held_bytes = [], 0

    def restart(self) -> None:
        """Forgets all that was noted."""
        self.abandon()
        self._stage = self._sink = None
        self._runs, self._held_bytes, self._size_bytes = [], 0, 0

    def close(self) -> dict[str, int]:
        """Publishes the file; it has a block of no records where nothing changed.

        Returns:
            Its path -> its bytes: what the write stat says (``cdcStats``).

        Raises:
            StorageError: the store fails, or the instant has ended.
        """
        if self._runs or self._sink is None:
            self._write_block()
        storage, path = self._context.storage, self._path
        assert self._sink is not None
        assert self._stage is not None
        publish(storage, path, self._stage, self._sink, lambda: check_not_ended(self._context, path))
        self._attempt.flushes.begin(storage, path, self._size_bytes)
        check_still_wanted(self._context, path)
        return {path: self._size_bytes}

    def abandon(self) -> None:
        """Closes the open file after a failure. The rollback finds it by its marker."""
        if self._sink is not None:
            with suppress(OSError, StorageError):
                discard(self._context.storage, self._path, self._stage, self._sink)
