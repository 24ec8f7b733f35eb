"""Writes one base file: Parquet with Hudi's footer (HoodieAvroParquetWriter, HoodieMergeHandle).

A file that continues another one has three parts: the older file's bytes, copied; the few chunks in which
the older rows name their file; the new rows, encoded. Small row groups at the end of the older
file are decoded and encoded together with the new rows (`table.files.base.tail_merge`). Where the older file
cannot be copied, or a check of the result fails, all its rows are decoded and encoded.

Rows come in as Arrow tables and leave as row groups of bounded size. Only the record keys are kept until the
end, because the filter is sized by their number.

If updates change some columns of a row group, the chunks of the other columns can be copied
(`BaseFileWriter.patch`).
"""

import zlib
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

from table.columns.memory_size import rows_bytes
from table.errors import CorruptFileError, StorageError
from table.files.base.hudi_footer import encode_entries, filter_of_footer, key_range, stored_bounds
from table.files.base.repeated_columns import file_schema, restamp_carried_rows
from table.files.base.stored_file import StoredBaseFile, read_footer
from table.files.base.summary import COPIED, NEW, Announced, BaseFileSummary, Carrying, FileContents
from table.files.base.tail_merge import CHEAP_GROUP_BYTES, plan_tail_merge
from table.files.bloom import bloom_filter
from table.files.bloom.bloom_filter import AnyBloomFilter
from table.files.parquet.copied_bounds import group_with_bounds
from table.files.parquet.copy_checks import find_problem, why_encoded_anew
from table.files.parquet.footer import MAGIC, TAIL_BYTES, join_footer
from table.files.parquet.name_chunk import encode_name_chunk
from table.files.parquet.patched_group import write_patched_group
from table.files.parquet.row_group_writer import RowGroupWriter
from table.files.parquet.row_groups import RowGroup, encode_group, shifted_group, with_chunk
from table.files.publication import discard, publish
from table.log import get_logger
from table.options.groups import BaseFileSettings
from table.schema.avro_schema import FILE_NAME, RECORD_KEY
from table.storage.byte_ranges import ByteRange
from table.storage.interface import READ_AT_ONCE_BYTES, OutputFile, Stage, Storage

log = get_logger("hudistream.base_file")


