"""Data files of a table: formats, names, markers and publication.

`publication.py` decides what a store without a fence needs. A new kind of file needs a name in `names.py`, a rule in
`table.references.judge`, and a stat in `table.timeline.metadata.commit`. Tables with change files (``.cdc``) are
refused (`table.config.writable`). Stats of commits name those of Hudi, so nothing deletes them. To write them would
begin in `table.write.merge_bucket`, where both versions of a row meet.
"""
