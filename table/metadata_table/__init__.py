"""Hudi's metadata table as readers use it: the table's own list of its files."""
