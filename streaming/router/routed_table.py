"""One table of a router: its sink, which is made when rows come and given back when none do."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from streaming.batch.summary import BatchSummary
from streaming.batch.workers import Batch
from streaming.router.split import Piece
from streaming.router.table_rows import Columns, choose_columns
from streaming.table_sink import Callback, FailureHook, TableSink
from streaming.task.arrow_rows import open_rows
from streaming.task.in_process import InProcessWorkers
from streaming.validators import Validator
from table import threads
from table.errors import TableNotFoundError
from table.hudi_table import HudiTable
from table.options.write_options import WriteOptions
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.transaction.heartbeat import WriterIdentity

_THREADS = 2  # that write the tasks of one small table


class RoutedTable(TableSink):
    """The sink of one table of a router.

    Args:
        place: the table's folder, which the router opened by its name.
        options: of the table.
        storage_options: for the folder of bad rows, if the options name one.
        hooks: validators, callbacks and failure hooks.
    """

    def __init__(
        self,
        place: Storage,
        options: WriteOptions,
        storage_options: Mapping[str, Any],
        hooks: tuple[Sequence[Validator], Sequence[Callback], Sequence[FailureHook]],
    ) -> None:
        self._place = place
        super().__init__(place.base_uri, options, storage_options, *hooks)

    def _start(self) -> None:
        super()._start()
        self._known: frozenset[str] | None = None

    def _open_storage(self) -> Storage:
        return self._place

    def known_columns(self) -> frozenset[str]:
        """Columns that the table has; none where there is no table yet."""
        if self._known is None:
            try:
                found = Snapshot.load(HudiTable.at(self._place)).load_schema()
            except TableNotFoundError:
                found = None
            self._known = frozenset() if found is None else frozenset(found.names)
        return self._known

    def write_rows(self, batch: Batch, columns: Columns) -> BatchSummary:
        """Writes the rows of one batch.

        Raises:
            HudiError: nothing of it is visible.
        """
        with self._one_batch(), self._watched(batch.batch_id):
            summary = self._write_batch(batch, None)
        if self._known is not None:
            self._known |= frozenset(columns.schema.names)
        return summary

    def belong_to(self, gate: threads.Gate, is_over: Callable[[WriterIdentity], bool]) -> None:
        """Takes what the tables of one router share.

        Args:
            gate: lets the services of a few tables run at the same time.
            is_over: says whether the streaming query of another writer has ended.
        """
        self._writer.services.gate, self._writer.lease.is_over = gate, is_over

    @property
    def key_columns(self) -> frozenset[str]:
        """Columns that the table always gets: those of key, partition path and order."""
        keys = self._options.keys
        named = (*(keys.record_key_fields or ()), *(keys.partition_fields or ()), *(keys.ordering_fields or ()))
        return frozenset(name.partition(".")[0] for name in named)

    @property
    def sink_id(self) -> str:
        """The name under which its commits record batches."""
        return self._options.sink.id

    @property
    def is_busy(self) -> bool:
        """Whether something runs that a batch began, such as services."""
        return self._writer.is_busy


@dataclass(frozen=True)
class Arrived:
    """The rows of one table in one batch.

    Attributes:
        name: of the table.
        pieces: the rows, in the order of their arrival.
    """

    name: str
    pieces: tuple[Piece, ...]

    @property
    def size_bytes(self) -> int:
        """Their size in memory."""
        return sum(piece.size_bytes for piece in self.pieces)

    @property
    def filled(self) -> frozenset[str]:
        """Columns with a value."""
        return frozenset().union(*(piece.filled for piece in self.pieces))


def gather(pieces: Sequence[Piece]) -> dict[str | None, Arrived]:
    """The pieces of each table, in the order of the tasks."""
    found: dict[str | None, list[Piece]] = {}
    for piece in pieces:
        found.setdefault(piece.name, []).append(piece)
    return {name: Arrived(name or "", tuple(own)) for name, own in found.items()}


def columns_for(
    storage: Storage,
    arrived: Arrived,
    table: RoutedTable,
    unfolded: str | None,
    schemas: Mapping[str, pa.Schema],
) -> Columns:
    """Which columns of the batch the table gets.

    Raises:
        InvalidConfigError, SchemaMismatchError: the batch does not have a column that is asked for.
    """
    with arrived.pieces[0].open(storage) as reader:
        arriving = reader.schema  # a batch that waited may have come with other columns than this one
    given = schemas.get(arrived.name)
    kept = table.key_columns if given is not None else table.key_columns | table.known_columns()
    return choose_columns(arriving, unfolded, given, arrived.filled, kept)


def read_rows(storage: Storage, pieces: Sequence[Piece], columns: Columns) -> pa.RecordBatchReader:
    """The table's own rows, piece by piece."""

    def batches() -> Iterator[pa.RecordBatch]:
        for piece in pieces:
            with piece.open(storage) as reader:
                yield from columns.take(reader)

    return pa.RecordBatchReader.from_batches(columns.schema, batches())


def open_small(storage: Storage, arrived: Arrived, columns: Columns) -> InProcessWorkers:
    """Workers for rows that fit into the driver: they can be written again after a conflict."""
    rows = open_rows(read_rows(storage, arrived.pieces, columns).read_all())
    return InProcessWorkers(rows, parallelism=_THREADS, workers=_THREADS)
