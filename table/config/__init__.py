"""`hoodie.properties`: the properties of a table.

`writable.py` decides which tables may be written, `readable.py` which may be read. A new merge mode begins in
`merge_mode.py`; see `table.records`.
"""
