"""Reads and writes base files in Hudi's form."""
