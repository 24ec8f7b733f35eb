"""The rows of parts of a scan on a worker, in the types that Spark takes from Arrow."""

import pickle
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from streaming.spark.schema import to_spark_arrow
from table.columns.conform import conform
from table.scan.split import ScanSplit

MOST_BYTES = 128 * 1024 * 1024  # of files in a task, as spark.sql.files.maxPartitionBytes
_OPENING_BYTES = 4 * 1024 * 1024  # what opening a file costs, as spark.sql.files.openCostInBytes


def pack_splits(splits: Sequence[ScanSplit], most_bytes: int = MOST_BYTES) -> list[bytes]:
    """Splits as parcels, one for each task: neighbours together, up to a size.

    Args:
        splits: the parts.
        most_bytes: of their files (compressed), counted as Spark counts them.
    """
    parcels: list[list[ScanSplit]] = []
    held = most_bytes + 1
    for split in splits:
        size = split.size_bytes + _OPENING_BYTES
        if held + size > most_bytes:
            parcels.append([])
            held = 0
        parcels[-1].append(split)
        held += size
    return [pickle.dumps(parcel) for parcel in parcels]


def read_parcels(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of parcels, as a function for ``mapInArrow``: a split at a time, some batches of it in memory.

    Args:
        batches: of one column of parcels.

    Raises:
        CorruptFileError, StorageError: a file cannot be decoded or read.
    """
    for batch in batches:
        for parcel in batch.column(0):
            yield from read_parcel(parcel.as_py())


def read_parcel(parcel: bytes) -> Iterator[pa.RecordBatch]:
    """The rows of one parcel of `pack_splits`. Raises as `read_parcels`."""
    for split in pickle.loads(parcel):  # noqa: S301 the driver made it
        yield from for_spark(split.to_batches())


def for_spark(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches with the types that Spark takes."""
    for batch in batches:
        wanted = to_spark_arrow(batch.schema)
        if batch.schema.equals(wanted):
            yield batch
        else:
            yield from conform(pa.Table.from_batches([batch]), wanted).to_batches()
