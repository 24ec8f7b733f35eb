"""The file groups and file slices of a table, from listings of its files.

`listing.py` is the protocol: the store (`store_listing.py`), or the metadata table. `log_slicing.py` says which slice
a log file belongs to, `FileGroup.merged_slice` in `file_group.py` which one a reader merges. `known_files.py` finds
files that were deleted or cut.
"""
