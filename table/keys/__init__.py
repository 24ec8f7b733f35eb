"""Record keys and partition paths of rows.

`keygen.py` spells a key as Spark SQL, `arrow_keys.py` by the same rules over Arrow. A new way to make a partition path
goes into both, and its inverse into `folder_values.py`. A kind for one field is a `PartitionKind` of
`table.options.choices`, carried by `KeyRules.partition`; a whole key generator stands in `table.config.key_generator`.
Others that take partition paths apart: `table.catalog.partition_values` and `table.catalog.registration` for catalogs,
`table.scan.partition_guarantee` for conditions, `streaming.spark.partition_columns` for Spark's reader. Buckets of keys
are an index: `table.index.bucket`.
"""
