"""Catalogs, in which query engines look a table up. This package registers the same as Hudi's own sync.

A new catalog is a class beside `glue.py` that follows the protocol in `catalog.py`, entered in `connect.py`. Its kind
goes into `table.options.catalog_settings`, its ``--to`` and its DDL into `table.cli.catalogs`; its client is an extra.
What is registered is decided in `registration.py`. A catalog whose engines read no Hudi tables (Unity) registers the
Delta log of `delta/` instead.
"""
