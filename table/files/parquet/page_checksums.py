"""The checksums of Parquet's pages: CRC32 over the stored bytes of a page, in its header (pure; parquet.thrift).

Hudi's own files carry them, by parquet-mr's default. A file without them is whole as far as anybody can say.
"""

import zlib
from collections.abc import Iterator
from typing import NamedTuple

from table.errors import CorruptFileError
from table.files.parquet.row_groups import field_value, fields_of_known_types
from table.files.parquet.thrift_compact import I32, Field, Struct, decode_struct, encode_struct, skip_struct

# PageHeader of parquet.thrift
STORED_BYTES, CHECKSUM = 3, 4
_USUAL_HEADER_BYTES = 1024  # tried first: bytes are copied to be decoded
_MOST_HEADER_BYTES = 1 << 20  # a header holds bounds, which are cut to some hundred bytes by most writers


def signed_checksum(stored: bytes | memoryview) -> int:
    """The checksum of a page's stored bytes as Thrift's i32 holds it."""
    found = zlib.crc32(stored)
    return found - (1 << 32) if found >> 31 else found


def has_checksum(chunk: bytes) -> bool:
    """Whether the first page of a chunk carries a checksum.

    Args:
        chunk: the chunk, or its beginning.

    Raises:
        CorruptFileError: it does not begin with a page.
    """
    return CHECKSUM in _read_header(chunk, 0)[0]


def is_broken_header(error: Exception) -> bool:
    """Whether Arrow's reader cannot decode the header of a page: that is an OSError without a type of its own, too."""
    return "deserialize thrift" in str(error)


def is_mismatch(error: Exception) -> bool:
    """Whether Arrow's reader says that a page differs from its checksum: it is an OSError without a type of its own."""
    return "page integrity" in str(error)


class Page(NamedTuple):
    """A page of a chunk.

    Attributes:
        header: its header.
        stored: its bytes after the header, as they are stored.
    """

    header: Struct
    stored: memoryview


def split_pages(chunk: bytes) -> Iterator[Page]:
    """The pages of a whole chunk.

    Raises:
        CorruptFileError: the bytes are not pages.
    """
    at, view = 0, memoryview(chunk)
    while at < len(chunk):
        header, start = _read_header(chunk, at)
        at = start + _stored_bytes(header)
        if at > len(chunk):
            raise CorruptFileError("a page is cut short")
        yield Page(header, view[start:at])


def _read_header(data: bytes, at: int) -> tuple[Struct, int]:
    try:
        end = skip_struct(data, at)
    except IndexError as error:
        raise CorruptFileError("the header of a page is cut short") from error
    return decode_struct(data[at:end]), end


def _find_header(view: memoryview) -> tuple[Struct, int] | None:
    """The header at the beginning, and where it ends; None where it is not there as a whole."""
    for most in (_USUAL_HEADER_BYTES, _MOST_HEADER_BYTES):
        try:
            return _read_header(bytes(view[:most]), 0)
        except CorruptFileError:
            if len(view) <= most:
                break
    return None


def _stored_bytes(header: Struct) -> int:
    with fields_of_known_types():
        length = int(field_value(header, STORED_BYTES))
    if length < 0:
        raise CorruptFileError(f"a page of {length} bytes")
    return length


class PageForm(NamedTuple):
    """A page in which a text is replaced again and again.

    Attributes:
        before: the bytes of its header up to the checksum.
        after: those after the checksum; None: it has no checksum.
        stored: its stored bytes.
    """

    before: bytes
    after: bytes | None
    stored: bytes

    def filled(self, old: bytes, new: bytes) -> bytes:
        """The page with `new`, which is as long, in the place of `old`, and with its checksum."""
        before, stored = self.before.replace(old, new), self.stored.replace(old, new)
        if self.after is None:
            return before + stored
        checksum = encode_struct({CHECKSUM: Field(I32, signed_checksum(stored))}, STORED_BYTES)[:-1]
        return b"".join((before, checksum, self.after.replace(old, new), stored))


def forms_of(chunk: bytes) -> tuple[PageForm, ...]:
    """The pages of a whole chunk, to be filled.

    Raises:
        CorruptFileError: the bytes are not pages.
    """
    return tuple(_form_of(page) for page in split_pages(chunk))


def _form_of(page: Page) -> PageForm:
    header, stored = page.header, bytes(page.stored)
    if CHECKSUM not in header:
        return PageForm(encode_struct(header), None, stored)
    first = {number: one for number, one in header.items() if number < CHECKSUM}
    rest = {number: one for number, one in header.items() if number > CHECKSUM}
    return PageForm(encode_struct(first)[:-1], encode_struct(rest, CHECKSUM), stored)


class ChunkProof:
    """Compares the pages of a chunk with their checksums while its bytes pass.

    Args:
        name: of the file, for the error.
        length: bytes of the chunk.

    Attributes:
        pages: pages that passed whole.
        summed: those of them that carry a checksum.
    """

    def __init__(self, name: str, length: int) -> None:
        self._name, self._left = name, length
        self._held = b""  # the beginning of a header
        self._page_left = 0
        self._expected: int | None = None
        self._sum = 0
        self.pages = self.summed = 0

    def take(self, piece: bytes | memoryview) -> None:
        """Takes the next bytes of the chunk.

        Raises:
            CorruptFileError: a page differs from its checksum, or the bytes are not pages.
        """
        self._left -= len(piece)
        if self._held:
            piece, self._held = self._held + bytes(piece), b""
        view = memoryview(piece)
        while view:
            if not self._page_left:
                view = self._begin(view)
                continue
            part = view[: self._page_left]
            self._sum = zlib.crc32(part, self._sum) if self._expected is not None else 0
            self._page_left -= len(part)
            view = view[len(part) :]
            if not self._page_left:
                self._end()

    def _begin(self, view: memoryview) -> memoryview:
        """Reads a header; if it is not there as a whole, the bytes are kept for the next piece."""
        found = _find_header(view)
        if found is None:
            if not self._left or len(view) >= _MOST_HEADER_BYTES:
                raise CorruptFileError(f"{self._name} has a chunk whose pages cannot be distinguished")
            self._held = bytes(view)
            return view[len(view) :]
        header, end = found
        with fields_of_known_types():
            self._expected = int(header[CHECKSUM].value) & 0xFFFFFFFF if CHECKSUM in header else None
        self._page_left, self._sum = _stored_bytes(header), 0
        if not self._page_left:
            self._end()
        return view[end:]

    def _end(self) -> None:
        self.pages += 1
        self.summed += self._expected is not None
        if self._expected is not None and self._sum != self._expected:
            raise CorruptFileError(f"{self._name} has a page that differs from its checksum")
