"""Runs several readers at a time, and yields their pieces one reader after the other, in bounded memory."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from table import threads

Piece = TypeVar("Piece")

_PIECES_AHEAD = 2  # of each reader
_LOOK_S = 0.1  # how often a reader that waits for room checks whether the consumer still wants its pieces


class _End:
    """The mark that a reader puts after its last piece."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def read_ahead(readers: Sequence[Callable[[], Iterator[Piece]]], at_once: int) -> Iterator[Piece]:
    """The pieces of all readers, in the order of the readers.

    Args:
        readers: each opens its input when it is called, and closes it when it ends.
        at_once: how many readers run at the same time, the first one included.

    Raises:
        Exception: the error of a reader, when its turn comes.
    """
    if at_once == 1 or len(readers) == 1:
        for reader in readers:
            yield from reader()
        return
    unwanted = threads.make_signal()
    queues: list[threads.Pieces[Piece | _End]] = [threads.make_queue(_PIECES_AHEAD) for _ in readers]
    with threads.make_pool(at_once, "hudistream-slices") as pool:
        try:
            for reader, queue in zip(readers, queues, strict=True):
                pool.submit(_fill, reader, queue, unwanted)
            for queue in queues:
                while not isinstance(piece := queue.get(), _End):
                    yield piece
                if piece.error is not None:
                    raise piece.error
        finally:
            unwanted.set()


def _fill(
    reader: Callable[[], Iterator[Piece]], queue: "threads.Pieces[Piece | _End]", unwanted: threads.Signal
) -> None:
    end = _End()
    try:
        if unwanted.is_set():
            return
        for piece in reader():
            if not _put(queue, piece, unwanted):
                return
    except BaseException as error:  # noqa: BLE001 it is raised where the pieces are wanted
        end = _End(error)
    _put(queue, end, unwanted)


def _put(queue: "threads.Pieces[Piece | _End]", piece: Piece | _End, unwanted: threads.Signal) -> bool:
    while not unwanted.is_set():
        if queue.put(piece, _LOOK_S):
            return True
    return False
