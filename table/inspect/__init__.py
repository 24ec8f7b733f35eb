"""Describes the contents of a table, and what a writer would do with it."""
