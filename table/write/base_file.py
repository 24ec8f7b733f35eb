"""Writes the base file of a commit, a compaction or a clustering: opened, filled, closed, or abandoned."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

import pyarrow as pa

from table.files.base.continued import Continued
from table.files.base.summary import Announced, BaseFileSummary
from table.files.base.writer import BaseFileWriter
from table.write.context import WriteContext

Report_co = TypeVar("Report_co", covariant=True)


class RowsWriter(Protocol[Report_co]):
    """A writer of one file, such as `BaseFileWriter`."""

    def write(self, rows: pa.Table) -> None:
        """Adds rows (Arrow)."""

    def close(self) -> Report_co:
        """Finishes the file."""

    def abandon(self) -> None:
        """Closes the file after a failure."""


class WrittenFile(Announced, Protocol):
    """A base file that is to be written: its place and its columns."""

    @property
    def context(self) -> WriteContext:
        """Context of the commit."""

    @property
    def path(self) -> str:
        """Path of the file, relative to the table."""

    @property
    def schema(self) -> pa.Schema:
        """Meta columns and table columns (Arrow)."""


def open_base_file(file: WrittenFile, continued: Continued | None = None) -> BaseFileWriter:
    """The writer of a file. It reaches the store with the first rows that fill a row group, or when it is closed.

    Args:
        continued: the file that this one continues.
    """
    context = file.context
    return BaseFileWriter(
        context.storage, file.path, file.schema, context.avro_schema, context.settings, continued, file
    )


def write_base_file(file: WrittenFile, rows: Iterable[pa.Table]) -> BaseFileSummary:
    """Writes a whole file that continues no other.

    Args:
        rows: with all columns of the file (Arrow), part by part.

    Raises:
        StorageError: the store fails, or the instant has ended; the file is abandoned.
    """
    return write_all(open_base_file(file), rows)


def write_all(writer: RowsWriter[Report_co], rows: Iterable[pa.Table]) -> Report_co:
    """Writes a whole file. Returns the writer's report.

    Args:
        rows: with the columns that the writer takes (Arrow), part by part.

    Raises:
        StorageError: the store fails, or the instant has ended; the file is abandoned.
    """
    try:
        for part in rows:
            writer.write(part)
        return writer.close()
    except BaseException:
        writer.abandon()
        raise
