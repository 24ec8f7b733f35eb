"""Writes rows into a table: base files, log files, change files, and the write stats that name them.

`change_file.py` gets its rows from `merge_bucket.py`, `write_bucket.py` and `streaming.task.fold_logs`. The form of a
change record is in `table.files.log.change_records`; `table.services.erasure.traces` reads them again.
"""
