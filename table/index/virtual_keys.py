"""The record keys of a table that does not store them (``hoodie.populate.meta.fields=false``, Hudi's virtual keys)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from table.config.table_config import TableConfig
from table.files.base.stored_file import StoredBaseFile
from table.keys.arrow_keys import compute_record_keys
from table.keys.keygen import KeyRules


@dataclass(frozen=True)
class VirtualKeys:
    """How keys of stored rows are made from their columns. Small: it is sent to workers.

    Attributes:
        rules: which columns make a key.
        columns: the columns of the table that they read (Arrow).
    """

    rules: KeyRules
    columns: pa.Schema

    def read(self, stored: StoredBaseFile, groups: Sequence[int]) -> Iterator[pa.Array]:
        """Record keys of row groups (string arrays), in the order of the rows."""
        for rows in stored.read_batches(self.columns, groups):
            yield from compute_record_keys(self.rules, rows).chunks


def virtual_keys_of(config: TableConfig, schema: pa.Schema) -> VirtualKeys | None:
    """How the keys of a table's rows are made; None where the rows hold them.

    Args:
        config: the table's properties.
        schema: its columns (Arrow).
    """
    if config.populate_meta_fields:
        return None
    names = dict.fromkeys(name.partition(".")[0] for name in config.record_key_fields)
    rules = KeyRules(config.record_key_fields, names_field=config.names_key_fields)
    return VirtualKeys(rules, pa.schema([schema.field(name) for name in names]))
