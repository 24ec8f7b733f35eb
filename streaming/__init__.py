"""Spark Structured Streaming on top of the table format: `HudiSink`."""

from streaming.micro_batch import BatchSummary
from streaming.read_hudi import read_hudi
from streaming.sink import HudiSink

__all__ = ["BatchSummary", "HudiSink", "read_hudi"]
