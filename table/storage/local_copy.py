"""A local file that begins with bytes of another file: a thread copies them while the caller writes after them.

The end of the copied bytes is known before they are copied. So one core encodes rows while the kernel copies on
another.
"""

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, BinaryIO

from table import threads
from table.storage.byte_ranges import ByteRange, joined_ranges
from table.storage.interface import OutputFile, failed

_NO_KERNEL_COPY = {errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EPERM, errno.EBADF}
_BLOCK_BYTES = 1024 * 1024
_WORTH_LETTING_GO_BYTES = 1024 * 1024
_WORTH_A_THREAD_BYTES = 1024 * 1024


def copy_into(sink: BinaryIO, source: str, ranges: Sequence[ByteRange], name: str) -> OutputFile:
    """Begins a new file with bytes of another file.

    Args:
        sink: the new file, empty and open for writing. Closing the returned file closes it; a failure here does not.
        source: full path of the other file.
        ranges: the copied ranges, in the order of the new file.
        name: name of the other file in error messages.

    Returns:
        The new file, open for writing after the copied bytes. Its `close` raises the error of a failed copy.

    Raises:
        OSError: the other file does not exist, or a range ends beyond its end.
    """
    pieces = joined_ranges(ranges)
    file = open(source, "rb")  # noqa: SIM115 the thread closes it
    try:
        _check_length(file, pieces)
        copied = sum(piece.length for piece in pieces)
        if copied >= _WORTH_A_THREAD_BYTES:
            sink.seek(copied)
            return _FileBeingCopied(sink, file, pieces, name)
    except BaseException:
        file.close()
        raise
    with file:
        _copy_all(file, sink, pieces)
    sink.seek(copied)
    return sink


class _FileBeingCopied:
    """The new file while a thread copies its beginning."""

    def __init__(self, sink: BinaryIO, source: BinaryIO, pieces: Sequence[ByteRange], name: str) -> None:
        self._sink, self._name = sink, name
        self._error: BaseException | None = None
        self._thread = threads.start_thread(lambda: self._run(source, pieces), "hudistream-copy")

    def _run(self, source: BinaryIO, pieces: Sequence[ByteRange]) -> None:
        try:
            with source:
                _copy_all(source, self._sink, pieces)
        except BaseException as error:  # noqa: BLE001 `close` raises it: a file with a hole must not be published
            self._error = error

    def write(self, data: Any, /) -> Any:
        """Appends bytes."""
        return self._sink.write(data)

    def tell(self) -> int:
        """Bytes of the file so far, the bytes still to be copied included."""
        return self._sink.tell()

    def close(self) -> None:
        """Waits for the copy, and closes the file.

        Raises:
            StorageError: the bytes could not be copied.
        """
        self._thread.join()
        self._sink.close()
        if isinstance(self._error, OSError):
            raise failed("copy", self._name, self._error) from self._error
        if self._error is not None:
            raise self._error


def _check_length(source: BinaryIO, pieces: Sequence[ByteRange]) -> None:
    end = max((piece.start + piece.length for piece in pieces), default=0)
    size = os.fstat(source.fileno()).st_size
    if end > size:
        raise OSError(errno.EIO, f"the file ends after {size} bytes, {end} were to be read")


def _copy_all(source: BinaryIO, target: BinaryIO, pieces: Sequence[ByteRange]) -> None:
    at = 0
    for piece in pieces:
        _copy_bytes(source.fileno(), target.fileno(), piece, at)
        at += piece.length
    _let_go(source.fileno(), at)


def _copy_bytes(source: int, target: int, piece: ByteRange, at: int) -> None:
    """Copies bytes of an open file to offset `at` of another one; the files share blocks if the file system can."""
    start, length = piece
    done = 0
    by_kernel = hasattr(os, "copy_file_range")
    while done < length:
        if by_kernel:
            try:
                count = os.copy_file_range(source, target, length - done, start + done, at + done)
            except OSError as error:
                if error.errno not in _NO_KERNEL_COPY:
                    raise
                by_kernel = False
                continue
        else:
            block = os.pread(source, min(_BLOCK_BYTES, length - done), start + done)
            count = os.pwrite(target, block, at + done) if block else 0
        if count == 0:
            raise OSError(errno.EIO, f"the file ends after {start + done} bytes, {start + length} were to be read")
        done += count


def _let_go(source: int, copied_bytes: int) -> None:
    """Takes a copied file out of the page cache: readers now read the copy, whose pages are in the cache.

    If each batch continues a table's large files, old versions that no process reads would otherwise fill the memory.
    On a virtual machine it also costs more to get fresh pages than to copy.
    """
    if copied_bytes >= _WORTH_LETTING_GO_BYTES and hasattr(os, "posix_fadvise"):
        with suppress(OSError):  # the call is only a hint
            os.posix_fadvise(source, 0, 0, os.POSIX_FADV_DONTNEED)
