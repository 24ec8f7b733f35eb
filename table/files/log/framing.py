"""The envelope of all blocks in Hudi's log format (HoodieLogFormatWriter, HoodieLogFileReader).

::

    6  magic "#HUDI#"
    8  block size: bytes after this field, the trailing pointer included
    4  format version, 1
    4  block type
       header map: count, then (ordinal, length, UTF-8) each
    8  content length
       content
       footer map, as the header's
    8  reverse pointer = block size + 6

Integers are big-endian. There is no checksum: changed bytes in a header's text or in the content are not
noticed here.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Protocol

from table.errors import CorruptFileError

MAGIC = b"#HUDI#"
FORMAT_VERSION = 1
_FIXED = len(MAGIC) + 8
_POINTER = 8
_LEAST_SIZE = 4 + 4 + 4 + 8 + 4 + _POINTER  # size of a block without headers, content and footers
_SEARCH_BYTES = 1 << 20
_HEAD_BYTES = 1 << 16  # bytes that are read at each end of a block whose content is not wanted


class BlockType(IntEnum):
    """The type of a block's content (HoodieLogBlockType)."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class Header(IntEnum):
    """Ordinals of the header map (HeaderMetadataType). The last two belong to table version 8."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


class Verdict(Enum):
    """The finding of a scan at a place of a log file.

    WHOLE: a block. DAMAGED: bytes that are no block; the file goes on or ends after them.
    CUT_OFF: the file ends within a block, as after a writer that died.
    """

    WHOLE = "whole"
    DAMAGED = "damaged"
    CUT_OFF = "cut off"


@dataclass(frozen=True, slots=True)
class LogBlock:
    """One block.

    Attributes:
        type: type of the content.
        header: text by `Header` ordinal; ordinals of newer writers are kept.
        content: bytes of that type. A block that was read has a view, because its content may be large.
        footer: a map as the header; writers leave it empty.
    """

    type: BlockType
    header: Mapping[int, str]
    content: bytes | memoryview
    footer: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScannedBlock:
    """One place of a log file.

    Attributes:
        verdict: the finding of the scan.
        start: first byte, counted from the start of the file.
        end: the byte after the last one, at which the scan goes on.
        block: the block, if it is whole.
        reason: the fault, if it is not whole.
        is_framed: whether size and reverse pointer agree. Hudi skips damage without a frame, such as a block of a dead
            writer. Hudi fails at damage within a frame, because skipping it could lose rows.
        begins: whether the place begins with a magic. Hudi fails where it does not, which is possible only at the start
            of a file.
    """

    verdict: Verdict
    start: int
    end: int
    block: LogBlock | None = None
    reason: str = ""
    is_framed: bool = False
    begins: bool = True


class SeekableStream(Protocol):
    """The source of a scan: a binary file, ``io.BytesIO``, or Arrow's ``NativeFile``."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Moves to a byte; returns its position."""

    def read(self, size: int, /) -> bytes:
        """Reads `size` bytes; fewer only at the end of the file."""


def encode_block(block: LogBlock) -> bytes:
    """The bytes of a block, from magic to reverse pointer."""
    body = struct.pack(">ii", FORMAT_VERSION, block.type) + _encode_texts(block.header)
    body += struct.pack(">q", len(block.content)) + block.content + _encode_texts(block.footer)
    size = len(body) + _POINTER
    return MAGIC + struct.pack(">q", size) + body + struct.pack(">q", size + len(MAGIC))


def _encode_texts(texts: Mapping[int, str]) -> bytes:
    parts = [struct.pack(">i", len(texts))]
    for ordinal, text in texts.items():
        data = text.encode()
        parts.append(struct.pack(">ii", ordinal, len(data)) + data)
    return b"".join(parts)


def scan_blocks(stream: SeekableStream, *, with_content: bool = True) -> Iterator[ScannedBlock]:
    """Scans a log file block by block; one block at a time is in memory.

    The scan follows the rules of Hudi's reader, so both take the same blocks for whole. A block is whole only if
    another block's magic, the end of the file, or fewer bytes than a magic follow it. After damage the scan goes on
    at the next magic.

    Args:
        stream: the file.
        with_content: False where types and headers are enough: the blocks then have the content b"", and the scan
            reads little.

    Returns:
        The places of the file in order, without gaps.
    """
    size, at = stream.seek(0, 2), 0
    while at < size:
        found = _scan_at(stream, at, size, with_content=with_content)
        yield found
        at = found.end


def read_block(stream: SeekableStream, place: ScannedBlock) -> LogBlock:
    """Reads a whole block that a scan without contents found.

    Raises:
        CorruptFileError: the block is no longer there.
    """
    found = _scan_at(stream, place.start, stream.seek(0, 2), with_content=True)
    if found.block is None:
        raise CorruptFileError(f"the block at byte {place.start} is damaged: {found.reason}")
    return found.block


