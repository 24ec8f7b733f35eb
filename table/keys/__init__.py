"""Record keys and partition paths of rows.

`keygen.py` spells a key as Spark SQL, `arrow_keys.py` by the same rules over Arrow. A new way to make a partition
path goes into both, and its inverse into `folder_values.py`. Others that take partition paths apart:
`table.catalog.partition_values` for catalogs, `streaming.spark.partition_columns` for Spark's reader.
"""
