"""Reads the splits of a scan on a worker, in the types that Spark takes from Arrow."""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from streaming.spark.schema import to_spark_arrow
from table.columns.conform import conform

MOST_BYTES = 128 * 1024 * 1024  # file bytes per task, as spark.sql.files.maxPartitionBytes
_OPENING_BYTES = 4 * 1024 * 1024  # cost of opening a file, as spark.sql.files.openCostInBytes


class Part(Protocol):
    """A part of a scan or of a change feed, which can be pickled."""

    @property
    def size_bytes(self) -> int:
        """Compressed size of its files."""

    def to_batches(self) -> pa.RecordBatchReader:
        """Its rows."""


def pack_splits(splits: Sequence[Part], most_bytes: int = MOST_BYTES) -> list[bytes]:
    """Packs neighbouring splits into parcels, one for each task, up to a size.

    Args:
        splits: the parts of a scan, or of a change feed.
        most_bytes: most file bytes (compressed) of a parcel, counted as Spark counts them.
    """
    parcels: list[list[Part]] = []
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
    """Reads parcels, as a function for ``mapInArrow``: one split at a time, with a few batches in memory.

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
