"""Storage: the interface, and its implementations for local and remote stores.

An address is parsed once, by `open_storage` in `opening.py`; folders are opened from there by names (`below`, `above`,
`beside`). A new store is one of fsspec's: its other schemes in `opening.py`, its extra in `table.extras`, what it can
do in `remote.py` (fence, versions, calls at once), how errors name it in `reach.py`; for Spark's own readers
`streaming.spark.hadoop_settings`.
"""
