"""Rollback.

`fate.py` decides what becomes of a pending instant. `plan.py` lists the files of a failed write by their markers,
`undone_files.py` those of an undone commit by a listing.
"""
