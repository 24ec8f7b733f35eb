"""What Hudi's Spark reader shows in the partition columns, where that is not what the files hold (pure)."""

from table.config.table_config import TableConfig
from table.keys.keygen import DEFAULT_PARTITION

_TEXT_KEYGENS = ("TIMESTAMP", "CUSTOM")


def text_columns(config: TableConfig) -> frozenset[str]:
    """Columns that are shown as text, because the key generator made the path of them.

    Args:
        config: the table's properties.
    """
    return frozenset(_shown_fields(config)) if config.keygen_type in _TEXT_KEYGENS else frozenset()


def null_columns(config: TableConfig, path: str) -> frozenset[str]:
    """Columns that are shown as null in a partition, because the path says so.

    Args:
        config: the table's properties.
        path: of the partition.
    """
    fields = config.partition_fields
    segments = [path] if len(fields) == 1 else path.split("/")
    if config.keygen_type in _TEXT_KEYGENS or len(segments) != len(fields):
        return frozenset()
    named = zip(fields, segments, strict=True)
    nulls = {name for name, segment in named if segment == _default_segment(config, name)}
    return frozenset(nulls & set(_shown_fields(config)))


def _default_segment(config: TableConfig, name: str) -> str:
    return f"{name}={DEFAULT_PARTITION}" if config.hive_style else DEFAULT_PARTITION


def _shown_fields(config: TableConfig) -> list[str]:
    """Partition fields that are columns: one within a struct is none."""
    return [name for name in config.partition_fields if "." not in name]
