"""The file groups and file slices of a table, from listings of its files."""
