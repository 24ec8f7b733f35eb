"""Short names for eight options, for users who do not know Hudi's names (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from table.errors import InvalidConfigError
from table.options.choices import BadRows, IndexType, SchemaMode, TableType
from table.options.keys import ALIASES
from table.options.operation import Operation
from table.options.settings import Settings
from table.options.values import Names, OneOf
from table.options.write_groups import BAD_ROWS, INDEX, OPERATION, SCHEMA_MODE, TABLE_TYPE
from table.options.write_options import WriteOptions

ColumnNames = str | Sequence[str]
SettingsT = TypeVar("SettingsT", bound=Settings)


def with_index(options: Mapping[str, Any], index: IndexType | str | None) -> Mapping[str, Any]:
    """Adds the short name of the index to options, unless they name one: some options go with one index alone."""
    name = "hoodie.index.type"
    if index is None or any(ALIASES.get(key, key) == name for key in options):
        return options
    return {**options, name: INDEX.read("index", index).value}


def with_short_names(  # noqa: PLR0913 one parameter per thing that users say
    options: WriteOptions,
    key: ColumnNames | None = None,
    partition_by: ColumnNames | None = None,
    order_by: ColumnNames | None = None,
    operation: Operation | str | None = None,
    table_type: TableType | str | None = None,
    index: IndexType | str | None = None,
    *,
    bad_rows: BadRows | str | None = None,
    schema: SchemaMode | str | None = None,
) -> WriteOptions:
    """Adds the values of short names to options.

    Args:
        options: the other options.
        key: column or columns that identify a row; ``hoodie.datasource.write.recordkey.field``.
        partition_by: column or columns that make the partition path, an empty list for none;
            ``hoodie.datasource.write.partitionpath.field``.
        order_by: column that orders the records of one key; ``hoodie.datasource.write.precombine.field``.
        operation: ``hoodie.datasource.write.operation``.
        table_type: ``cow`` or ``mor`` for a new table; ``hoodie.datasource.write.table.type``.
        index: how keys are found; ``hoodie.index.type``.
        bad_rows: ``fail`` or ``quarantine``; ``hudistream.bad.rows``.
        schema: ``strict``, ``add`` or ``reconcile``; ``hudistream.schema.mode``.

    Raises:
        InvalidConfigError: a short name and the options contradict each other.
    """
    keys = options.keys
    given: dict[str, Any] = {}
    if key is not None:
        given["record_key_fields"] = Names().read("key", key)
    if partition_by is not None:
        given["partition_fields"] = Names().read("partition_by", partition_by)
        given["partition_kinds"] = ()  # the new partition fields bring their own kinds
    if order_by is not None:
        given["ordering_fields"] = Names().read("order_by", order_by)
    if given.get("record_key_fields") == ():
        raise InvalidConfigError(f"key={key!r} names no column: name the column that identifies a row")
    short = replace(keys, **given) if given else keys
    for name, field, option in (
        ("key", "record_key_fields", "recordkey.field"),
        ("partition_by", "partition_fields", "partitionpath.field"),
        ("order_by", "ordering_fields", "precombine.field"),
    ):
        _check_same(name, option, keys, short, field)
    if keys.partition_kinds and not short.partition_kinds:
        short = replace(short, partition_kinds=keys.partition_kinds)
    if keys.partition_kinds and keys.partition_kinds != short.partition_kinds:
        _contradiction("partition_by", short.partition_kinds, "partitionpath.field", keys.partition_kinds)
    chosen = options.operation
    if operation is not None:
        chosen = OPERATION.read("operation", operation)
        if options.operation not in (None, chosen):
            _contradiction("operation", chosen, "operation", options.operation)
    return replace(
        options,
        operation=chosen,
        keys=short,
        table=_with(options.table, "table_type", table_type, TABLE_TYPE, "hoodie.datasource.write.table.type"),
        index=_with(options.index, "type", index, INDEX, "hoodie.index.type", "index"),
        bad_rows=_with(options.bad_rows, "action", bad_rows, BAD_ROWS, "hudistream.bad.rows", "bad_rows"),
        schema=_with(options.schema, "mode", schema, SCHEMA_MODE, "hudistream.schema.mode", "schema"),
    )


def _with(
    group: SettingsT, field: str, value: Any, kind: OneOf[Any], option: str, name: str | None = None
) -> SettingsT:
    """A group of options with the value of a short name, unless the options have another value."""
    if value is None:
        return group
    chosen, before = kind.read(name or field, value), getattr(group, field)
    is_default = before == getattr(type(group)(), field)
    if not is_default and before != chosen:
        raise InvalidConfigError(f"{name or field}={chosen} and {option}={before} say different things: keep one")
    return replace(group, **{field: chosen})


def _check_same(name: str, option: str, keys: Settings, short: Settings, field: str) -> None:
    ours, theirs = getattr(short, field), getattr(keys, field)
    if theirs is not None and ours != theirs:
        _contradiction(name, ours, option, theirs)


def _contradiction(name: str, ours: Any, option: str, theirs: Any) -> None:
    shown = [",".join(value) if isinstance(value, tuple) else str(value) for value in (ours, theirs)]
    raise InvalidConfigError(
        f"{name}={shown[0]} and hoodie.datasource.write.{option}={shown[1]} say different things: keep one"
    )
