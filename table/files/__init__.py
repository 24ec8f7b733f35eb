"""Data files of a table: formats, names, markers and publication."""
