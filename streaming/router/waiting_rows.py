"""Looks for record keys in the rows that wait in a router's own folder until their table can be written."""

import pyarrow as pa

from streaming.router.aside import list_waiting
from streaming.router.split import STAGED_FOLDER
from table.errors import CorruptFileError
from table.keys.search import KeyCount, count_keys
from table.storage.interface import Storage, join


def count_waiting_rows(storage: Storage, name: str, fields: tuple[str, ...], keys: pa.Array) -> KeyCount:
    """Counts the rows of a table that wait and have one of the keys.

    Args:
        storage: the router's own folder. It may be absent.
        name: of the table.
        fields: the fields of the record key. Rows that hold them in an unfolded column are unsure.
        keys: record keys, as ``_hoodie_record_key`` has them (string).

    Raises:
        CorruptFileError: a record or a file of rows cannot be read.
        StorageError: the store fails.
    """
    found = KeyCount()
    for path in _list_files(storage, name):
        try:
            with storage.open_input(path) as source, pa.ipc.open_stream(source) as reader:
                for batch in reader:
                    found += count_keys(pa.Table.from_batches([batch]), fields, keys)
        except FileNotFoundError:
            continue  # it was written meanwhile
        except pa.ArrowException as error:
            raise CorruptFileError(f"{storage.absolute(path)} cannot be read: {error}") from error
    return found


def _list_files(storage: Storage, name: str) -> list[str]:
    """The files with rows that wait for a table, and those that no record names: of which table they are is not known.

    Raises:
        CorruptFileError: a record cannot be read.
    """
    waiting = list_waiting(storage)
    others = {file for table, found in waiting.items() if table != name for each in found for file in each.files}
    staged = {join(STAGED_FOLDER, file) for file in storage.list_tree(STAGED_FOLDER)}
    return sorted(staged - others)
