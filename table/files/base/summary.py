"""The input that a caller gives the writer of a base file, and the writer's report."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from table.files.bloom.bloom_filter import AnyBloomFilter
from table.storage.interface import Stage

NEW, COPIED = "new", "copied"


@dataclass(frozen=True)
class FileContents:
    """Range, filter and keys of a file as its writer knows them.

    Attributes:
        bounds: least and greatest record key.
        bloom: the bloom filter.
        kept: ranges of the older file's rows that this file begins with, in order: (first row, number of rows).
        written: record keys of the rows behind them, in order.
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
        way: ``new``, ``copied``, or why the older file's rows were encoded again.
        copied_bytes: number of copied bytes.
        contents: the part that an index remembers.
    """

    rows: int
    size_bytes: int
    footer_bytes: int
    way: str = NEW
    copied_bytes: int = 0
    contents: FileContents | None = None


@dataclass(frozen=True)
class Carrying:
    """The work that a caller takes over from the writer when it changes rows of the older file.

    Attributes:
        groups: numbers of the row groups that the caller writes, as carried rows or as patches. If the file cannot be
            copied (`why_encoded_anew`), the caller must take all row groups.
        bloom: filter of the older file, if the caller takes all row groups; the writer extends it while it has room.
        again: writes the file once more without copying, if a check of the file made of copied parts fails; its
            argument is the reason. Without it the writer does so itself, as long as it still holds the new rows.
    """

    groups: Collection[int] = ()
    bloom: AnyBloomFilter | None = None
    again: Callable[[str], BaseFileSummary] | None = None


class Announced(Protocol):
    """The interface by which a commit announces, checks and flushes one file."""

    def announce(self) -> Stage:
        """Announces the file before it is opened. Returns the place where the file waits."""

    def check_not_ended(self) -> None:
        """Raises if the instant has ended: the file is no longer wanted then."""

    def flush(self, size_bytes: int) -> None:
        """Begins to flush the published file, of this size; the flush is complete before the task reports the file."""
