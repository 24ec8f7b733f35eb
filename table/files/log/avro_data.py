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
from itertools import islice
from typing import Any

import fastavro
import pyarrow as pa

from table.errors import CorruptFileError
from table.files.log.framing import Header, LogBlock
from table.schema.avro_schema import from_avro, relaxed

_VERSIONS = (1, 2, 3)
_BATCH_ROWS = 65_536


def encode_avro_content(schema: str, records: Iterable[Mapping[str, Any]]) -> bytes:
    """Content of an AVRO_DATA block.

    Args:
        schema: Avro schema (JSON), which the block's header is to hold.
        records: of that schema.
    """
    parsed = fastavro.parse_schema(json.loads(schema), named_schemas={})
    encoded = []
    for record in records:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, dict(record))
        encoded.append(struct.pack(">i", out.tell()) + out.getvalue())
    return struct.pack(">ii", _VERSIONS[-1], len(encoded)) + b"".join(encoded)


def read_avro_records(block: LogBlock, name: str = "the log") -> Iterator[Any]:
    """Records of an AVRO_DATA block, decoded with the schema in its header.

    Args:
        block: the block.
        name: of its file, for the error.

    Raises:
        CorruptFileError: when the content is not such records.
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
    except Exception as error:  # the block brings its schema along, and a damaged one fails in any way
        raise CorruptFileError(f"{name}: an Avro block is damaged: {error!r}") from error


def read_avro_rows(block: LogBlock, columns: Sequence[str], name: str) -> Iterator[pa.Table]:
    """Rows of an AVRO_DATA block, some ten thousand at a time, with the types of the schema in its header.

    Args:
        block: the block.
        columns: the columns wanted; ones that the block lacks are left out.
        name: of its file, for the error.

    Raises:
        CorruptFileError: when the content is not such records.
    """
    try:
        whole = from_avro(block.header[Header.SCHEMA])
        schema = relaxed(pa.schema([field for field in whole if field.name in set(columns)]))
        records = read_avro_records(block, name)
        while rows := list(islice(records, _BATCH_ROWS)):
            yield pa.Table.from_pylist(rows, schema)
    except (KeyError, pa.ArrowException, ValueError, TypeError) as error:
        raise CorruptFileError(f"{name}: an Avro block is damaged: {error!r}") from error


def _check_version(version: int) -> None:
    if version not in _VERSIONS:
        raise ValueError(f"version {version} is not known")
