"""Inserts, updates and deletes of a range of commits, with old values, computed from file slices.

`steps.py` says which commits and file groups, `plan.py` which slices, `part.py` reads them, `compare.py` pairs rows,
and `upserts.py` makes rows for a sink.
"""
