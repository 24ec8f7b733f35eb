"""How much of the base files of a table carries checksums. Reading the rows compares them."""

from collections.abc import Iterable

from table.errors import CorruptFileError, StorageError
from table.files.base.stored_file import StoredBaseFile
from table.storage.interface import Storage
from table.view.file_group import BaseFile


def count_checksums(storage: Storage, files: Iterable[BaseFile]) -> tuple[int, int]:
    """Looks at the first page of each column chunk; files that cannot be read are left out.

    Args:
        files: which ones.

    Returns:
        The number of chunks, and how many of them carry checksums.
    """
    chunks = summed = 0
    for file in files:
        try:
            with StoredBaseFile(storage, file.path, file.size_bytes) as stored:
                found = stored.find_checksums()
        except (FileNotFoundError, CorruptFileError, StorageError):
            continue
        chunks += len(found)
        summed += sum(found)
    return chunks, summed
