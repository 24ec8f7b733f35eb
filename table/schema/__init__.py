"""Columns as Arrow and as Avro, and how they may change."""
