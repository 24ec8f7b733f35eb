"""Measures how many bytes a row takes in a base file, for tables without a base file to look at."""

import math

import pyarrow as pa

from table.files.bloom.bloom_filter import filter_bytes_per_key
from table.files.parquet.row_group_writer import encoded_bytes
from table.write.context import Bucket, BucketType, WriteContext
from table.write.meta_columns import stamp_new_rows

SAMPLE_ROWS = 10_000
LEAST_ROWS = 100  # with fewer rows the measured bytes would mostly be column headers, not values


def measure_row_bytes(context: WriteContext, partition_path: str, rows: pa.Table) -> int | None:
    """Average bytes of a row, its share of the bloom filter included; encodes a sample to measure it.

    Args:
        partition_path: partition path of the rows.
        rows: table columns and ``_hoodie_record_key`` (Arrow).

    Returns:
        The average, rounded up and at least 1; None if there are too few rows.
    """
    if len(rows) < LEAST_ROWS:
        return None
    sample = rows.slice(0, SAMPLE_ROWS)
    name = context.base_file_name(Bucket(BucketType.INSERT, partition_path, "0" * 36 + "-0"), "0-0-0")
    stamped = stamp_new_rows(sample, context.schema, context.instant_time, partition_path, name, (0, 0))
    encoded = encoded_bytes(stamped, context.settings) / len(sample)
    return max(1, math.ceil(encoded + filter_bytes_per_key(context.settings)))
