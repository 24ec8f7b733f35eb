"""Parquet operations that pyarrow does not have: footers, row groups, copies."""
