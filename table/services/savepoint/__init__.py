"""Savepoints and restores."""
