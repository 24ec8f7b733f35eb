"""Compaction.

Log files are not compacted among themselves (decision 34). A pending log compaction of another engine counts as a
pending compaction.
"""
