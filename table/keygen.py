"""Record key and partition path as Spark SQL text: the one definition of both (pure).

Rules from KeyGenUtils, SimpleKeyGenerator, NonpartitionedKeyGenerator, PartitionPathEncodeUtils.
"""

import re
from dataclasses import dataclass

import pyarrow as pa

from table.config import TableConfig
from table.errors import InvalidConfigError, SchemaMismatchError

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"

# PartitionPathEncodeUtils.CHAR_TO_ESCAPE
ESCAPED_CHARACTERS = "".join(map(chr, range(1, 32))) + "\"#%'*/:=?\\\x7f{[]^"


@dataclass(frozen=True)
class KeyExpressions:
    """Spark SQL text of the two strings that say what a row is and where it belongs.

    Attributes:
        record_key: null or "" where the row has no key.
        partition_path: never null.
    """

    record_key: str
    partition_path: str


def quote_name(name: str) -> str:
    """A column name in Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """A string in Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def build_key_expressions(config: TableConfig, schema: pa.Schema) -> KeyExpressions:
    """Key and partition path of a table's rows.

    Args:
        config: the table's properties.
        schema: the batch's columns (Arrow).

    Raises:
        InvalidConfigError: when a field is not a column of the batch.
        SchemaMismatchError: when a column's type cannot be part of a key yet.
    """
    check_fields(config, schema)
    record_key = _text_of(config.record_key_fields[0], schema)
    if not config.partition_fields:
        return KeyExpressions(record_key, "''")
    field = config.partition_fields[0]
    value = f"coalesce(nullif({_text_of(field, schema)}, ''), {quote_text(DEFAULT_PARTITION)})"
    if config.url_encode:
        value = url_encoded(value)
    if config.hive_style:
        value = f"concat({quote_text(field + '=')}, {value})"
    return KeyExpressions(record_key, value)


def url_encoded(value: str) -> str:
    """SQL that escapes the special characters of a partition value as ``%XX``."""
    escaped = f"replace({value}, '%', '%25')"
    for char in ESCAPED_CHARACTERS.replace("%", ""):
        escaped = f"replace({escaped}, {quote_text(char)}, '%{ord(char):02X}')"
    pattern = "[" + "".join(f"\\x{{{ord(char):02x}}}" for char in ESCAPED_CHARACTERS) + "]"
    # nearly no value needs it: one scan decides, instead of some fifty replacements
    return f"CASE WHEN {value} RLIKE {quote_text(pattern)} THEN {escaped} ELSE {value} END"


def url_encode_text(value: str) -> str:
    """What `url_encoded` computes, in Python."""
    return re.sub("[" + re.escape(ESCAPED_CHARACTERS) + "]", lambda found: f"%{ord(found[0]):02X}", value)


def check_fields(config: TableConfig, schema: pa.Schema) -> None:
    """Refuses a batch without the columns that the table's keys are made of.

    Raises:
        InvalidConfigError: names the option, the column, and the columns there are.
    """
    wanted = [("hoodie.datasource.write.recordkey.field", name) for name in config.record_key_fields]
    wanted += [("hoodie.datasource.write.partitionpath.field", name) for name in config.partition_fields]
    if config.ordering_field:
        wanted.append(("hoodie.datasource.write.precombine.field", config.ordering_field))
    for option, name in wanted:
        if name not in schema.names:
            raise InvalidConfigError(f"{option}={name}: the batch has no such column; it has {', '.join(schema.names)}")


def _text_of(name: str, schema: pa.Schema) -> str:
    column = schema.field(name)
    kind = column.type
    if pa.types.is_string(kind):
        return quote_name(name)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date32(kind):
        return f"CAST({quote_name(name)} AS STRING)"
    raise SchemaMismatchError(
        f"the column {name!r} of type {kind} cannot be a record key or partition field yet: cast it to a string, "
        "an integer, a boolean or a date"
    )
