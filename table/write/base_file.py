"""Writes the base file of a commit, a compaction or a clustering: opened, filled, closed, or abandoned."""

from collections.abc import Iterable
from typing import Protocol

import pyarrow as pa

from table.files.base.continued import Continued
from table.files.base.summary import Announced, BaseFileSummary
from table.files.base.writer import BaseFileWriter
from table.write.context import WriteContext


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
    writer = open_base_file(file)
    try:
        for part in rows:
            writer.write(part)
        return writer.close()
    except BaseException:
        writer.abandon()
        raise
