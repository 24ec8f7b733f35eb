"""Erasure: where deleted rows still lie, until no file holds them.

`traces.py` searches data files and `footer_entries.py` their footers, `write_anew.py` writes footers anew,
`partition_names.py` finds partition paths without rows. `streaming.erasure` asks for bad rows and waiting rows, too.
"""
