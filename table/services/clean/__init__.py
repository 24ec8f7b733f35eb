"""Cleaning.

`plan.py` has the rules for an old version of a file; `judgement.py` reads savepoints and pins, and makes the plan;
`_sort_out` in `clean.py` looks again before the deletion.
"""
