"""What the records of a table say of its data files: which are named, undone, left over, gone.

`judge.py` has the rules for a file that no commit names: for archival, check, repair and readers. `strays.py` finds
and deletes such files. `losses.py` looks again at a file that is gone, and knows the losses that were accepted.
"""
