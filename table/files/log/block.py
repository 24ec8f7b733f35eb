"""Blocks of Hudi's log format: what log files and the archived timeline are made of (HoodieLogFormatWriter).

::

    6  magic "#HUDI#"
    8  block size: bytes after this field, the trailing pointer included
    4  format version, 1
    4  block type
       header map: count, then (ordinal, length, UTF-8) each
    8  content length
       content
       footer map
    8  reverse pointer = block size + 6

Integers are big-endian.
"""

import io
import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import fastavro

from table.errors import CorruptFileError

MAGIC = b"#HUDI#"
_FIXED = len(MAGIC) + 8
_AVRO_BLOCK_VERSIONS = (1, 2, 3)


class BlockType(IntEnum):
    """What a block holds."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class Header(IntEnum):
    """Ordinals of the header map."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3


@dataclass(frozen=True)
class LogBlock:
    """One block: its type, its header by ordinal, its content."""

    type: BlockType
    header: Mapping[int, str]
    content: bytes


def read_blocks(data: bytes, name: str) -> Iterator[LogBlock]:
    """The blocks of a log file, in order.

    Args:
        data: the whole file.
        name: for errors.

    Raises:
        CorruptFileError: at the first byte that is not what the format says.
    """
    at = 0
    try:
        while at < len(data):
            if data[at : at + len(MAGIC)] != MAGIC:
                raise CorruptFileError(f"{name}: no block begins at byte {at}")
            (size,) = struct.unpack_from(">q", data, at + len(MAGIC))
            end = at + _FIXED + size
            if size < 0 or end > len(data):
                raise CorruptFileError(f"{name}: the block at byte {at} says it has {size} bytes")
            (pointer,) = struct.unpack_from(">q", data, end - 8)
            if pointer != size + len(MAGIC):
                raise CorruptFileError(f"{name}: the block at byte {at} does not end where it says")
            yield _read_block(data[at + _FIXED : end - 8])
            at = end
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise CorruptFileError(f"{name}: the block at byte {at} is damaged: {error}") from error


def _read_block(body: bytes) -> LogBlock:
    version, kind, count = struct.unpack_from(">iii", body, 0)
    _check_version(version, (1,))
    at, header = 12, {}
    for _ in range(count):
        ordinal, length = struct.unpack_from(">ii", body, at)
        header[ordinal] = body[at + 8 : at + 8 + length].decode()
        at += 8 + length
    (length,) = struct.unpack_from(">q", body, at)
    if length < 0 or at + 8 + length > len(body):
        raise ValueError(f"content of {length} bytes")
    return LogBlock(BlockType(kind), header, body[at + 8 : at + 8 + length])


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
        _check_version(version, _AVRO_BLOCK_VERSIONS)
        at = 8
        for _ in range(count):
            (length,) = struct.unpack_from(">i", block.content, at)
            yield fastavro.schemaless_reader(io.BytesIO(block.content[at + 4 : at + 4 + length]), schema, None)
            at += 4 + length
    except Exception as error:  # the block brings its schema along, and a damaged one fails in any way
        raise CorruptFileError(f"{name}: an Avro block is damaged: {error!r}") from error


def encode_avro_block(schema: str, records: Iterable[Mapping[str, Any]]) -> bytes:
    """An AVRO_DATA block, as the archive holds them: the schema is its only header.

    Args:
        schema: Avro schema (JSON).
        records: of that schema.
    """
    parsed = fastavro.parse_schema(json.loads(schema), named_schemas={})
    encoded = []
    for record in records:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, dict(record))
        encoded.append(struct.pack(">i", out.tell()) + out.getvalue())
    content = struct.pack(">ii", _AVRO_BLOCK_VERSIONS[-1], len(encoded)) + b"".join(encoded)
    text = schema.encode()
    header = struct.pack(">iii", 1, Header.SCHEMA, len(text)) + text
    footer = struct.pack(">i", 0)
    body = struct.pack(">ii", 1, BlockType.AVRO_DATA) + header + struct.pack(">q", len(content)) + content + footer
    size = len(body) + 8
    return MAGIC + struct.pack(">q", size) + body + struct.pack(">q", size + len(MAGIC))


def _check_version(version: int, known: tuple[int, ...]) -> None:
    if version not in known:
        raise ValueError(f"version {version} is not known")
