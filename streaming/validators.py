"""Pre-commit validators: they get a batch before it becomes visible, and may refuse it.

A validator is any picklable callable that takes a `PendingBatch` and returns None, or the reason why the
batch must not be committed. The three here are ready-made.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from table.columns.conform import conform
from table.errors import CorruptFileError, InvalidConfigError, UnsupportedTableError
from table.files.base.stored_file import StoredBaseFile
from table.files.log.data_blocks import read_rows
from table.files.log.framing import BlockType, read_block, scan_blocks
from table.files.names import parse_log_file
from table.schema.avro_schema import COMMIT_TIME, with_meta_columns
from table.storage.interface import Storage
from table.timeline.metadata.commit import WriteStat

_ROW_BLOCKS = (BlockType.AVRO_DATA, BlockType.PARQUET_DATA)  # those that are written here


@dataclass(frozen=True)
class PendingBatch:
    """A batch whose files are written, but which is not committed.

    Attributes:
        table: the table's address.
        batch_id: Spark's id, or None outside a stream.
        instant_time: its commit's instant time.
        stats: its files. Base files that were topped up contain older rows, too.
        schema: the table's columns (Arrow).
        storage: reads the files.
        has_meta_fields: whether rows say which commit wrote them (``hoodie.populate.meta.fields``).
    """

    table: str
    batch_id: int | None
    instant_time: str
    stats: tuple[WriteStat, ...]
    schema: pa.Schema
    storage: Storage
    has_meta_fields: bool = True

    @property
    def rows(self) -> int:
        """Rows that the batch adds or replaces."""
        return sum(stat.num_inserts + stat.num_update_writes for stat in self.stats)

    def read_new_rows(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The batch's own rows, of base files and of log files, some ten thousand at a time. Deletes are no rows.

        Raises:
            CorruptFileError: a file cannot be read as it was written.
            InvalidConfigError: when a column is not in the table.
            UnsupportedTableError: the rows do not say which commit wrote them.
        """
        if not self.has_meta_fields:
            raise UnsupportedTableError(
                f"the table {self.table!r} has hoodie.populate.meta.fields=false: the rows of the batch cannot be "
                "distinguished from older rows of the same files; RowCount reads no rows"
            )
        full = with_meta_columns(self.schema)
        unknown = [name for name in columns if name not in full.names]
        if unknown:
            raise InvalidConfigError(f"the table has no column {unknown[0]!r}; it has {', '.join(full.names)}")
        wanted = pa.schema([full.field(name) for name in dict.fromkeys((*columns, COMMIT_TIME))])
        for stat in self.stats:
            is_log = parse_log_file(stat.path.rpartition("/")[2]) is not None
            for rows in (self._read_log if is_log else self._read_base)(stat, wanted):
                mine = rows.filter(pc.equal(rows.column(COMMIT_TIME).cast(pa.string()), self.instant_time))
                yield conform(mine, pa.schema([wanted.field(name) for name in columns]))

    def _read_base(self, stat: WriteStat, wanted: pa.Schema) -> Iterator[pa.Table]:
        with StoredBaseFile(self.storage, stat.path, stat.file_size_bytes or None) as file:
            yield from file.read_batches(wanted)

    def _read_log(self, stat: WriteStat, wanted: pa.Schema) -> Iterator[pa.Table]:
        with self.storage.open_input(stat.path, stat.file_size_bytes or None) as stream:
            for place in scan_blocks(stream, with_content=False):
                if place.block is None:
                    raise CorruptFileError(f"{stat.path}: the block at byte {place.start} is damaged: {place.reason}")
                if place.block.type in _ROW_BLOCKS:
                    for rows in read_rows(read_block(stream, place), wanted.names, stat.path):
                        yield conform(rows, wanted)


Validator = Callable[[PendingBatch], str | None]


@dataclass(frozen=True)
class RowCount:
    """Refuses batches with fewer rows than `least` or more than `most`."""

    least: int = 0
    most: int | None = None

    def __call__(self, batch: PendingBatch) -> str | None:
        """The reason to refuse, or None."""
        if batch.rows < self.least or (self.most is not None and batch.rows > self.most):
            most = "any number" if self.most is None else self.most
            return f"the batch has {batch.rows} rows, allowed are {self.least} to {most}"
        return None


@dataclass(frozen=True)
class NullShare:
    """Refuses batches in which more than a share of a column's values are null (0.01 is one in a hundred)."""

    column: str
    most: float = 0.0

    def __call__(self, batch: PendingBatch) -> str | None:
        """The reason to refuse, or None."""
        nulls = sum(rows.column(0).null_count for rows in batch.read_new_rows([self.column]))
        if batch.rows and nulls > self.most * batch.rows:
            return f"{nulls} of {batch.rows} values of {self.column!r} are null, allowed is a share of {self.most}"
        return None


@dataclass(frozen=True)
class Unique:
    """Refuses batches in which the same values of these columns come twice. Holds the columns in memory."""

    columns: tuple[str, ...]

    def __call__(self, batch: PendingBatch) -> str | None:
        """The reason to refuse, or None."""
        parts = list(batch.read_new_rows(self.columns))
        if not parts:
            return None
        counted = pa.concat_tables(parts).group_by(list(self.columns)).aggregate([([], "count_all")])
        doubled = counted.filter(pc.greater(counted.column("count_all"), 1))
        if not len(doubled):
            return None
        return (
            f"{len(doubled)} values of {', '.join(self.columns)} come more than once, such as {doubled.to_pylist()[0]}"
        )


def find_refusal(validators: Sequence[Validator], batch: PendingBatch) -> str | None:
    """The first reason that a validator gives, with its name; None when all agree."""
    for validator in validators:
        reason = validator(batch)
        if reason:
            name = getattr(validator, "__name__", type(validator).__name__)
            return f"{name}: {reason}"
    return None
