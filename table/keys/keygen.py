"""The rules for record keys and partition paths, and their Spark SQL text (pure).

`arrow_keys` applies the same rules to Arrow columns.
The rules come from KeyGenUtils, SimpleKeyGenerator, ComplexKeyGenerator, NonpartitionedKeyGenerator,
TimestampBasedKeyGenerator, CustomKeyGenerator and PartitionPathEncodeUtils. A value becomes the same
text as in Hudi's insert: a timestamp its microseconds, a decimal Java's text, a binary its hexadecimal digits.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from table.columns.near_name import did_you_mean
from table.config.key_generator import KeyEncoding, encoding_of_version
from table.config.table_config import MERGER_VERSION, TableConfig
from table.errors import InvalidConfigError, SchemaMismatchError
from table.keys.option_words import in_words
from table.keys.sql_text import quote_name, quote_text
from table.keys.time_partition import TimePartition, build_time_value, parse_time_partition
from table.schema.avro_schema import relaxed_type

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
LONGEST_PART = 255  # longest file name in bytes on nearly every file system
NULL_KEY, EMPTY_KEY = "__null__", "__empty__"

# PartitionPathEncodeUtils.CHAR_TO_ESCAPE
ESCAPED_CHARACTERS = "".join(map(chr, range(1, 32))) + "\"#%'*/:=?\\\x7f{[]^"


KINDS = "hudistream.partition.kinds"
"""Property: the kind of each partition field, where the key generator is the custom one."""


@dataclass(frozen=True)
class KeyRules:
    """The columns and settings from which record keys and partition paths are made.

    Attributes:
        record_key: columns, or fields within structs (``a.b``).
        partition: such columns, each with the rule by which a time becomes text; None: the value is taken unchanged.
        hive_style: whether parts have the form ``column=value``.
        url_encode: whether special characters of values are escaped.
        names_field: whether the name of the only field of a record key stands before its value; the names of several
            fields do always.
    """

    record_key: tuple[str, ...]
    partition: tuple[tuple[str, TimePartition | None], ...] = ()
    hive_style: bool = False
    url_encode: bool = False
    names_field: bool = False

    @property
    def names_fields(self) -> bool:
        """Whether record keys have the form ``field:value``."""
        return self.names_field or len(self.record_key) > 1


@dataclass(frozen=True)
class KeyExpressions:
    """Spark SQL text of a row's record key and partition path.

    Attributes:
        record_key: SQL of the key; null or "" if the row has no key.
        partition_path: SQL of the path; null if the row has no valid path, for example because a text is not a date.
        rules: the rules that the SQL stands for, for engines without SQL.
        key_column: the column whose values are the record keys, unchanged; None if there is none.
    """

    record_key: str
    partition_path: str
    rules: KeyRules
    key_column: str | None = None


def build_key_expressions(
    config: TableConfig,
    schema: pa.Schema,
    partition_kinds: tuple[str, ...] = (),
    settings: Mapping[str, str] | None = None,
) -> KeyExpressions:
    """The expressions for record key and partition path of a table's rows.

    Args:
        config: the table's properties.
        schema: the batch's columns (Arrow).
        partition_kinds: for the custom key generator, ``SIMPLE`` or ``TIMESTAMP`` for each partition field; none: those
            of the table's properties.
        settings: ``hoodie.keygen.timebased.*`` of the user; without them the table's settings count.

    Raises:
        InvalidConfigError: when a field is not a column of the batch, or settings are missing.
        SchemaMismatchError: when a column's type cannot be part of a key.
    """
    check_fields(config, schema)
    timed = {**config.extra, **(settings or {})}
    kinds = _kinds_of(config, partition_kinds)
    ways = [parse_time_partition(timed) if kind == "TIMESTAMP" else None for kind in kinds]
    partition = tuple(zip(config.partition_fields, ways, strict=True))
    parts = [_partition_part(config, schema, name, way) for name, way in partition]
    path = "''" if not parts else parts[0] if len(parts) == 1 else f"concat({', '.join(_between(parts, '/'))})"
    names = config.names_key_fields
    rules = KeyRules(config.record_key_fields, partition, config.hive_style, config.url_encode, names)
    return KeyExpressions(_record_key(config, schema), path, rules, find_key_column(config, schema))


def find_key_column(config: TableConfig, schema: pa.Schema) -> str | None:
    """The column whose values are the record keys, unchanged: the only key field, a top-level string column.

    Args:
        config: the table's properties.
        schema: columns of the batch, or of the table (Arrow).
    """
    names = config.record_key_fields
    is_sure = not config.has_complex_key_of_one_field or config.key_encoding is KeyEncoding.VALUE_ONLY
    if len(names) != 1 or names[0] not in schema.names or not pa.types.is_string(schema.field(names[0]).type):
        return None
    return names[0] if is_sure else None


def _kinds_of(config: TableConfig, given: tuple[str, ...]) -> tuple[str, ...]:
    count = len(config.partition_fields)
    if config.keygen_type == "CUSTOM" and count:
        given = given or tuple(filter(None, config.extra.get(KINDS, "").split(",")))
        if len(given) != count:
            raise InvalidConfigError(
                "the table has the custom key generator: give the kind of each partition field, such as "
                f"hoodie.datasource.write.partitionpath.field={config.partition_fields[0]}:SIMPLE"
            )
        return given
    return ("TIMESTAMP",) * count if config.keygen_type == "TIMESTAMP" else ("SIMPLE",) * count


def _record_key(config: TableConfig, schema: pa.Schema) -> str:
    names = config.record_key_fields
    texts = [_text_of(name, schema) for name in names]
    if not config.names_key_fields:
        return texts[0]
    parts = []
    for name, text in zip(names, texts, strict=True):
        value = f"CASE WHEN {text} IS NULL THEN '{NULL_KEY}' WHEN {text} = '' THEN '{EMPTY_KEY}' ELSE {text} END"
        parts.append(f"concat({quote_text(name + ':')}, {value})")
    nothing = " AND ".join(f"coalesce({text}, '') = ''" for text in texts)
    return f"CASE WHEN {nothing} THEN NULL ELSE concat({', '.join(_between(parts, ','))}) END"


def _between(parts: list[str], separator: str) -> list[str]:
    return [piece for part in parts for piece in (quote_text(separator), part)][1:]


def _partition_part(config: TableConfig, schema: pa.Schema, name: str, way: TimePartition | None) -> str:
    if way is not None:
        column, found = _column(name, schema)
        value = build_time_value(way, column, found, name)
    else:
        value = f"coalesce(nullif({_text_of(name, schema)}, ''), {quote_text(DEFAULT_PARTITION)})"
    if config.url_encode:
        value = url_encoded(value)
    return f"concat({quote_text(name + '=')}, {value})" if config.hive_style else value


def url_encoded(value: str) -> str:
    """SQL that escapes the special characters of a partition value as ``%XX``."""
    escaped = f"replace({value}, '%', '%25')"
    for char in ESCAPED_CHARACTERS.replace("%", ""):
        escaped = f"replace({escaped}, {quote_text(char)}, '%{ord(char):02X}')"
    pattern = "[" + "".join(f"\\x{{{ord(char):02x}}}" for char in ESCAPED_CHARACTERS) + "]"
    # hardly any value has such characters: one scan decides, instead of some fifty replacements
    return f"CASE WHEN {value} RLIKE {quote_text(pattern)} THEN {escaped} ELSE {value} END"


def url_encode_text(value: str) -> str:
    """The result of the SQL of `url_encoded`, computed in Python."""
    return re.sub("[" + re.escape(ESCAPED_CHARACTERS) + "]", lambda found: f"%{ord(found[0]):02X}", value)


_CONTROL = re.compile(r"[\x01-\x1f\x7f]")
NO_PARTITION_PATH = "no partition path can be made of the row: its value is no time of the configured form"


def partition_path_problem(path: str | None) -> str | None:  # noqa: PLR0911 a list of reasons
    """Why a partition path cannot be a folder of the table, or None if it can.

    A refused path would lie outside the table or in its metadata, or Hadoop could not read it: Hadoop takes a colon in
    the first part of a path for the end of a scheme.
    """
    if path is None:
        return NO_PARTITION_PATH
    if path == "":
        return None
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return f"the partition path {path!r} has an empty part, '.' or '..'"
    if parts[0] == ".hoodie":
        return f"the partition path {path!r} lies in the table's metadata"
    if "\0" in path or any(len(part.encode()) > LONGEST_PART for part in parts):
        return f"the partition path {path[:40]!r}… has a part of more than {LONGEST_PART} bytes, or a NUL character"
    control = _CONTROL.search(path)
    if control is not None:
        return (
            f"the partition path {path!r} has the control character {control[0]!r}, with which readers cannot list the "
            "folder: set hoodie.datasource.write.partitionpath.urlencode=true for a new table, or clean the value"
        )
    if ":" in parts[0]:
        return f"the partition path {path!r} has a colon, which Hadoop takes for a scheme"
    return None


def doubled_by(config: TableConfig) -> str | None:
    """Which releases of Hudi would add every row of the table again, because they spell its record keys otherwise.

    Args:
        config: the table's properties, with the spelling of its keys.

    Returns:
        A sentence with the way out; None where Hudi finds the keys, or where the spelling is not known.
    """
    if not config.has_complex_key_of_one_field or config.key_encoding is None:
        return None
    name = config.record_key_fields[0]
    way = "copy the rows into a new table, or let no such Hudi write this one"
    if config.key_encoding is encoding_of_version(config.version):
        if config.version >= MERGER_VERSION:
            return None
        return (
            f"record keys hold the value of {name!r} alone. Hudi 1.1 and later refuse such a table in version "
            f"{config.version}, or put '{name}:' before the value: their upserts would add every row again. Let them "
            "have hoodie.write.complex.keygen.validation.enable=false and hoodie.write.complex.keygen.new.encoding=true"
        )
    if config.key_encoding is KeyEncoding.VALUE_ONLY:
        return (
            f"record keys hold the value of {name!r} alone, and Hudi 1.1 and later put '{name}:' before it in version "
            f"{config.version}: their upserts would add every row again. {way[0].upper()}{way[1:]}"
        )
    return (
        f"record keys have '{name}:' before the value. Hudi 0.14.1 to 1.0.2 store the value alone: their upserts would "
        f"add every row again. {way[0].upper()}{way[1:]}"
    )


def check_keys_keep_their_types(config: TableConfig, batch: pa.Schema, table: pa.Schema | None) -> None:
    """Refuses key and partition columns whose type differs from the table's: equal values would become other texts.

    Raises:
        SchemaMismatchError: names the column and both types.
    """
    for field in (*config.record_key_fields, *config.partition_fields):
        name = field.split(".", 1)[0]
        if table is None or name not in table.names or name not in batch.names:
            continue
        ours, theirs = batch.field(name).type, table.field(name).type
        if pa.types.is_null(ours):
            continue  # a row, if there is one, has no value to spell
        if not relaxed_type(ours).equals(relaxed_type(theirs)):
            raise SchemaMismatchError(
                f"column {name!r} is {ours}, the table has {theirs}: keys and partition paths made of it would be "
                "spelled differently; cast it before the sink"
            )


def check_fields(config: TableConfig, schema: pa.Schema) -> None:
    """Refuses a batch without columns of the record key, the partition path or the order.

    Raises:
        InvalidConfigError: names the option, the missing column, and the columns of the batch.
    """
    wanted = [("hoodie.datasource.write.recordkey.field", name) for name in config.record_key_fields]
    wanted += [("hoodie.datasource.write.partitionpath.field", name) for name in config.partition_fields]
    for name in config.ordering_fields:
        if name not in schema.names:
            within = " (fields within structs cannot order records)" if "." in name else ""
            raise InvalidConfigError(
                f"{in_words('hoodie.datasource.write.precombine.field', name)}: the batch has no such column{within}; "
                f"it has {', '.join(schema.names)}{did_you_mean(name, schema.names)}"
            )
    for option, name in wanted:
        if _find(name, schema) is None:
            raise InvalidConfigError(
                f"{in_words(option, name)}: the batch has no such column; it has {', '.join(schema.names)}"
                f"{did_you_mean(name, schema.names)}"
            )


def _find(name: str, schema: pa.Schema) -> tuple[str, pa.DataType] | None:
    """SQL and type of a column, or of a field within structs (``a.b.c``)."""
    if name in schema.names:
        return quote_name(name), schema.field(name).type
    first, *rest = name.split(".")
    if first not in schema.names:
        return None
    sql, kind = quote_name(first), schema.field(first).type
    for part in rest:
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return None
        sql, kind = f"{sql}.{quote_name(part)}", kind.field(part).type
    return sql, kind


def _column(name: str, schema: pa.Schema) -> tuple[str, pa.DataType]:
    found = _find(name, schema)
    assert found is not None, name  # the caller has called check_fields
    return found


def _text_of(name: str, schema: pa.Schema) -> str:
    column, kind = _column(name, schema)
    if pa.types.is_string(kind):
        return column
    if pa.types.is_timestamp(kind) and kind.tz:
        return f"CAST(unix_micros({column}) AS STRING)"
    if pa.types.is_decimal(kind):
        # Java's text (1E-18), not the plain one; the result does not depend on spark.sql.ansi.enabled
        return f"IF({column} IS NULL, NULL, format_string('%s', {column}))"
    if pa.types.is_binary(kind):
        return f"lower(hex({column}))"
    if pa.types.is_null(kind):
        return f"CAST({column} AS STRING)"
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date32(kind) or pa.types.is_floating(kind):
        return f"CAST({column} AS STRING)"
    raise SchemaMismatchError(
        f"the column {name!r} of type {kind} cannot be a record key or partition field: use a string, number, boolean, "
        "date, timestamp or binary column"
    )
