"""Catalogs, in which query engines look a table up. This package registers the same as Hudi's own sync."""
