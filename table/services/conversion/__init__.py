"""A table gets another version: upgrades and downgrades (UpgradeDowngrade)."""
