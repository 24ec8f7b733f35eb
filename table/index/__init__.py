"""Finds the file groups and rows that hold record keys."""
