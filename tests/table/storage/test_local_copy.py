"""A local file that a thread begins with bytes of another one."""

import errno
import os
import random
import threading

import pytest

from table.errors import StorageError
from table.storage.byte_ranges import ByteRange
from table.storage.local import LocalStorage

LARGE = 3_000_000


@pytest.fixture
def storage(tmp_path):
    (tmp_path / "a").write_bytes(random.Random(1).randbytes(LARGE))
    return LocalStorage(str(tmp_path))


def test_what_comes_behind_is_written_while_the_bytes_are_copied(storage, tmp_path, monkeypatch):
    began, goes_on, real = threading.Event(), threading.Event(), os.copy_file_range

    def slow(*arguments):
        began.set()
        assert goes_on.wait(10)
        return real(*arguments)

    monkeypatch.setattr(os, "copy_file_range", slow)
    sink = storage.open_copy("a", [ByteRange(10, LARGE - 10)], "b")
    assert began.wait(10)
    sink.write(b"behind")
    assert sink.tell() == LARGE - 4
    goes_on.set()
    sink.close()
    assert (tmp_path / "b").read_bytes() == (tmp_path / "a").read_bytes()[10:] + b"behind"


@pytest.mark.parametrize(
    ("raised", "expected", "said"),
    [
        (OSError(errno.EIO, "the disk is broken"), StorageError, "'a'.*the disk is broken"),
        (MemoryError("no room"), MemoryError, "no room"),
    ],
)
def test_a_file_whose_bytes_cannot_be_copied_is_not_closed_without_saying_so(
    storage, monkeypatch, raised, expected, said
):
    def fails(*_arguments):
        raise raised

    monkeypatch.setattr(os, "copy_file_range", fails)
    sink = storage.open_copy("a", [ByteRange(0, LARGE)], "b")
    sink.write(b"behind")
    with pytest.raises(expected, match=said):
        sink.close()


@pytest.mark.parametrize("length", [10, 2_000_000])
def test_a_source_that_is_too_short_or_missing_is_refused_at_once(storage, tmp_path, length):
    (tmp_path / "short").write_bytes(bytes(length - 1))
    with pytest.raises(StorageError, match=f"the file ends after {length - 1} bytes, {length} were to be read"):
        storage.open_copy("short", [ByteRange(0, length)], "b")
    with pytest.raises(StorageError):
        storage.open_copy("missing", [ByteRange(0, length)], "b")