class BaseFileWriter:
    """Writes one base file.

    Args:
        path: relative to the table.
        schema: meta columns and table columns (Arrow).
        avro_schema: Avro schema of these columns (JSON), for the footer.
        settings: codec, sizes, filter.
        stored: the file that this one continues: its rows come first. The caller closes it.
        carrying: the work that the caller takes over.
        announced: announces each attempt at the file. None: the file is written in place; a commit's files never are.
    """

    def __init__(  # noqa: PLR0913 a file's parts: place, columns, encoding, the file it continues
        self,
        storage: Storage,
        path: str,
        schema: pa.Schema,
        avro_schema: str,
        settings: BaseFileSettings,
        stored: StoredBaseFile | None = None,
        carrying: Carrying | None = None,
        announced: Announced | None = None,
    ) -> None:
        self._storage, self._path, self._settings, self._stored = storage, path, settings, stored
        self._announced = announced
        self._carrying = carrying or Carrying()
        self._schema, self._avro_schema = file_schema(schema), avro_schema
        self._carried_filter = self._carrying.bloom
        self._bounds: tuple[str, str] | None = None
        self._way = NEW
        self._replay: list[pa.Table] | None = None  # new rows beside the copied ones, kept for a second attempt
        self._new_keys: list[pa.Array] = []
        self._begin_anew()
        if stored is not None:
            self._carried_filter = filter_of_footer(stored.footer, settings.bloom_max_entries)
            self._bounds = stored_bounds(stored.footer)
            reason = why_encoded_anew(stored, self._schema, settings)
            self._way = reason or COPIED
            if reason is None:
                self._rows = sum(stored.group_rows[number] for number in self._left())
                self._replay = [] if self._carrying.again is None else None
            else:
                self._encode_stored(stored)

    def _left(self) -> list[int]:
        """The stored file's row groups that the caller leaves as they are."""
        assert self._stored is not None
        return [number for number in range(len(self._stored.group_rows)) if number not in self._carrying.groups]

    def _begin_anew(self) -> None:
        self._pending: list[pa.Table] = []
        self._pending_bytes = self._rows = 0
        self._carried_keys: list[pa.Array] = []
        self._written: list[pa.Array] = []  # keys of the rows behind the copied ones, in order
        self._kept: list[int] = []  # numbers of the stored file's row groups that were copied
        self._copied: list[RowGroup] = []
        self._copied_bytes = 0
        self._sink: OutputFile | None = None
        self._is_copied_by_store = True
        self._stage: Stage | None = None
        self._groups: RowGroupWriter | None = None

    @property
    def rows(self) -> int:
        """Rows of the file so far, the rows of the file that it continues included."""
        return self._rows

    def write(self, rows: pa.Table, *, carried: bool = False) -> None:
        """Takes rows with all columns of the schema; they reach the store a row group at a time.

        Args:
            rows: the rows.
            carried: whether their keys are in the carried filter already.
        """
        if not len(rows):
            return
        self._rows += len(rows)
        self._written.extend(rows.column(RECORD_KEY).chunks)
        rows = rows.cast(self._schema) if rows.schema != self._schema else rows
        (self._carried_keys if carried else self._new_keys).extend(rows.column(RECORD_KEY).chunks)
        if self._replay is not None:
            self._replay.append(rows)
        self._pend(rows)

    def patch(self, number: int, rows: pa.Table) -> None:
        """Takes over a row group of the stored file with some columns changed; must be called before any `write`.

        Args:
            number: number of the row group, one that the caller has taken over.
            rows: the changed columns, with all rows of the row group. The file name and the record key are not
                among them.

        Raises:
            CorruptFileError, StorageError: when the other columns cannot be copied.
        """
        assert self._stored is not None
        assert self._groups is None, "row groups that are copied come first"
        assert not self._pending, "row groups that are copied come first"
        sink = self._sink or self._begin()
        self._replay = None  # a second attempt by the writer would lack these rows
        stored_group = group_with_bounds(self._stored, number, self._schema).decoded
        patched, copied_bytes = write_patched_group(sink, self._stored, stored_group, rows, self._settings, FILE_NAME)
        self._copied.append(encode_group(patched, len(self._copied), FILE_NAME))
        self._kept.append(number)
        self._copied_bytes += copied_bytes
        self._rows += self._copied[-1].rows

    def _pend(self, rows: pa.Table) -> None:
        self._pending.append(rows)
        self._pending_bytes += rows_bytes(rows)
        if self._pending_bytes >= self._settings.row_group_bytes:
            self._replay = None  # too many to keep
            self._flush()

    def _flush(self) -> None:
        groups = self._groups or self._open()
        if self._pending:
            rows = pa.concat_tables(self._pending).unify_dictionaries()
            parts = -(-self._pending_bytes // self._settings.row_group_bytes)
            self._pending, self._pending_bytes = [], 0
            groups.write(rows, max(1, parts))

    def _open(self) -> RowGroupWriter:
        self._groups = RowGroupWriter(self._sink or self._begin(), self._schema, self._settings)
        return self._groups

    def _begin(self) -> OutputFile:
        if self._announced is not None:
            self._stage = self._announced.announce()
        if self._stored is not None and self._way == COPIED:
            self._sink = self._continue(self._stored)
            if self._sink.tell() != self._copied_bytes:
                raise StorageError(
                    f"{self._sink.tell()} bytes of {self._stored.path} were copied, not {self._copied_bytes}"
                )
        else:
            self._sink = self._storage.open_output(self._path, self._stage)
            self._sink.write(MAGIC)
        return self._sink

    def _continue(self, stored: StoredBaseFile) -> OutputFile:
        """Opens the file with copied row groups of the older one, and adds the older tail to the rows to be encoded."""
        groups = stored.footer.groups or ()
        left = self._left()
        # a caller that changes rows has planned every row group, and writes the tail itself
        kept = len(left) if self._carrying.groups else self._plan_kept([groups[number].rows for number in left])
        self._kept, tail = left[:kept], left[kept:]
        if tail:
            carried = [self._restamped(rows) for rows in stored.read_batches(self._schema, tail)]
            keys = [chunk for rows in carried for chunk in rows.column(RECORD_KEY).chunks]
            self._carried_keys += keys
            self._written = keys + self._written
            self._pending = carried + self._pending
            self._pending_bytes += sum(map(rows_bytes, carried))
        ranges = [ByteRange(0, len(MAGIC))]
        self._copied, end = [], len(MAGIC)
        for at, number in enumerate(self._kept):
            # row groups are contiguous
            start = groups[number - 1].data_end if number else len(MAGIC)
            group = group_with_bounds(stored, number, self._schema)
            self._copied.append(shifted_group(group, end - start, at, FILE_NAME))
            ranges.append(ByteRange(start, groups[number].data_end - start))
            end += ranges[-1].length
        self._copied_bytes = end
        held = stored.read_held(ranges)
        if held is None:
            return self._storage.open_copy(stored.path, ranges, self._path, self._stage)
        self._is_copied_by_store = False
        self._sink = sink = self._storage.open_output(self._path, self._stage)
        for piece in held:
            sink.write(piece)
        return sink

    def _renamed(self, sink: OutputFile) -> list[RowGroup]:
        """Copied row groups with new file-name chunks. These stand at the end, so the next version can cut them off."""
        renamed, field = [], self._schema.field(FILE_NAME)
        for group in self._copied:
            data, chunk = encode_name_chunk(self._file_name, group.rows, sink.tell(), field, self._settings)
            sink.write(data)
            renamed.append(with_chunk(group, chunk))
        return renamed

    def _plan_kept(self, group_rows: list[int]) -> int:
        pending = sum(map(len, self._pending))
        if not pending:
            return len(group_rows)
        row_bytes = max(1, self._pending_bytes // pending)
        full, cheap = self._settings.row_group_bytes // row_bytes, CHEAP_GROUP_BYTES // row_bytes
        return plan_tail_merge(group_rows, pending, max(1, full), cheap)

    def _encode_stored(self, stored: StoredBaseFile) -> None:
        for rows in stored.read_batches(self._schema, self._left()):
            self.write(self._restamped(rows), carried=True)

    @property
    def _file_name(self) -> str:
        return self._path.rsplit("/", 1)[-1]

    def _restamped(self, rows: pa.Table) -> pa.Table:
        return restamp_carried_rows(rows, self._file_name)

    def close(self) -> BaseFileSummary:
        """Writes the last row group and the footer; the file is whole when this returns.

        Raises:
            StorageError: a check of the written file failed, and the writer no longer holds the rows to try again.
        """
        summary, footer = self._finish()
        if self._way != COPIED:
            return summary
        doubt = self._find_doubt(summary, footer)
        if doubt is None:
            return summary
        log.warning("copied_file_discarded", path=self._path, reason=doubt)
        reason = f"in doubt: {doubt}"
        again = self._carrying.again
        return self._finish_anew(reason) if again is None else again(reason)

    def _finish(self) -> tuple[BaseFileSummary, bytearray]:
        self._flush()
        assert self._groups is not None
        assert self._sink is not None
        added, like = self._groups.finish()
        first = len(self._copied)
        new = [encode_group(group, first + number, FILE_NAME) for number, group in enumerate(added)]
        groups = [*self._renamed(self._sink), *new]
        data_end = self._sink.tell()
        bloom, bounds = self._summarize_keys(data_end)
        entries = encode_entries(self._avro_schema, bloom, bounds)
        end = join_footer(groups, like, entries, self._settings.codec)
        self._sink.write(end)
        size = data_end + len(end)
        if self._announced is not None and self._stage is not None:
            publish(self._storage, self._path, self._stage, self._sink, self._announced.check_not_ended)
            self._announced.flush(size)
        else:
            self._sink.close()
            self._storage.sync(self._path)
        contents = FileContents(bounds, bloom, self._kept_rows(), tuple(self._written))
        return BaseFileSummary(self._rows, size, len(end), self._way, self._copied_bytes, contents), end

    def _kept_rows(self) -> tuple[tuple[int, int], ...]:
        if self._stored is None or not self._kept:
            return ()
        counts = self._stored.group_rows
        return tuple((sum(counts[:number]), counts[number]) for number in self._kept)

    def _finish_anew(self, reason: str) -> BaseFileSummary:
        """Writes the file again under the same name, with all rows encoded."""
        stored, replay = self._stored, self._replay
        if stored is None or replay is None:
            raise StorageError(f"{self._path} was not written as it should be ({reason}): run the batch again")
        self._way, self._replay, self._new_keys = reason, None, []
        self._begin_anew()
        self._encode_stored(stored)
        for rows in replay:
            self.write(rows)
        return self._finish()[0]

    def _find_doubt(self, summary: BaseFileSummary, end: bytearray) -> str | None:
        """Checks a file made of copied row groups on the store. Returns the fault, or None."""
        try:
            # Arrow, as an independent reader, must understand the joined footer
            metadata = pq.read_metadata(pa.BufferReader(pa.py_buffer(end)))
            problem = find_problem(metadata, summary.rows, summary.size_bytes - len(end))
            if problem is not None:
                return problem
            # a small file is read as a whole, so its true length shows even if the size is given
            known = summary.size_bytes if summary.size_bytes <= READ_AT_ONCE_BYTES else None
            # where all bytes went through this process, the file is as safe as one that is new
            if self._is_copied_by_store and not self._has_footer(known, summary.size_bytes, end):
                return "the store holds another footer than was written"
            if self._is_sampled():
                with StoredBaseFile(self._storage, self._path, known) as whole:
                    found = sum(map(len, whole.read_batches(self._schema)))
                return None if found == summary.rows else f"{found} rows can be read of {summary.rows}"
        except (CorruptFileError, pa.ArrowException, OSError) as error:
            return str(error)
        return None

    def _has_footer(self, known: int | None, size_bytes: int, end: bytearray) -> bool:
        """Whether the file on the store ends as it was written."""
        with self._storage.open_input(self._path, known) as written:
            size, raw = read_footer(written)  # checks the length and magic behind the footer, too
        # `startswith` of bytes: a view would be compared byte by byte, and a filter has a million bytes
        return size == size_bytes and len(raw) == len(end) - TAIL_BYTES and end.startswith(raw)

    def _is_sampled(self) -> bool:
        """Whether this file is read whole. The name decides, so every attempt gives the same answer."""
        return zlib.crc32(self._path.encode()) < self._settings.verify_share * 2**32

    def _summarize_keys(self, data_bytes: int) -> tuple[AnyBloomFilter, tuple[str, str] | None]:
        """The filter and the range of all keys."""
        new = pa.chunked_array(self._new_keys, pa.string()).combine_chunks()
        carried = self._carried_filter
        fresh = len(new) == self._rows
        # a bloom filter cannot forget keys, so it is sized by the keys ever added, not by the rows that remain
        held = max(self._rows, carried.keys_held + len(new)) if carried is not None and not fresh else 0
        if carried is not None and not fresh and bloom_filter.can_extend(carried, self._settings, held):
            bloom = carried.added(new)
            known = [pa.array(self._bounds)] if self._bounds else self._load_carried_keys()
        else:
            known = self._load_carried_keys()
            every = pa.chunked_array([*known, new], pa.string())
            bloom = bloom_filter.fitted_filter(self._settings, len(every), data_bytes).added(every.combine_chunks())
        keys = pa.chunked_array([*known, new], pa.string())
        return bloom, key_range(keys) if len(keys) else None

    def _load_carried_keys(self) -> list[pa.Array]:
        copied = self._stored.read_keys(self._kept) if self._stored and self._kept else []
        return [*copied, *self._carried_keys]

    def abandon(self) -> None:
        """Closes the open file after a failure. The rollback finds a file that may be left."""
        sink, self._sink = self._sink, None
        if sink is None:
            return
        with suppress(OSError, StorageError):
            discard(self._storage, self._path, self._stage, sink)
