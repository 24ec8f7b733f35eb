"""Batches of tables that failed: their rows wait below the router's folder, in order, until they can be written.

::

    aside/<table>/<batch id>-<query id>.json   which batch, of which query and sink, with which files; created if absent
    staged/…                                   the files

The record is written last and deleted first. A batch whose record exists is the router's, also if Spark sends it again.
Batch ids of two queries are the same numbers: a batch is known by its query and its id. Records of older versions are
named by the id alone, and name no sink and no order; they are taken up as they are.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from streaming.router.split import STAGED_FOLDER, Piece
from table import clock
from table.errors import BatchOrderError, BrokenInvariantError, CorruptFileError, StorageError
from table.log import get_logger
from table.storage.interface import Storage, join
from table.transaction.positions import Positions

OWN_FOLDER = ".hudistream_router"  # of the router, below its root
ASIDE_FOLDER = "aside"
_VERSION = 2
_ENDING = ".json"

log = get_logger("hudistream.router")


@dataclass(frozen=True)
class KnownPositions:
    """Where the sources of a query stood around a batch, as its record says. None: it is not known.

    Attributes:
        start: before the batch.
        end: after it.
    """

    start: Positions | None
    end: Positions | None

    def load_start(self) -> Positions | None:
        """Before the batch."""
        return self.start

    def load_end(self) -> Positions | None:
        """After the batch."""
        return self.end


@dataclass(frozen=True)
class Waiting:
    """A batch of one table that waits.

    Attributes:
        name: of the table.
        batch_id: Spark's id.
        query_id: of the streaming query; None outside a stream.
        pieces: its rows, in files.
        error: why it failed.
        sink_id: the sink whose batch it is; None: an older version does not say.
        order: its place among the batches of the table, from 0; -1: an older version does not say.
        positions: where the query's sources stood; None: that is not recorded.
        file_name: of its record; "" before it has one.
    """

    name: str
    batch_id: int
    query_id: str | None
    pieces: tuple[Piece, ...]
    error: str
    sink_id: str | None = None
    order: int = -1
    positions: KnownPositions | None = None
    file_name: str = ""

    @property
    def record(self) -> str:
        """Path of its record, relative to the router's folder."""
        return join(ASIDE_FOLDER, self.name, self.file_name)

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the files that hold its rows (Arrow streams), relative to the router's folder."""
        return tuple(piece.file for piece in self.pieces if piece.file is not None)

    @property
    def place(self) -> tuple[int, int]:
        """Sort key by which batches of a table are written: those of older versions first."""
        return self.order, self.batch_id

    def refused(self, storage: Storage, error: BatchOrderError) -> BatchOrderError:
        """The error for a batch that its table will never take: it says where the rows are."""
        return BatchOrderError(
            f"{error}. The batch waits below {storage.base_uri!r}: its rows are in {', '.join(self.files)} (Arrow "
            f"streams). If the table does not have them, write them with an ArrowSink; then delete {self.record}"
        )

    def is_batch(self, query_id: str | None, batch_id: int | None) -> bool:
        """Whether it is this batch of this query."""
        return (self.query_id, self.batch_id) == (query_id, batch_id)


def put_aside(storage: Storage, waiting: Waiting) -> Waiting:
    """Stores a batch. If it is stored already, the rows that are there count.

    Raises:
        StorageError: it is not stored.
    """
    pieces = [put_into_file(storage, piece) for piece in waiting.pieces]
    for piece in pieces:
        storage.sync(piece.file or "")
    stored = replace(waiting, pieces=tuple(pieces))
    of_query = "" if waiting.query_id is None else f"-{quote(waiting.query_id, safe='')}"
    for ending in (of_query, f"-{clock.fresh_uuid()}"):  # an older version may have named another query's batch so
        named = replace(stored, file_name=f"{waiting.batch_id:020d}{ending}{_ENDING}")
        if storage.create_exclusive(named.record, json.dumps(_encode(named)).encode(), durable=True):
            return named
        found = load_waiting(storage, named.name, named.file_name)
        if found.is_batch(waiting.query_id, waiting.batch_id):
            return found
    raise BrokenInvariantError(f"{named.record} of {storage.base_uri!r} is there: its name was made just now")


def _encode(waiting: Waiting) -> dict[str, Any]:
    known = waiting.positions
    return {
        "version": _VERSION,
        "query_id": waiting.query_id,
        "sink_id": waiting.sink_id,
        "order": waiting.order,
        "positions": None if known is None else {"start": known.start, "end": known.end},
        "error": waiting.error,
        "pieces": [[piece.file, piece.rows, piece.size_bytes, sorted(piece.filled)] for piece in waiting.pieces],
    }


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
        return Waiting(
            name,
            int(file_name.removesuffix(_ENDING).partition("-")[0]),
            document["query_id"],
            tuple(
                Piece(name, rows, size, frozenset(filled), file, None)
                for file, rows, size, filled in document["pieces"]
            ),
            document["error"],
            document.get("sink_id"),
            document.get("order", -1),
            _positions_of(document.get("positions")),
            file_name,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(
            f"{storage.absolute(path)} cannot be read: {error!r}; it names rows that wait"
        ) from error


def _positions_of(found: Mapping[str, Any] | None) -> KnownPositions | None:
    if found is None:
        return None
    start, end = (None if found[name] is None else tuple(found[name]) for name in ("start", "end"))
    return KnownPositions(start, end)


def list_waiting(storage: Storage) -> dict[str, list[Waiting]]:
    """Table -> its batches that wait, in the order in which they are written.

    Args:
        storage: the router's folder: ``root.below(OWN_FOLDER)``.

    Raises:
        CorruptFileError: a record cannot be read.
    """
    names = sorted(entry.name for entry in storage.list_dir(ASIDE_FOLDER) if entry.is_dir)
    found = {name: list_waiting_of(storage, name) for name in names}
    return {name: waiting for name, waiting in found.items() if waiting}


def list_waiting_of(storage: Storage, name: str) -> list[Waiting]:
    """The batches of one table that wait. Arguments and errors as `list_waiting`."""
    records = [each for each in storage.list_names(join(ASIDE_FOLDER, name)) if each.endswith(_ENDING)]
    return sorted((load_waiting(storage, name, each) for each in records), key=lambda waiting: waiting.place)


def find_waiting(table: Storage) -> tuple[Storage, list[Waiting]]:
    """The batches of a table that wait in the router whose root is the folder around the table.

    Args:
        table: the table's storage.

    Returns:
        The router's folder, in which `Waiting.files` lie, and the batches. No batches where there is no router.

    Raises:
        CorruptFileError: a record cannot be read.
    """
    above = table.above()
    if above is None:
        return table, []
    storage = above[0].below(OWN_FOLDER)
    return storage, list_waiting_of(storage, above[1])


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
