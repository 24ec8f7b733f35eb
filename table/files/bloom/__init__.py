"""Bloom filters, and the hashes of record keys.

`bloom_filter.py` decides whether a filter can take more keys, `encoded_filter.py` adds them in the text of a footer.
The metadata partition ``bloom_filters`` would be read and kept in `table.metadata_table`.
"""
