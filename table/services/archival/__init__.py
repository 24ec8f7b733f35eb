"""Archival."""
