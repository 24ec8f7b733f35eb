"""A registration as a statement, for users who register tables by hand (pure)."""

from collections.abc import Sequence

from table.catalog.registration import OUTPUT_FORMAT, SERDE, CatalogColumn, Registration
from table.config.choice import Choice


class Dialect(Choice):
    """The engine that runs the statement."""

    HIVE = "hive"
    ATHENA = "athena"


def create_statement(one: Registration, dialect: Dialect) -> str:
    """The statement that registers a table, without a semicolon. It names no partitions: `add_statement` does.

    Args:
        one: the registration.
        dialect: the engine. Athena refuses properties that it does not know, so Spark's properties are left out there.
    """
    columns = ",\n".join(f"  {_quoted(column)}" for column in one.columns)
    keys = ", ".join(_quoted(column) for column in one.partition_keys)
    serde = ", ".join(f"'{key}'='{_text(value)}'" for key, value in one.serde_parameters.items())
    shown = {key: value for key, value in one.parameters.items() if key != "EXTERNAL"}
    properties = ",\n".join(f"  '{key}'='{_text(value)}'" for key, value in shown.items())
    lines = [f"CREATE EXTERNAL TABLE IF NOT EXISTS `{one.database}`.`{one.name}` (", columns, ")"]
    if keys:
        lines.append(f"PARTITIONED BY ({keys})")
    lines += [
        f"ROW FORMAT SERDE '{SERDE}'",
        f"WITH SERDEPROPERTIES ({serde})",
        f"STORED AS INPUTFORMAT '{one.input_format}'",
        f"OUTPUTFORMAT '{OUTPUT_FORMAT}'",
        f"LOCATION '{_text(one.location)}'",
    ]
    if dialect is Dialect.HIVE:
        lines.append(f"TBLPROPERTIES (\n{properties})")
    return "\n".join(lines)


def add_statement(one: Registration, partitions: Sequence[tuple[tuple[str, ...], str]]) -> str:
    """The statement that adds partitions, in the syntax of Hive and Athena."""
    names = [column.name for column in one.partition_keys]
    parts = []
    for values, location in partitions:
        value = ", ".join(f"`{name}`='{_text(each)}'" for name, each in zip(names, values, strict=True))
        parts.append(f"PARTITION ({value}) LOCATION '{_text(location)}'")
    return f"ALTER TABLE `{one.database}`.`{one.name}` ADD IF NOT EXISTS\n  " + "\n  ".join(parts)


def _quoted(column: CatalogColumn) -> str:
    return f"`{column.name.replace('`', '``')}` {column.type}"


def _text(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")
