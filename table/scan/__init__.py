"""Reads rows from a table."""
