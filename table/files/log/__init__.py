"""Reads and writes log files.

`encode_blocks.py` encodes a block; Avro a column at a time in `avro_encoders.py`, the mirror of `avro_columns.py`.
"""
