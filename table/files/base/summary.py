"""What the writer of a base file gets, and what it reports."""

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
        bloom: its filter.
        kept: rows of the older file that it begins with, in this order: (first, how many).
        written: record keys of the rows behind them, in order.
    """

    bounds: tuple[str, str] | None
    bloom: AnyBloomFilter
    kept: tuple[tuple[int, int], ...]
    written: tuple[pa.Array, ...]


@dataclass(frozen=True)
class BaseFileSummary:
    """What was written.

    Attributes:
        rows: rows of the file.
        size_bytes: its size.
        footer_bytes: how many of the bytes are footer.
        way: ``new``, ``copied``, or why the older file's rows were encoded again.
        copied_bytes: how many of the bytes were copied.
        contents: what an index remembers of it.
    """

    rows: int
    size_bytes: int
    footer_bytes: int
    way: str = NEW
    copied_bytes: int = 0
    contents: FileContents | None = None


@dataclass(frozen=True)
class Carrying:
    """What a caller takes over who changes rows of the older file.

    Attributes:
        groups: numbers of the row groups whose rows the caller writes, as carried rows, or patches. Where the file
            cannot be copied (`why_encoded_anew`) these must be all.
        bloom: where they are all: the filter of the older file, to be extended while it lasts.
        again: writes the file once more without copying, where what was made of copied parts is in doubt; it gets
            the reason. Without it the writer does so, as long as the new rows are still at hand.
    """

    groups: Collection[int] = ()
    bloom: AnyBloomFilter | None = None
    again: Callable[[str], BaseFileSummary] | None = None


class Announced(Protocol):
    """The file's place among the others of its commit."""

    def announce(self) -> Stage:
        """Announces the file before it is opened. Returns where it waits."""

    def check_not_ended(self) -> None:
        """Whether it is still wanted; raises when it is not."""

    def flush(self, size_bytes: int) -> None:
        """Has the published file, of that size, flushed to the disk before anybody reports it."""
