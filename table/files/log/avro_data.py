"""The content of AVRO_DATA blocks: records, each with its length (HoodieAvroDataBlock).

::

    4  version, 3
    4  number of records
       each: 4 bytes of length, then the record in Avro's binary form
"""

import io
import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

from table.columns.memory_size import rows_bytes
from table.errors import CorruptFileError
from table.files.log.avro_columns import LongListError, RowDecoder
from table.files.log.avro_cursors import Bytes, Longs, padded
from table.files.log.avro_encoders import RowEncoder
from table.files.log.few_records import FEW_ROWS, FewRecords, is_plain
from table.files.log.framing import Header, LogBlock
from table.schema.avro_schema import from_avro, relaxed

_NESTED = ("fields", "items", "values", "type")  # keys of an Avro schema that hold schemas
_VERSIONS = (1, 2, 3)
_BATCH_ROWS = 65_536
_BATCH_BYTES = 2 * 1024 * 1024
_RUN_BYTES = 4 * 1024 * 1024


def encode_avro_content(schema: str, records: Iterable[Mapping[str, Any]]) -> bytes:
    """Content of an AVRO_DATA block.

    Args:
        schema: Avro schema (JSON), which the caller puts into the block's header.
        records: records of that schema.
    """
    parsed = fastavro.parse_schema(json.loads(schema), named_schemas={})
    encoded = []
    for record in records:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, dict(record))
        encoded.append(struct.pack(">i", out.tell()) + out.getvalue())
    return struct.pack(">ii", _VERSIONS[-1], len(encoded)) + b"".join(encoded)


