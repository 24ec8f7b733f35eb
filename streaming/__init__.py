"""Spark Structured Streaming on top of the table format: `HudiSink`."""

from streaming.batch_summary import BatchSummary
from streaming.failed_batch import FailedBatch
from streaming.read_hudi import read_hudi
from streaming.sink import HudiSink
from streaming.upkeep_summary import UpkeepSummary
from streaming.validators import NullShare, PendingBatch, RowCount, Unique

__all__ = [
    "BatchSummary",
    "FailedBatch",
    "HudiSink",
    "NullShare",
    "PendingBatch",
    "RowCount",
    "Unique",
    "UpkeepSummary",
    "read_hudi",
]
