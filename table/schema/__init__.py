"""Table columns in Arrow and Avro form, and the changes that schemas allow.

`evolution.py` decides the type of a column. `table.columns.cast` casts, `streaming.task.arriving` names the value
that does not fit, `streaming.batch.widening` compacts logs before an ordering column changes, and
`table.scan.written_types` says which files have older types.
"""
