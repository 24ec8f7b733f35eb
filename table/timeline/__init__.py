"""The timeline of a table: its instants, their files, and the archive.

A new layout is a class beside those in `layout.py`, entered in `_LAYOUTS`; its rule for log files goes into
`table.view.log_slicing`. `change.py` says what happened between two looks. `same_content.py` replaces a completed
file that is damaged, `late_writes.py` knows when a retired write was completed.
"""
