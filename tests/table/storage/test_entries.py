"""What backends tell of a file."""

from datetime import datetime, timezone

import pytest

from table.storage.entries import info_of_entry
from table.storage.interface import FileInfo

AT = datetime(2026, 1, 2, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"type": "file", "size": 3, "LastModified": AT}, FileInfo("f", 3, 1767312000000, is_dir=False)),
        ({"type": "file", "size": 3, "mtime": 1.5}, FileInfo("f", 3, 1500, is_dir=False)),
        ({"type": "directory", "size": None}, FileInfo("f", 0, 0, is_dir=True)),
        ({"type": "file", "created": AT, "size": 0, "updated": "?"}, FileInfo("f", 0, 1767312000000, is_dir=False)),
    ],
    ids=["S3", "seconds", "a folder", "the first time that is one"],
)
def test_an_entry_of_a_backend(entry, found):
    assert info_of_entry("f", entry) == found