def _scan_at(stream: SeekableStream, at: int, size: int, *, with_content: bool) -> ScannedBlock:
    start = _read_at(stream, at, _FIXED)
    begins = start.startswith(MAGIC)
    if len(start) < _FIXED and (begins or len(start) < len(MAGIC)):
        return ScannedBlock(Verdict.CUT_OFF, at, size, reason="the file ends before the block's size")
    length = struct.unpack_from(">q", start, len(MAGIC))[0] if begins else 0
    reason = _find_fault(stream, at, length, size) if begins else "no block begins there"
    if reason is None:
        return _read_block(stream, at, length, with_content=with_content)
    following = _find_magic(stream, at + (len(MAGIC) if begins else 1), size)
    is_cut_off = begins and at + _FIXED + length > size and following == size
    verdict = Verdict.CUT_OFF if is_cut_off else Verdict.DAMAGED
    return ScannedBlock(verdict, at, following, reason=reason, begins=begins)


def _find_fault(stream: SeekableStream, at: int, length: int, size: int) -> str | None:
    """The fault in the frame of a block that states this length, or None."""
    end = at + _FIXED + length
    if length < _LEAST_SIZE:
        return f"it says it has {length} bytes"
    if end > size:
        return f"it says it has {length} bytes, which the file does not have"
    after = _read_at(stream, end - _POINTER, _POINTER + len(MAGIC))
    if struct.unpack_from(">q", after)[0] != length + len(MAGIC):
        return "it does not end where it says"
    has_stranger = len(after) == _POINTER + len(MAGIC) and not after.endswith(MAGIC)
    return f"no block begins at byte {end}, where it ends" if has_stranger else None


def _read_block(stream: SeekableStream, at: int, length: int, *, with_content: bool) -> ScannedBlock:
    end = at + _FIXED + length
    try:
        if with_content:
            block = _decode_body(_read_at(stream, at + _FIXED, length - _POINTER))
        else:
            block = _decode_shell(stream, at + _FIXED, length - _POINTER)
    except (struct.error, ValueError) as error:
        return ScannedBlock(Verdict.DAMAGED, at, end, reason=str(error), is_framed=True)
    return ScannedBlock(Verdict.WHOLE, at, end, block, is_framed=True)


def _find_magic(stream: SeekableStream, start: int, size: int) -> int:
    """The place of the next magic, or the file's size if there is none."""
    while start < size:
        piece = _read_at(stream, start, _SEARCH_BYTES)
        found = piece.find(MAGIC)
        if found >= 0:
            return start + found
        if start + len(piece) >= size:
            break
        start += len(piece) - len(MAGIC) + 1
    return size


def _read_at(stream: SeekableStream, at: int, length: int) -> bytes:
    stream.seek(at)
    return bytes(stream.read(length))


def _decode_body(body: bytes) -> LogBlock:
    """Decodes the bytes between a block's size and its reverse pointer.

    Raises:
        struct.error, ValueError: the bytes do not follow the format.
    """
    version, kind = struct.unpack_from(">ii", body, 0)
    if version != FORMAT_VERSION:
        raise ValueError(f"format version {version} is not known")
    header, at = _decode_texts(body, 8)
    (length,) = struct.unpack_from(">q", body, at)
    start, end = at + 8, at + 8 + length
    if length < 0 or end > len(body):
        raise ValueError(f"content of {length} bytes")
    footer, rest = _decode_texts(body, end)
    if rest != len(body):
        raise ValueError(f"{len(body) - rest} bytes after the footer")
    return LogBlock(BlockType(kind), header, memoryview(body)[start:end], footer)


def _decode_shell(stream: SeekableStream, at: int, length: int) -> LogBlock:
    """A block without its content, decoded from its first bytes and the bytes after the content.

    Raises:
        struct.error, ValueError: as `_decode_body`.
    """
    head = _read_at(stream, at, min(length, _HEAD_BYTES))
    try:
        _, content_at = _decode_texts(head, 8)
        (content,) = struct.unpack_from(">q", head, content_at)
    except (struct.error, ValueError):
        content_at, content = 0, -1
    if content < 0 or length - content_at - 8 - content not in range(_HEAD_BYTES):
        block = _decode_body(_read_at(stream, at, length))  # a long header, or damage
        return LogBlock(block.type, block.header, b"", block.footer)
    end = content_at + 8 + content
    rest = _read_at(stream, at + end, length - end)
    return _decode_body(head[:content_at] + struct.pack(">q", 0) + rest)


def _decode_texts(body: bytes, at: int) -> tuple[dict[int, str], int]:
    (count,) = struct.unpack_from(">i", body, at)
    if count < 0:
        raise ValueError(f"a map of {count} entries")
    at, texts = at + 4, {}
    for _ in range(count):
        ordinal, length = struct.unpack_from(">ii", body, at)
        if length < 0 or at + 8 + length > len(body):
            raise ValueError(f"a text of {length} bytes")
        texts[ordinal] = body[at + 8 : at + 8 + length].decode()
        at += 8 + length
    return texts, at
