"""Storage: the interface, and its implementations for local and remote stores.

An address is parsed once, by `open_storage` in `opening.py`; folders are opened from there by names (`below`,
`above`, `beside`). A new store is one of fsspec's: what it can do stands in `reach.py` and `remote.py`.
"""
