"""Looks on the store whether a file that was joined from copied and new row groups is whole."""

import zlib
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from table.errors import CorruptFileError
from table.files.base.stored_file import StoredBaseFile, read_footer
from table.files.parquet.copy_checks import find_problem
from table.files.parquet.footer import TAIL_BYTES
from table.storage.interface import READ_AT_ONCE_BYTES, Storage


@dataclass(frozen=True)
class JoinedFile:
    """A file as its writer believes it to be.

    Attributes:
        path: relative to the table.
        rows: its rows.
        size_bytes: its size.
        footer: its last bytes: the footer, its length and the magic.
        is_copied_by_store: whether the store copied row groups. Where all bytes went through this process, the file is
            as safe as one that is new.
        schema: of its rows in memory.
    """

    path: str
    rows: int
    size_bytes: int
    footer: bytearray
    is_copied_by_store: bool
    schema: pa.Schema


def find_doubt(storage: Storage, file: JoinedFile, verify_share: float) -> str | None:
    """Checks a file on the store.

    Args:
        file: the file.
        verify_share: share of the files of which all rows are read, 0.0 to 1.0.

    Returns:
        The fault, or None.
    """
    try:
        # Arrow, as an independent reader, must understand the joined footer
        metadata = pq.read_metadata(pa.BufferReader(pa.py_buffer(file.footer)))
        problem = find_problem(metadata, file.rows, file.size_bytes - len(file.footer))
        if problem is not None:
            return problem
        # a small file is read as a whole, so its true length shows even if the size is given
        known = file.size_bytes if file.size_bytes <= READ_AT_ONCE_BYTES else None
        if file.is_copied_by_store and not _has_footer(storage, file, known):
            return "the store holds another footer than was written"
        if _is_sampled(file.path, verify_share):
            with StoredBaseFile(storage, file.path, known) as whole:
                found = sum(map(len, whole.read_batches(file.schema)))
            return None if found == file.rows else f"{found} rows can be read of {file.rows}"
    except (CorruptFileError, pa.ArrowException, OSError) as error:
        return str(error)
    return None


def _has_footer(storage: Storage, file: JoinedFile, known: int | None) -> bool:
    """Whether the file on the store ends as it was written."""
    with storage.open_input(file.path, known) as written:
        size, raw = read_footer(written)  # checks the length and magic behind the footer, too
    # `startswith` of bytes: a view would be compared byte by byte, and a filter has a million bytes
    return size == file.size_bytes and len(raw) == len(file.footer) - TAIL_BYTES and file.footer.startswith(raw)


def _is_sampled(path: str, share: float) -> bool:
    """Whether a file is read whole. Its name decides, so every attempt gives the same answer."""
    return zlib.crc32(path.encode()) < share * 2**32
