"""Writes row groups into a file that the caller began: Arrow encodes them, this module places them.

Arrow's writer writes as if to a whole file. This module drops its magic, keeps its footer out of the file, and
corrects its offsets to where the bytes really are.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from table.files.parquet.chunk_statistics import TextStatistics, with_bounds, with_text_statistics
from table.files.parquet.dictionary_choice import DICTIONARY_BYTES, columns_with_dictionary
from table.files.parquet.dictionary_statistics import as_write_statistics, columns_told_here, tell_dictionaries
from table.files.parquet.footer import MAGIC, TAIL_BYTES, Footer, decode_footer
from table.files.parquet.nan_bounds import find_nan, with_open_bounds
from table.files.parquet.shared_chunk import encode_lead_page, find_shared_column, share_chunk
from table.files.parquet.value_bounds import Extremes, Path, as_bounds, long_extremes
from table.files.parquet.written_group import WrittenGroup, cut_groups
from table.options.groups import BaseFileSettings
from table.schema.avro_schema import COMMIT_SEQNO, META_COLUMNS, RECORD_KEY
from table.storage.interface import OutputFile

_GATHERED_BYTES = 16 * 1024
_MOST_GROUP_ROWS = 64 * 1024 * 1024  # Arrow cuts larger row groups
_NEVER_REPEATED = (RECORD_KEY, COMMIT_SEQNO)


class _Pass:
    """The file object that Arrow writes to: passes the row groups on, drops the magic, keeps the footer.

    Attributes:
        written: bytes that Arrow has written, magic included.
    """

    closed = False

    def __init__(self, sink: OutputFile) -> None:
        self._sink = sink
        self.written = 0
        self._footer: bytearray | None = None

    def write(self, data: Any) -> None:
        length = len(data)
        if self.written < len(MAGIC):  # Arrow's first bytes are the magic
            data = memoryview(data)[len(MAGIC) - self.written :]
        if self._footer is not None:
            self._footer += data
        elif len(data):
            self._sink.write(data)
        self.written += length

    def end_rows(self) -> None:
        self._footer = bytearray()

    @property
    def footer(self) -> bytes:
        return bytes(self._footer or b"")[:-TAIL_BYTES]

    def flush(self) -> None:
        """Does nothing: this object buffers nothing."""

    def close(self) -> None:
        """Does nothing: the caller's file stays open."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


class _Encoder:
    """Arrow's writer of some columns. The caller writes other bytes between its row groups."""

    def __init__(
        self,
        sink: OutputFile,
        schema: pa.Schema,
        settings: BaseFileSettings,
        with_dictionary: Sequence[str] = (),
        told_here: Sequence[str] = (),
    ) -> None:
        self._sink, self._pass = sink, _Pass(sink)
        # Arrow writes a small page in several pieces: this buffer gathers them, and passes large pieces on
        self._gathered = pa.BufferedOutputStream(pa.PythonFile(self._pass, mode="w"), _GATHERED_BYTES)
        self._form = schema, settings
        self._shifts: list[int] = []
        self._extremes: list[dict[Path, Extremes]] = []  # per row group: columns in which Arrow may leave out a bound
        self._nan: list[frozenset[Path]] = []  # per row group: columns with a NaN
        self._told_here = told_here
        self._told: list[Mapping[Path, TextStatistics]] = []  # per row group: columns without Arrow's statistics
        self._writer = pq.ParquetWriter(
            self._gathered,
            schema,
            compression=settings.codec,
            compression_level=settings.level,
            use_dictionary=list(with_dictionary),
            dictionary_pagesize_limit=DICTIONARY_BYTES,
            data_page_size=settings.page_bytes,
            store_schema=False,
            write_statistics=as_write_statistics(schema, told_here),
            write_page_checksum=True,
        )

    def write(self, rows: pa.Table) -> None:
        """Writes a row group."""
        self._gathered.flush()
        self._shifts.append(self._sink.tell() - self._pass.written)
        self._writer.write_table(rows, row_group_size=len(rows))
        self._gathered.flush()
        self._extremes += long_extremes(rows.drop_columns(self._told_here), len(rows))
        self._nan.append(find_nan([rows]))
        self._told.append(tell_dictionaries(rows, self._told_here))

    def finish(self) -> list[WrittenGroup]:
        """The written row groups, with their offsets in the file."""
        groups = cut_groups(self.close(), empty_footer(*self._form).before_rows, self._shifts)
        return [
            _completed(group, extremes, nan, texts)
            for group, extremes, nan, texts in zip(groups, self._extremes, self._nan, self._told, strict=True)
        ]

    def close(self) -> bytes:
        """Ends Arrow's writer. Returns the footer that it would have written."""
        self._gathered.flush()
        self._pass.end_rows()
        self._writer.close()
        self._gathered.flush()
        return self._pass.footer


