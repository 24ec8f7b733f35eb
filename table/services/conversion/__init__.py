"""A table gets another version: upgrades and downgrades (UpgradeDowngrade).

`properties.py` and `instants.py` say what changes, `convert.py` does it. What version 10 would take: decision
44.
"""
