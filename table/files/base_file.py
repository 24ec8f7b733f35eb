"""One base file: Parquet with Hudi's footer (HoodieBloomFilterWriteSupport, HoodieAvroParquetWriter).

The footer carries the bloom filter of all record keys, the least and the greatest key, and the Avro
schema. Rows come in as Arrow tables and leave as row groups of bounded size; what is kept until the
end is the record keys alone, because the filter is sized by their number.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from table.errors import CorruptFileError
from table.files import bloom_filter
from table.files.bloom_filter import AnyBloomFilter
from table.schema import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from table.settings import BaseFileSettings
from table.storage import OutputFile, Storage

BLOOM_KEY = "org.apache.hudi.bloomfilter"
BLOOM_TYPE_KEY = "hoodie_bloom_filter_type_code"
MIN_KEY, MAX_KEY = "hoodie_min_record_key", "hoodie_max_record_key"
AVRO_SCHEMA_KEY = "parquet.avro.schema"
# Spark refuses dates before 1582 and times before 1900 in files that do not say by which calendar they
# were written; this is how a file says "the proleptic Gregorian one" (DataSourceUtils.datetimeRebaseSpec)
CALENDAR = {"org.apache.spark.version": "3.0.0"}

# few values, repeated: they travel as dictionaries, and no page of them is encoded twice
REPEATED_META_COLUMNS = (COMMIT_TIME, PARTITION_PATH, FILE_NAME)
_REPEATED = pa.dictionary(pa.int32(), pa.string())

READ_BATCH_ROWS = 65_536


@dataclass(frozen=True)
class BaseFileSummary:
    """What was written: rows, bytes, and how many of the bytes are footer."""

    rows: int
    size_bytes: int
    footer_bytes: int


def file_schema(schema: pa.Schema) -> pa.Schema:
    """Arrow schema of a base file's rows on their way through memory: repeated strings as dictionaries."""
    return pa.schema(
        [pa.field(f.name, _REPEATED, f.nullable) if f.name in REPEATED_META_COLUMNS else f for f in schema]
    )


def constant_column(value: str, length: int) -> pa.DictionaryArray:
    """A column that holds one string `length` times."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(length, np.int32)), pa.array([value]))


class BaseFileWriter:
    """Writes one base file.

    Args:
        storage: the table's.
        path: relative to the table.
        schema: meta columns and table columns (Arrow).
        avro_schema: the same as Avro JSON, for the footer.
        settings: codec, sizes, filter.
        carried_filter: filter of the file whose rows are carried over; it is extended while it lasts.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        schema: pa.Schema,
        avro_schema: str,
        settings: BaseFileSettings,
        carried_filter: AnyBloomFilter | None = None,
    ) -> None:
        self._storage, self._path, self._settings = storage, path, settings
        self._schema = file_schema(schema)
        self._avro_schema = avro_schema
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._carried_filter = carried_filter
        self._carried_keys: list[pa.Array] = []
        self._new_keys: list[pa.Array] = []
        self._rows = 0
        self._sink: OutputFile = storage.open_output(path)
        plain = (RECORD_KEY, COMMIT_SEQNO)  # no two alike: a dictionary of them is built for nothing
        self._writer = pq.ParquetWriter(
            self._sink,
            self._schema,
            compression=settings.codec,
            compression_level=settings.codec_level,
            use_dictionary=[
                f.name for f in schema if f.name not in plain and (settings.dictionary or f.name in META_COLUMNS)
            ],
            store_schema=False,
        )

    @property
    def rows(self) -> int:
        """Rows taken so far."""
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
        (self._carried_keys if carried else self._new_keys).extend(rows.column(RECORD_KEY).chunks)
        self._pending.append(rows.cast(self._schema) if rows.schema != self._schema else rows)
        self._pending_bytes += rows_bytes(rows)
        if self._pending_bytes >= self._settings.row_group_bytes:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            group = pa.concat_tables(self._pending).unify_dictionaries()
            self._pending, self._pending_bytes = [], 0
            self._writer.write_table(group, row_group_size=len(group))

    def close(self) -> BaseFileSummary:
        """Writes the last row group and the footer; the file is whole when this returns."""
        self._flush()
        self._writer.add_key_value_metadata(self._footer())
        data_bytes = self._sink.tell()
        self._writer.close()
        size_bytes = self._sink.tell()
        self._sink.close()
        self._storage.sync(self._path)
        return BaseFileSummary(self._rows, size_bytes, size_bytes - data_bytes)

    def _footer(self) -> dict[str, str]:
        keys = pa.chunked_array([*self._carried_keys, *self._new_keys], pa.string())
        new_keys = pa.chunked_array(self._new_keys, pa.string()).combine_chunks()
        carried = self._carried_filter if self._carried_keys else None
        if carried is not None and bloom_filter.can_extend(carried, self._settings, len(keys)):
            bloom = carried.added(new_keys)
        else:
            bloom = bloom_filter.fitted_filter(self._settings, len(keys)).added(keys.combine_chunks())
        footer = {**CALENDAR, AVRO_SCHEMA_KEY: self._avro_schema, BLOOM_KEY: bloom.encode()}
        if bloom.type_code != bloom_filter.SIMPLE:
            footer[BLOOM_TYPE_KEY] = bloom.type_code
        if len(keys):
            footer[MIN_KEY], footer[MAX_KEY] = key_range(keys)
        return footer

    def abandon(self) -> None:
        """Closes what is open after a failure; the file that may be left is the rollback's to find."""
        try:
            self._sink.close()
        except OSError:
            return


