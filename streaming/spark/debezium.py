"""Change events of Debezium -> rows to upsert: key and columns, an order, and a flag for deleted rows."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from table.errors import InvalidConfigError
from table.keys.sql_text import quote_name, quote_text

IS_DELETED = "_hoodie_is_deleted"
_OPERATION = "_change_operation_type"
_UNAVAILABLE = "__debezium_unavailable_value"  # in place of a value that Postgres stores apart and that did not change
_UNITS = {"ms": 1000, "us": 1}  # -> microseconds
_CORRUPT = "_corrupt_record"

# a file "binlog.000003": its number, then the position in it, each of one width, so that text is ordered as numbers
_BINLOG = (
    "concat_ws('.', lpad(regexp_extract(source.file, '([0-9]+)$', 1), 10, '0'), "
    "lpad(cast(source.pos AS string), 20, '0'), lpad(cast(coalesce(source.row, 0) AS string), 10, '0'))"
)
# connector -> column of the order, as Hudi's Debezium sources name it, its fields in `source`, and its expression
_ORDERS = {
    "postgresql": ("_event_lsn", "lsn bigint", "source.lsn"),
    "mysql": ("_event_seq", "file string, pos bigint, row int", _BINLOG),
}
_ORDERS["mariadb"] = _ORDERS["mysql"]


def debezium(
    frame: DataFrame,
    schema: str | StructType,
    *,
    connector: str = "postgresql",
    timestamp_unit: str = "us",
) -> DataFrame:
    """Makes rows for `HudiSink` of Debezium's change events, as Spark's Kafka source delivers them.

    ``rows = debezium(kafka, "id bigint, customer string, amount double")``, then
    ``rows.writeStream.foreachBatch(HudiSink(path, key="id", order_by="_event_lsn"))``

    The order is the position in the database's log and not ``ts_ms``, which several changes share. Tombstones, which
    follow a delete, and messages of the log that are no rows (``op`` of ``m``) are left out.

    Args:
        frame: a column ``value`` with the event in JSON, as text or bytes, with Debezium's schema in it or without.
        schema: the columns of the database's table that are wanted (Spark). Dates and timestamps, in lists, maps and
            structs too, are read from Debezium's numbers or from ISO text; decimals from text
            (``decimal.handling.mode=string``) or from numbers.
        connector: ``postgresql``, ``mysql`` or ``mariadb``.
        timestamp_unit: of timestamps that are numbers: ``us``, or ``ms`` (``time.precision.mode=connect``, and columns
            of MySQL with at most three digits).

    Returns:
        The columns of `schema`; ``_event_lsn`` (bigint; Postgres) or ``_event_seq`` (string; MySQL), the order; the
        operation (``_change_operation_type``); and ``_hoodie_is_deleted``.

    Raises:
        InvalidConfigError: for an argument that does not fit. An event that cannot be read, or that has no value
            because Postgres did not log it, fails the batch, with its topic, partition and offset where they are known.
    """
    if "value" not in frame.columns:
        raise InvalidConfigError(
            f"the frame has no column 'value' (it has {', '.join(frame.columns)}): give the frame of Spark's Kafka "
            "source, before it is changed"
        )
    if connector not in _ORDERS:
        raise InvalidConfigError(
            f"connector={connector!r}: only {', '.join(sorted(_ORDERS))} are known; make the columns, an order and "
            f"{IS_DELETED} of another database's events yourself"
        )
    if timestamp_unit not in _UNITS:
        raise InvalidConfigError(f"timestamp_unit={timestamp_unit!r}: one of {', '.join(_UNITS)}")
    wanted, order_fields = (_parse(frame, text) for text in (schema, _ORDERS[connector][1]))
    order, _, expression = _ORDERS[connector]
    text = F.col("value").cast("string")
    known = [name for name in ("topic", "partition", "offset") if name in frame.columns]
    events = frame.where(F.col("value").isNotNull()).select(
        F.from_json(text, _envelope(wanted, order_fields), {"columnNameOfCorruptRecord": _CORRUPT}).alias("event"),
        F.concat_ws("-", *known).alias("place"),
    )
    events = events.select(
        *(F.coalesce(f"event.payload.{name}", f"event.{name}").alias(name) for name in ("op", "source")),
        F.coalesce("event.payload.after", "event.after", "event.payload.before", "event.before").alias("raw"),
        F.col(f"event.{_CORRUPT}").alias(_CORRUPT),
        "place",
    ).where("op IS NULL OR op <> 'm'")
    names = [field.name for field in wanted]
    sql = [_convert(f"raw.{quote_name(field.name)}", field.dataType, timestamp_unit) for field in wanted]
    values = [F.expr(value).alias(f"_{at}") for at, value in enumerate(sql)]
    rows = events.select(*values, F.expr(expression).alias(order), "op", "place", "raw", _CORRUPT)
    problem = F.coalesce(_find_corrupt(), *(_find_lost(field, f"_{at}") for at, field in enumerate(wanted)))
    message = F.concat(F.lit("Debezium's event "), "place", F.lit(": "), problem)
    checked = rows.where(F.when(problem.isNull(), F.lit(True)).otherwise(F.raise_error(message).cast("boolean")))
    return checked.select(
        *(F.col(f"_{at}").alias(name) for at, name in enumerate(names)),
        order,
        F.col("op").alias(_OPERATION),
        (F.col("op") == "d").alias(IS_DELETED),
    )


def _parse(frame: DataFrame, schema: str | StructType) -> StructType:
    return schema if isinstance(schema, StructType) else frame.sparkSession.createDataFrame([], schema).schema


def _envelope(wanted: StructType, source: StructType) -> StructType:
    row = StructType([StructField(field.name, _raw_type(field.dataType)) for field in wanted])
    event = [
        StructField("op", StringType()),
        StructField("before", row),
        StructField("after", row),
        StructField("source", source),
    ]
    return StructType([*event, StructField("payload", StructType(event)), StructField(_CORRUPT, StringType())])


def _is_time(kind: DataType) -> bool:
    return isinstance(kind, DateType | TimestampType | TimestampNTZType)


def _holds_times(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_holds_times(field.dataType) for field in kind)
    if isinstance(kind, ArrayType):
        return _holds_times(kind.elementType)
    return _holds_times(kind.valueType) if isinstance(kind, MapType) else _is_time(kind)


def _raw_type(kind: DataType) -> DataType:
    """As what a column is read from JSON: numbers that stand for times would become null, or other times.

    Decimals are read as what they are: as text, a number would go through a double.
    """
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, _raw_type(field.dataType)) for field in kind])
    if isinstance(kind, ArrayType):
        return ArrayType(_raw_type(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _raw_type(kind.valueType))
    return StringType() if _is_time(kind) else kind


def _convert(raw: str, kind: DataType, unit: str, depth: int = 0) -> str:
    """SQL of a value.

    Args:
        raw: SQL of the value as it was read.
        kind: its type.
        unit: of timestamps that are numbers.
        depth: in how many lists and maps it lies.
    """
    if not _holds_times(kind):
        return raw
    if isinstance(kind, StructType):
        parts = [f"{quote_text(name)}, {_convert(of, inner, unit, depth)}" for name, of, inner in _fields(raw, kind)]
        return f"CASE WHEN {raw} IS NOT NULL THEN named_struct({', '.join(parts)}) END"
    part = f"v{depth}"
    if isinstance(kind, ArrayType):
        return f"transform({raw}, {part} -> {_convert(part, kind.elementType, unit, depth + 1)})"
    if isinstance(kind, MapType):
        return f"transform_values({raw}, (k{depth}, {part}) -> {_convert(part, kind.valueType, unit, depth + 1)})"
    text, number = f"try_cast({raw} AS {kind.simpleString()})", f"try_cast({raw} AS bigint)"
    micros = f"({number} * {_UNITS[unit]})"
    if isinstance(kind, DateType):
        value = f"date_add(DATE'1970-01-01', int({number}))"
    elif isinstance(kind, TimestampType):
        value = f"timestamp_micros({micros})"
    else:
        passed = f"make_dt_interval(0, 0, 0, try_cast({micros} / 1000000BD AS decimal(18, 6)))"
        value = f"TIMESTAMP_NTZ'1970-01-01 00:00:00' + {passed}"
    return f"CASE WHEN {number} IS NULL THEN {text} ELSE {value} END"


def _is_lost(raw: str, value: str, kind: DataType, depth: int = 0) -> str:
    """SQL: whether a time of a value could not be read.

    Args:
        raw: SQL of the value as it was read.
        value: SQL of the value as it was converted.
        kind: its type.
        depth: in how many lists and maps it lies.
    """
    if not _holds_times(kind):
        return "false"
    if isinstance(kind, StructType):
        inner = zip(_fields(raw, kind), _fields(value, kind), strict=True)
        return " OR ".join(f"({_is_lost(one, other, of, depth)})" for (_, one, of), (_, other, _) in inner)
    if isinstance(kind, MapType):
        return _is_lost(f"map_values({raw})", f"map_values({value})", ArrayType(kind.valueType), depth)
    if isinstance(kind, ArrayType):
        part = f"z{depth}"
        lost = _is_lost(f"{part}.r", f"{part}.c", kind.elementType, depth + 1)
        return f"coalesce(exists(zip_with({raw}, {value}, (r, c) -> struct(r, c)), {part} -> {lost}), false)"
    return f"({raw} IS NOT NULL AND {value} IS NULL)"


def _fields(value: str, kind: StructType) -> list[tuple[str, str, DataType]]:
    """Name, SQL and type of each field of a struct."""
    return [(field.name, f"{value}.{quote_name(field.name)}", field.dataType) for field in kind]


def _find_corrupt() -> Column:
    what = (
        "it is not JSON, or a value in it does not fit the schema that was given; decimals need "
        "decimal.handling.mode=string, or numbers"
    )
    return F.when(F.col(_CORRUPT).isNotNull(), F.lit(what)).when(
        F.col("op").isNull(), F.lit("it has no `op`: is the value of the topic Debezium's envelope, in JSON?")
    )


def _find_lost(field: StructField, value: str) -> Column:
    """What is wrong with a column's value, in words; null: nothing."""
    raw, kind = f"raw.{quote_name(field.name)}", field.dataType
    if _holds_times(kind):
        lost = F.expr(_is_lost(raw, f"`{value}`", kind))
        return F.when(lost, F.lit(f"{field.name} cannot be read as {kind.simpleString()}"))
    if (is_unlogged := _is_unlogged(raw, kind)) is not None:
        message = (
            f"Postgres did not log the value of {field.name}, which did not change: set REPLICA IDENTITY FULL for it"
        )
        return F.when(F.expr(is_unlogged) & (F.col("op") != "d"), F.lit(message))
    return F.lit(None).cast("string")


def _is_unlogged(raw: str, kind: DataType) -> str | None:
    """SQL: whether a value is the one that stands for a value that was not logged; None where the type has none.

    Text, bytes, lists of either, lists of the bytes as numbers, and maps of ``hstore`` with it as a key
    (``io.debezium.connector.postgresql.UnchangedToastedReplicationMessageColumn``).
    """
    text = quote_text(_UNAVAILABLE)
    if isinstance(kind, StringType | BinaryType):
        return f"{raw} = cast({text} AS {kind.simpleString()})"
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        return f"coalesce(array_contains(map_keys({raw}), {text}), false)"
    if not isinstance(kind, ArrayType):
        return None
    if isinstance(kind.elementType, StringType | BinaryType):
        return f"{raw} = array(cast({text} AS {kind.elementType.simpleString()}))"
    if isinstance(kind.elementType, NumericType):
        numbers = ", ".join(map(str, _UNAVAILABLE.encode()))
        return f"{raw} = cast(array({numbers}) AS {kind.simpleString()})"
    return None
