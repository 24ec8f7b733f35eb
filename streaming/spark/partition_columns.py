"""Partition columns in which Hudi's Spark reader shows other values than the files contain (pure)."""

from collections.abc import Iterable

import pyarrow as pa

from table.config.table_config import TableConfig
from table.keys.folder_values import PLAIN_KEYGENS, TEXT_KEYGENS, folder_values, shown_fields


def text_columns(config: TableConfig) -> frozenset[str]:
    """Columns that are shown as text, because the key generator formats them into the path.

    Args:
        config: the table's properties.
    """
    return frozenset(shown_fields(config)) if config.keygen_type in TEXT_KEYGENS else frozenset()


def are_told_by_folders(config: TableConfig, schema: pa.Schema, paths: Iterable[str]) -> bool:
    """Whether Spark reads the same partition values from folder names (``day=2026-01-02``) as from the files.

    Then Spark can skip folders by a filter on these columns before it opens a file. Spark reads ``%3A`` in a name as
    ``:``, and converts values of other types than text by its own rules. The answer is False where its value could
    differ.

    Args:
        config: the table's properties.
        schema: the table's columns (Arrow).
        paths: partition paths.
    """
    fields = shown_fields(config)
    if not config.hive_style or config.keygen_type not in PLAIN_KEYGENS or fields != list(config.partition_fields):
        return False
    if not fields or not all(name in schema.names and pa.types.is_string(schema.field(name).type) for name in fields):
        return False
    return all(_is_told_by(path.split("/"), fields) for path in paths)


def column_that_is_the_path(config: TableConfig, schema: pa.Schema, paths: Iterable[str]) -> str | None:
    """The partition column whose value is exactly the partition path of its row; None where there is none.

    If a global index keeps a row in its old path, the stored column value differs from the path. Readers show the value
    of the path (`table.keys.folder_values`).

    Args:
        config: the table's properties.
        schema: the table's columns (Arrow).
        paths: partition paths.
    """
    fields = list(config.partition_fields)
    plain = config.keygen_type in PLAIN_KEYGENS and not (config.hive_style or config.url_encode)
    if len(fields) != 1 or not plain or not config.populate_meta_fields:
        return None
    [name] = fields
    is_path = all(folder_values(config, schema, path).get(name) == path for path in paths)
    return name if is_path and name in schema.names else None


def _is_told_by(segments: list[str], fields: list[str]) -> bool:
    if len(segments) != len(fields):
        return False  # a value holds a slash
    named = zip(segments, fields, strict=True)
    return not any(
        "%" in segment or "\ufffd" in segment or not segment.startswith(f"{name}=") or segment == f"{name}="
        for segment, name in named
    )
