"""Reads rows from a table.

`plan.py` chooses snapshot and files, `read_plan.py` reads them one slice after the other, `merge_slice.py` merges log
files. `feed/` has what changed between two commits. Log files are decoded by `log_records.py` and `log_deletes.py`.
"""
