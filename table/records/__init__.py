"""Decides which of several records of one key stays.

A new merge mode begins in `table.config.merge_mode` (its name and how properties spell it) and in
`table.options.values`; `MergeRules` in `merge.py` decides. The rules of a batch are made by `merge_rules` in
`streaming.plan.plan_tasks`, those of a reader in `table.scan.merge_slice`; copy-on-write merges ask them in
`table.write.merge_bucket`.
"""
