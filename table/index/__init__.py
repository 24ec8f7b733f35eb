"""Finds the file groups and rows that hold record keys.

A new index is a module here that finds keys; `streaming.task.locate_keys` asks it, `streaming.plan.plan_tasks` plans
for it. Its name goes into `table.options.choices`, its settings into `table.options.write_groups`. A partition of the
metadata table that Hudi calls an index, such as ``bloom_filters``, is a matter of `table.metadata_table`.
"""
