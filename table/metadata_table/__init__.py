"""Hudi's metadata table: lists of files, statistics of columns, record index.

A further partition of it (``bloom_filters``, an expression index) has: its name in `table.config.metadata_indexes`, its
records in a module beside `record_index.py` (type in `records.py`, names of its file groups in `index_keys.py`), and a
place in `make.py` (a table that has none yet), `keep.py` (each commit), `compact.py`, `table.services.check` (proof),
and where it is read. Its options leave `table.options.without_effect`. `streaming.erasure` drops what may hold an
erased key.
"""
