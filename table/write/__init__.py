"""Rows in."""
