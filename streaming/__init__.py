"""Spark Structured Streaming on top of the table format: `HudiSink`."""

from streaming.batch.failed_batch import FailedBatch
from streaming.batch.summary import BatchSummary
from streaming.batch.upkeep_summary import UpkeepSummary
from streaming.sink import HudiSink
from streaming.spark.read_hudi import read_hudi
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
