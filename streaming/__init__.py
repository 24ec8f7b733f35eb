"""Spark Structured Streaming on top of the table format: `HudiSink`."""

from streaming.batch_summary import BatchSummary
from streaming.read_hudi import read_hudi
from streaming.sink import HudiSink
from streaming.validators import NullShare, PendingBatch, RowCount, Unique

__all__ = ["BatchSummary", "HudiSink", "NullShare", "PendingBatch", "RowCount", "Unique", "read_hudi"]
