"""Data files of a table: formats, names, markers and publication.

`publication.py` decides what a store without a fence needs. A new kind of file needs a name in `names.py`, a rule in
`table.references.judge`, and a stat in `table.timeline.metadata.commit`. Change files (``.cdc``) are such a kind: their
records stand in `log.change_records`, `table.write.change_file` writes them, and `table.view.file_group` says to which
slice they belong.
"""
