"""How complex record keys of one field are spelled: what the options say, and what a table has (pure)."""

from table.config.key_generator import KeyEncoding, encoding_of_version
from table.config.table_config import MERGER_VERSION, TableConfig


def new_encoding(keygen: str, keys: tuple[str, ...], version: int, *, value_only: bool | None) -> KeyEncoding | None:
    """How a new table spells complex keys of one field; None where its keys are others.

    Args:
        keygen: its key generator.
        keys: its key fields.
        version: its version. In version 9 Hudi knows one spelling, whatever the options say.
        value_only: what the options say; None: nothing.
    """
    if keygen != "COMPLEX" or len(keys) != 1:
        return None
    if value_only is None or version >= MERGER_VERSION:
        return encoding_of_version(version)
    return KeyEncoding.VALUE_ONLY if value_only else KeyEncoding.FIELD_PREFIXED


def encoding_pair(config: TableConfig, *, value_only: bool | None) -> tuple[str, bool | None, bool | None]:
    """The key that chooses the spelling, what the options say, and what the table has; None where it means nothing.

    Args:
        config: the table's properties.
        value_only: what the options say; None: nothing.
    """
    key, means = "hoodie.write.complex.keygen.new.encoding", config.has_complex_key_of_one_field
    if config.version >= MERGER_VERSION or not means or config.key_encoding is None:
        return key, None, None
    return key, value_only, config.key_encoding is KeyEncoding.VALUE_ONLY