def encode_avro_runs(schema: str, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
    """Records of an AVRO_DATA block, some ten thousand at a time: their number, and their bytes with lengths.

    Args:
        schema: Avro schema (JSON), which the caller puts into the block's header.
        rows: rows with the columns of the schema.

    Raises:
        ValueError, ArrowException: the rows do not have the types of the schema.
    """
    run = max(1, min(_BATCH_ROWS, _RUN_BYTES * len(rows) // max(1, rows_bytes(rows))))
    if 0 < len(rows) <= min(FEW_ROWS, run) and (few := _few_records(schema)) is not None:
        yield len(rows), few.encode(rows)
        return
    encoder = RowEncoder(_parsed(schema))
    for first in range(0, len(rows), run):
        piece = rows.slice(first, run)
        yield len(piece), encoder.encode(piece).tobytes()


def joined_runs(runs: Sequence[tuple[int, bytes]]) -> bytes:
    """Content of an AVRO_DATA block made of the runs of `encode_avro_runs`."""
    count = sum(records for records, _ in runs)
    return struct.pack(">ii", _VERSIONS[-1], count) + b"".join(data for _, data in runs)


def read_avro_records(block: LogBlock, name: str = "the log") -> Iterator[Any]:
    """Records of an AVRO_DATA block, decoded with the schema in its header.

    Args:
        block: the block.
        name: name of its file, for the error.

    Raises:
        CorruptFileError: when the content cannot be decoded with that schema.
    """
    try:
        schema = fastavro.parse_schema(json.loads(block.header[Header.SCHEMA]), named_schemas={})
        version, count = struct.unpack_from(">ii", block.content, 0)
        _check_version(version)
        at = 8
        for _ in range(count):
            (length,) = struct.unpack_from(">i", block.content, at)
            yield fastavro.schemaless_reader(io.BytesIO(block.content[at + 4 : at + 4 + length]), schema, None)
            at += 4 + length
    except Exception as error:  # the block brings its own schema, and a damaged block can fail in any way
        raise CorruptFileError(f"{name}: an Avro block is damaged: {error!r}") from error


def read_avro_rows(block: LogBlock, columns: Sequence[str], name: str) -> Iterator[pa.Table]:
    """Rows of an AVRO_DATA block, some ten thousand at a time, with the types of the schema in its header.

    Args:
        block: the block.
        columns: the wanted columns; columns that the block does not have are left out.
        name: name of its file, for the error.

    Raises:
        CorruptFileError: when the content cannot be decoded with that schema.
    """
    try:
        text = block.header[Header.SCHEMA]
        decoder, schema = _reader_of(text, tuple(columns))
        content = memoryview(block.content)
        starts, ends = _places(content)
        for first, last in _batches(starts, ends):
            # copies the records of one batch only: the whole content may be large
            data = padded(content[int(starts[first]) : int(ends[last - 1])])
            begins, behind = starts[first:last] - starts[first], ends[first:last] - starts[first]
            try:
                yield decoder.read(data, begins, behind).cast(schema)
            except LongListError:
                yield _one_by_one(data, _parsed(text), begins, behind, schema)
    except CorruptFileError as error:
        raise CorruptFileError(f"{name}: {error}") from error
    except Exception as error:  # the block brings its own schema, and a damaged block can fail in any way
        raise CorruptFileError(f"{name}: an Avro block is damaged: {error!r}") from error


@lru_cache(maxsize=16)
def _parsed(text: str) -> Any:
    return json.loads(text)


@lru_cache(maxsize=16)
def _reader_of(text: str, columns: tuple[str, ...]) -> tuple[RowDecoder, pa.Schema]:
    """The decoder of the wanted columns of a schema, and their Arrow types. It keeps nothing of what it reads."""
    wanted = frozenset(columns)
    schema = relaxed(pa.schema([field for field in from_avro(text) if field.name in wanted]))
    return RowDecoder(_parsed(text), columns), schema


@lru_cache(maxsize=16)
def _few_records(text: str) -> FewRecords | None:
    """The encoder of few rows of a schema; None if the schema has other fields than plain ones."""
    avro = _parsed(text)
    return FewRecords(avro) if is_plain(avro) else None


def _places(content: memoryview) -> tuple[Longs, Longs]:
    """First byte of each record, and the byte after it.

    Raises:
        ValueError, struct.error: the content does not hold the number of records that it states.
    """
    version, count = struct.unpack_from(">ii", content, 0)
    _check_version(version)
    size = len(content)
    if not 0 <= count <= size // 4:
        raise ValueError(f"{count} records in {size} bytes")
    at, unpack = 8, struct.Struct(">I").unpack_from
    places = [at]
    for _ in range(count):
        at += 4 + unpack(content, at)[0]  # unpacking behind the content fails
        places.append(at)
    if at > size:
        raise ValueError(f"records of {at} bytes")
    found = np.array(places, np.int64)
    return found[:-1] + 4, found[1:]


def _batches(starts: Longs, ends: Longs) -> Iterator[tuple[int, int]]:
    """Runs of records that are decoded together: neither too many nor too large."""
    first = 0
    while first < len(starts):
        last = int(np.searchsorted(ends, starts[first] + _BATCH_BYTES))
        last = min(max(last, first + 1), first + _BATCH_ROWS)
        yield first, last
        first = last


def _one_by_one(data: Bytes, avro: Any, starts: Longs, ends: Longs, schema: pa.Schema) -> pa.Table:
    """Decodes records one by one: with very long lists that is faster than decoding by field (`LongListError`).

    Dates and times stay the numbers that are stored: Python's end at the year 9999.
    """
    parsed = fastavro.parse_schema(_with_numbers(avro), named_schemas={})
    places = zip(starts.tolist(), ends.tolist(), strict=True)
    records = [fastavro.schemaless_reader(io.BytesIO(data[start:end].data), parsed, None) for start, end in places]
    return pa.Table.from_pylist(records, schema)


def _with_numbers(avro: Any) -> Any:
    """An Avro schema whose dates and times are plain numbers, at every depth."""
    if isinstance(avro, list):
        return [_with_numbers(one) for one in avro]
    if not isinstance(avro, Mapping):
        return avro
    is_time = str(avro.get("logicalType", "")).startswith(("date", "time-", "timestamp-", "local-timestamp-"))
    kept = {key: value for key, value in avro.items() if not (is_time and key == "logicalType")}
    return {key: _with_numbers(value) if key in _NESTED else value for key, value in kept.items()}


def _check_version(version: int) -> None:
    if version not in _VERSIONS:
        raise ValueError(f"version {version} is not known")
