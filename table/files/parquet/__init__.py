"""Parquet below pyarrow: footers, row groups, copies."""
