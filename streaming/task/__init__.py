"""The work of one task: look up keys, merge, write files, report.

`log_slots.py` lists where the log files of a slot go on; `place_rows.py` decides between log and base file;
`fold_logs.py` writes a base file where a changed key is deleted in the log.
"""
