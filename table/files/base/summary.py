"""What a commit gives the writer of a base file, and the writer's report."""

from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from table.files.bloom.bloom_filter import AnyBloomFilter
from table.storage.interface import Stage


@dataclass(frozen=True)
class FileContents:
    """Range, filter and keys of a file as its writer knows them.

    Attributes:
        bounds: least and greatest record key.
        bloom: the bloom filter.
        kept: ranges of the older file's rows that this file begins with, in order: (first row, number of rows).
        written: record keys of the rows after them, in order.
    """

    bounds: tuple[str, str] | None
    bloom: AnyBloomFilter
    kept: tuple[tuple[int, int], ...]
    written: tuple[pa.Array, ...]


@dataclass(frozen=True)
class BaseFileSummary:
    """The writer's report of a written file.

    Attributes:
        rows: rows of the file.
        size_bytes: its size.
        footer_bytes: size of the footer.
        reason: why no row group of the older file was copied; None where it was, or where there is no older file.
        copied_bytes: number of copied bytes.
        contents: the part that an index remembers.
        footer: the end of the file, from the Thrift bytes on; b"" of a log file.
    """

    rows: int
    size_bytes: int
    footer_bytes: int
    reason: str | None = None
    copied_bytes: int = 0
    contents: FileContents | None = None
    footer: bytes = field(default=b"", repr=False)


class Announced(Protocol):
    """The interface by which a commit announces, checks and flushes one file."""

    def announce(self) -> Stage:
        """Announces the file before it is opened. Returns the place where the file waits."""

    def check_not_ended(self) -> None:
        """Raises if the instant has ended: the file is no longer wanted then."""

    def flush(self, size_bytes: int) -> None:
        """Begins to flush the published file, of this size; the flush is complete before the task reports the file."""