def _completed(
    group: WrittenGroup, extremes: Mapping[Path, Extremes], nan: frozenset[Path], texts: Mapping[Path, TextStatistics]
) -> WrittenGroup:
    """A row group with the statistics that Arrow left out, and with bounds that hold for NaN."""
    if not extremes and not nan and not texts:
        return group
    bounded = with_bounds(group.decoded, as_bounds(extremes)) if extremes else group.decoded
    bounded = with_open_bounds(bounded, nan) if nan else bounded
    return group.with_struct(with_text_statistics(bounded, texts) if texts else bounded)


class _Stretch:
    """Row groups that are encoded alike: the same columns get a dictionary, and the same column shares its chunk.

    The shared chunk stands after the others: a row group has to begin with its first column, because readers take
    the row group's place from it.
    """

    def __init__(
        self,
        sink: OutputFile,
        rows: pa.Table,
        parts: int,
        settings: BaseFileSettings,
        shared: str | None,
    ) -> None:
        self._shared = shared
        self._sink, self._settings, self._names = sink, settings, rows.column_names
        self._others = [name for name in self._names if not shared or name not in (RECORD_KEY, shared)]
        with_dictionary = _with_dictionary(rows.select(self._others), parts, settings)
        schema = _part_of(rows.schema, self._others)
        told_here = columns_told_here(schema, len(rows) // parts)
        self._encoder = _Encoder(sink, schema, settings, with_dictionary, told_here)
        self._keys: _Encoder | None = None
        if shared is not None:
            self._keys = _Encoder(sink, _part_of(rows.schema, [shared]), settings, ())

    def suits(self, shared: str | None) -> bool:
        """Whether row groups whose record key shares the chunk of this column can be encoded in the same way."""
        return shared == self._shared

    def write(self, rows: pa.Table) -> None:
        """Writes a row group."""
        if self._keys is None:
            self._encoder.write(rows)
            return
        self._encoder.write(rows.select(self._others))
        self._sink.write(encode_lead_page(self._settings.codec)[0])
        self._keys.write(rows.select([self._shared]))

    def finish(self) -> list[WrittenGroup]:
        """The written row groups, with their offsets in the file."""
        groups = self._encoder.finish()
        if self._keys is None:
            return groups
        names, codec = self._names, self._settings.codec
        return [
            keys.with_struct(share_chunk(others.decoded, keys.decoded, names, codec))
            for others, keys in zip(groups, self._keys.finish(), strict=True)
        ]


def _part_of(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])


class RowGroupWriter:
    """Encodes row groups at the end of an open file.

    Args:
        sink: the file, which has its magic already.
        schema: schema of the rows (Arrow).
        settings: codec, level, dictionaries, whether the record key shares the chunk of its column.
    """

    def __init__(self, sink: OutputFile, schema: pa.Schema, settings: BaseFileSettings) -> None:
        self._sink, self._schema, self._settings = sink, schema, settings
        self._finished: list[WrittenGroup] = []
        self._stretch: _Stretch | None = None

    def write(self, rows: pa.Table, parts: int = 1) -> None:
        """Writes rows as `parts` row groups of about the same size. The first rows decide the dictionary columns."""
        shared = find_shared_column(rows) if self._settings.shared_key_chunk else None
        if self._stretch is not None and not self._stretch.suits(shared):
            self._finished += self._stretch.finish()
            self._stretch = None
        if self._stretch is None:
            self._stretch = _Stretch(self._sink, rows, parts, self._settings, shared)
        group_rows = max(1, min(-(-len(rows) // parts), _MOST_GROUP_ROWS))
        for start in range(0, len(rows), group_rows):
            self._stretch.write(rows.slice(start, group_rows))

    def finish(self) -> tuple[list[WrittenGroup], Footer]:
        """The written row groups with their offsets in the file, and a footer of the schema without row groups."""
        if self._stretch is not None:
            self._finished += self._stretch.finish()
            self._stretch = None
        return self._finished, empty_footer(self._schema, self._settings)


def _with_dictionary(rows: pa.Table, parts: int, settings: BaseFileSettings) -> list[str]:
    allowed = [name for name in rows.column_names if settings.dictionary or name in META_COLUMNS]
    return columns_with_dictionary(rows.select([name for name in allowed if name not in _NEVER_REPEATED]), parts)


class _Nowhere:
    """A file object that counts the bytes and drops them."""

    def __init__(self) -> None:
        self._length = len(MAGIC)

    def write(self, data: Any) -> None:
        self._length += len(data)

    def tell(self) -> int:
        return self._length

    def close(self) -> None:
        """Does nothing."""


@lru_cache(maxsize=16)
def empty_footer(schema: pa.Schema, settings: BaseFileSettings) -> Footer:
    """The footer of a file of that schema without rows: it shows how this pyarrow spells schema trees."""
    return decode_footer(_Encoder(_Nowhere(), schema, settings).close())


def encoded_bytes(rows: pa.Table, settings: BaseFileSettings) -> int:
    """Bytes that rows take as one row group of a file, without the footer."""
    sink = _Nowhere()
    writer = RowGroupWriter(sink, rows.schema, settings)
    writer.write(rows)
    writer.finish()
    return sink.tell() - len(MAGIC)
