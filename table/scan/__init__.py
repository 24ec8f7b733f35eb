"""Rows out."""
