"""Batches of tables that failed: their rows wait below the router's folder, in order, until they can be written.

::

    aside/<table>/<batch id>.json   which batch, of which query, with which files; created if absent
    staged/…                        the files

The record is written last. A batch whose record exists is the router's, also if Spark sends it again.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from streaming.router.split import STAGED_FOLDER, Piece
from table import clock
from table.errors import CorruptFileError, StorageError
from table.log import get_logger
from table.storage.interface import Storage, join

ASIDE_FOLDER = "aside"
_VERSION = 1

log = get_logger("hudistream.router")


@dataclass(frozen=True)
class Waiting:
    """A batch of one table that waits.

    Attributes:
        name: of the table.
        batch_id: Spark's id.
        query_id: of the streaming query.
        pieces: its rows, in files.
        error: why it failed.
    """

    name: str
    batch_id: int
    query_id: str | None
    pieces: tuple[Piece, ...]
    error: str

    @property
    def record(self) -> str:
        """Path of its record."""
        return join(ASIDE_FOLDER, self.name, f"{self.batch_id:020d}.json")


def put_aside(storage: Storage, waiting: Waiting) -> Waiting:
    """Stores a batch. If it is stored already, the rows that are there count.

    Raises:
        StorageError: it is not stored.
    """
    pieces = [put_into_file(storage, piece) for piece in waiting.pieces]
    for piece in pieces:
        storage.sync(piece.file or "")
    document = {
        "version": _VERSION,
        "query_id": waiting.query_id,
        "error": waiting.error,
        "pieces": [[piece.file, piece.rows, piece.size_bytes, sorted(piece.filled)] for piece in pieces],
    }
    storage.create_exclusive(waiting.record, json.dumps(document).encode(), durable=True)
    return load_waiting(storage, waiting.name, waiting.record.rsplit("/", 1)[-1])


def put_into_file(storage: Storage, piece: Piece) -> Piece:
    """The piece, in a file."""
    if piece.file is not None:
        return piece
    assert piece.data is not None
    file = join(STAGED_FOLDER, f"{clock.fresh_uuid()}.arrow")
    storage.put(file, piece.data)
    return replace(piece, file=file, data=None)


def load_waiting(storage: Storage, name: str, file_name: str) -> Waiting:
    """A batch that waits, from its record.

    Raises:
        CorruptFileError: the record cannot be read: it names rows that are nowhere else, so that nothing goes on.
    """
    path = join(ASIDE_FOLDER, name, file_name)
    try:
        document = json.loads(storage.read(path))
        pieces = tuple(
            Piece(name, rows, size, frozenset(filled), file, None) for file, rows, size, filled in document["pieces"]
        )
        return Waiting(name, int(file_name.removesuffix(".json")), document["query_id"], pieces, document["error"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(
            f"{storage.absolute(path)} cannot be read: {error!r}; it names rows that wait"
        ) from error


def list_waiting(storage: Storage) -> dict[str, list[Waiting]]:
    """Table -> its batches that wait, oldest first.

    Raises:
        CorruptFileError: a record cannot be read.
    """
    found = {}
    for name in sorted(entry.name for entry in storage.list_dir(ASIDE_FOLDER) if entry.is_dir):
        records = sorted(each for each in storage.list_names(join(ASIDE_FOLDER, name)) if each.endswith(".json"))
        if records:
            found[name] = [load_waiting(storage, name, each) for each in records]
    return found


def forget(storage: Storage, waiting: Waiting) -> None:
    """Deletes a batch that was written: its record first, so that no record names rows that are gone."""
    storage.delete(waiting.record)
    delete_files(storage, waiting.pieces)


def delete_files(storage: Storage, pieces: Sequence[Piece]) -> None:
    """Deletes the files of pieces whose rows are written.

    What the store does not delete is swept when a router starts: the rows must not count as failed because of it.
    """
    for piece in pieces:
        if piece.file is not None:
            try:
                storage.delete(piece.file)
            except StorageError as error:
                log.warning("staged_file_left", file=piece.file, error=str(error))


def sweep_staged(storage: Storage, waiting: Iterable[Waiting]) -> None:
    """Deletes the files of batches that ended with their process, except for those that wait."""
    named = {piece.file for each in waiting for piece in each.pieces}
    for name in storage.list_tree(STAGED_FOLDER):
        path = join(STAGED_FOLDER, name)
        if path not in named:
            storage.delete(path)
