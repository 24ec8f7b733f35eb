"""Reads and writes log files."""
