"""Decides which of several records of one key stays.

A new merge mode begins in `table.config.merge_mode` (its name and how properties spell it) and in
`table.options.values`; `MergeRules` in `merge.py` decides. The rules of a batch are made by `merge_rules` in
`streaming.plan.plan_tasks`, those of a reader in `table.scan.merge_slice`. Who asks what a mode does: copy-on-write
merges in `table.write.merge_bucket`, log files in `table.write.write_log` and `streaming.task.log_keys`, tasks that
move rows in `streaming.task.tag`, the change feed in `table.scan.feed.plan`, widened columns in
`streaming.batch.widening`, conversions in `table.services.conversion.properties`.
"""
