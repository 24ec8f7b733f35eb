"""Rows in a form in which two readers' rows can be compared."""

import base64
import datetime
import decimal

from table.schema.avro_schema import META_COLUMNS


def plain(value):
    """A value as the golden files spell it: dates and decimals as texts, bytes as base64, times in UTC."""
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.timezone.utc).replace(tzinfo=None).isoformat(timespec="microseconds")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(inner, tuple) for inner in value):  # a map, as Arrow gives it
            return {key: plain(inner) for key, inner in value}
        return [plain(inner) for inner in value]
    return value


def rows_of(table):
    """Rows of an Arrow table as dictionaries of plain values, without Hudi's meta columns."""
    columns = [name for name in table.column_names if name not in META_COLUMNS]
    return [{key: plain(value) for key, value in row.items()} for row in table.select(columns).to_pylist()]


def shown(rows):
    """Rows as comparable texts; an empty map and an empty list look alike to Arrow's to_pylist."""
    texts = []
    for row in rows:
        values = sorted((key, repr(value).replace("{}", "[]")) for key, value in row.items() if key not in META_COLUMNS)
        texts.append(str(values))
    return sorted(texts)


def tuples(table):
    """Rows of an Arrow table as tuples, in their order."""
    return [tuple(row.values()) for row in table.to_pylist()]


def frame_rows(frame):
    """Rows of a Spark DataFrame as dictionaries, values as the golden files spell them."""

    def value(item):
        if hasattr(item, "asDict"):
            return {key: value(inner) for key, inner in item.asDict().items()}
        if isinstance(item, dict):
            return {key: value(inner) for key, inner in item.items()}
        if isinstance(item, list):
            return [value(inner) for inner in item]
        return plain(item) if not hasattr(item, "tzinfo") else item.isoformat(timespec="microseconds")

    return [{key: value(item) for key, item in row.asDict().items()} for row in frame.collect()]