def rows_bytes(rows: pa.Table) -> int:
    """About how many bytes of memory these rows take, not those they were sliced from.

    Arrow's own ``nbytes`` crashes on some sliced nested columns as Spark sends them (pyarrow 26).
    """
    return sum(_chunk_bytes(chunk) for column in rows.columns for chunk in column.chunks)


def _chunk_bytes(chunk: pa.Array) -> int:
    if not pa.types.is_nested(chunk.type):
        return int(chunk.nbytes)
    if pa.types.is_struct(chunk.type):
        fields = (chunk.field(number).slice(chunk.offset, len(chunk)) for number in range(chunk.type.num_fields))
        return sum(_chunk_bytes(field) for field in fields)
    offsets = chunk.buffers()[1]
    whole = max(len(chunk), offsets.size // 4 - 1) if offsets is not None else len(chunk)
    return int(chunk.get_total_buffer_size() * len(chunk) / max(1, whole))


def key_range(keys: pa.ChunkedArray) -> tuple[str, str]:
    """Least and greatest key as Java compares strings, that is by UTF-16 units.

    Arrow compares UTF-8 bytes, which agrees unless there are characters at or above U+E000.
    """
    bounds = pc.min_max(keys).as_py()
    if not any(_has_high_characters(chunk) for chunk in keys.chunks):
        return bounds["min"], bounds["max"]
    distinct = keys.unique().to_pylist()
    return min(distinct, key=_utf16), max(distinct, key=_utf16)


def _has_high_characters(chunk: pa.Array) -> bool:
    data = chunk.buffers()[2]
    return data is not None and bool((np.frombuffer(data, np.uint8) >= 0xEE).any())


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def read_batches(storage: Storage, path: str, schema: pa.Schema) -> Iterator[pa.Table]:
    """Rows of a base file, some ten thousand at a time, brought to a schema.

    Args:
        storage: the table's.
        path: relative to the table.
        schema: the columns wanted; ones that the file lacks come as nulls.

    Raises:
        CorruptFileError: when the file is no Parquet file.
    """
    with storage.open_input(path) as source:
        try:
            file = pq.ParquetFile(source, read_dictionary=list(REPEATED_META_COLUMNS))
        except (pa.ArrowInvalid, OSError) as error:
            raise CorruptFileError(f"{path} of {storage.base_uri!r} is not a Parquet file: {error}") from error
        present = set(file.schema_arrow.names)
        columns = [name for name in schema.names if name in present]
        for batch in file.iter_batches(READ_BATCH_ROWS, columns=columns, use_threads=False):
            yield conform(pa.Table.from_batches([batch]), schema)


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with exactly these columns: missing ones null, others cast."""
    columns = []
    for field in schema:
        index = rows.schema.get_field_index(field.name)
        if index < 0:
            columns.append(pa.nulls(len(rows), field.type))
        else:
            column = rows.column(index)
            columns.append(column if column.type.equals(field.type) else column.cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def read_footer(storage: Storage, path: str) -> Mapping[str, str]:
    """Hudi's entries of a base file's footer (key-value metadata).

    Raises:
        CorruptFileError: when the file is no Parquet file.
    """
    with storage.open_input(path) as source:
        try:
            metadata = pq.read_metadata(source).metadata or {}
        except (pa.ArrowInvalid, OSError) as error:
            raise CorruptFileError(f"{path} of {storage.base_uri!r} is not a Parquet file: {error}") from error
    return {key.decode(): value.decode() for key, value in metadata.items()}


def filter_of_footer(footer: Mapping[str, str], max_entries: int) -> AnyBloomFilter | None:
    """The bloom filter in a footer, or None where there is none, or none that can be read."""
    text = footer.get(BLOOM_KEY)
    if text is None:
        return None
    try:
        return bloom_filter.decode_filter(text, footer.get(BLOOM_TYPE_KEY), max_entries)
    except CorruptFileError:
        return None  # the rows are whole; a new filter is built


def read_footer_bytes(storage: Storage, path: str) -> int:
    """Length of a base file's footer: its last eight bytes tell.

    Raises:
        CorruptFileError: when the file does not end as a Parquet file does.
    """
    with storage.open_input(path) as source:
        size = source.size()
        source.seek(max(0, size - 8))
        tail = source.read(8)
    if len(tail) < 8 or tail[4:] != b"PAR1":
        raise CorruptFileError(f"{path} of {storage.base_uri!r} is not a Parquet file")
    return int.from_bytes(tail[:4], "little") + 8
