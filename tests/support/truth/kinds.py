"""What columns hold: types, the values that are most likely to go wrong, and one spelling of each value (pure)."""

import base64
import datetime as dt
import math
import struct
from dataclasses import dataclass
from decimal import Context, Decimal

import pyarrow as pa

UTC = dt.timezone.utc
EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)
NAN, INF = math.nan, math.inf
NUMBERS = ("int", "long", "float", "double")


@dataclass(frozen=True)
class Kind:
    """A type of columns.

    Attributes:
        type: Arrow's.
        values: what rows hold, and conditions compare with; null is added by whoever draws.
        wider: names of kinds that a column of this kind may become.
        compares: whether conditions compare its values by ``=``.
        orders: whether conditions compare them by ``<``, too.
        orders_records: whether a column of it may order the records of a key.
    """

    type: pa.DataType
    values: tuple
    wider: tuple = ()
    compares: bool = True
    orders: bool = True
    orders_records: bool = True


def _moment(text):
    return dt.datetime.fromisoformat(text).replace(tzinfo=UTC)


def _decimals(precision, scale):
    most = Decimal(10**precision - 1).scaleb(-scale, Context(prec=40))
    step = Decimal(1).scaleb(-scale)
    return (Decimal(0).quantize(step), step, step.copy_negate(), most, most.copy_negate(), Decimal(2).quantize(step))


TEXTS = (
    "", "a", "b", "B", "ab", "é", "\uffee", "\U00010000", "😀", " ", "it's", "\\", '"', "%", "null", "1", "\n", "x" * 70
)  # fmt: skip
GREATEST_FLOAT = struct.unpack("f", struct.pack("f", 3.4028235e38))[0]
FLOATS = (0.0, -0.0, 1.5, -1.5, 2.0, NAN, INF, -INF)
DATES = ("1970-01-01", "1969-12-31", "2024-02-29", "1582-10-04", "1582-10-15", "0001-01-01", "9999-12-31", "1900-01-01")
TIMES = (
    "1970-01-01T00:00:00",
    "1969-12-31T23:59:59.999999",
    "2024-03-10T07:30:00.000001",
    "2024-11-03T06:30:00",
    "1883-11-18T17:00:00",
    "0001-01-01T00:00:00",
    "9999-12-31T23:59:59.999999",
)
KINDS = {
    "bool": Kind(pa.bool_(), (True, False), orders=False, orders_records=False),
    "int": Kind(pa.int32(), (0, 1, -1, 7, 2**31 - 1, -(2**31)), ("long", "double")),
    "long": Kind(pa.int64(), (0, 1, -1, 7, 2**53 + 1, 2**63 - 1, -(2**63)), ("double",)),
    "float": Kind(pa.float32(), (*FLOATS, GREATEST_FLOAT, 2.0**-149), ("double",)),
    "double": Kind(pa.float64(), (*FLOATS, 0.1, 1.7976931348623157e308, 5e-324)),
    "small_decimal": Kind(pa.decimal128(5, 1), _decimals(5, 1)),
    "decimal": Kind(pa.decimal128(18, 4), _decimals(18, 4)),
    "large_decimal": Kind(pa.decimal128(38, 10), _decimals(38, 10), orders_records=False),
    "date": Kind(pa.date32(), tuple(map(dt.date.fromisoformat, DATES))),
    "time": Kind(pa.timestamp("us", "UTC"), tuple(map(_moment, TIMES))),
    "text": Kind(pa.string(), TEXTS),
    "bytes": Kind(pa.binary(), (b"", b"\x00", b"\xff\xfe", b"abc"), orders=False, orders_records=False),
    "list": Kind(pa.list_(pa.string()), ([], ["a"], ["", None, "é"], [None]), (), False, False, False),
    "floats": Kind(pa.list_(pa.float64()), ([], [NAN, -0.0], [None, 1.5]), (), False, False, False),
    "struct": Kind(
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        ({"a": 1, "b": "x"}, {"a": None, "b": "😀"}, {"a": 2**63 - 1, "b": None}),
        (), False, False, False,
    ),
    "map": Kind(pa.map_(pa.string(), pa.int64()), ([], [("k", 1)], [("k", None), ("é", -1)]), (), False, False, False),
    "structs": Kind(
        pa.list_(pa.struct([("x", pa.int32()), ("ys", pa.list_(pa.date32()))])),
        ([], [{"x": 1, "ys": [dt.date(2024, 2, 29), None]}], [None, {"x": None, "ys": []}]),
        (), False, False, False,
    ),
}  # fmt: skip


def spell(value, kind):
    """One text or number for a value, however a reader spells it: equal values have equal spellings.

    Args:
        value: of Arrow, of Spark or of JSON (texts for dates, times and decimals, base64 for bytes).
        kind: the column's type (Arrow).
    """
    if value is None:
        return None
    if pa.types.is_nested(kind):
        return _spell_nested(value, kind)
    if pa.types.is_floating(kind):
        number = float(value)
        return "nan" if math.isnan(number) else repr(number)
    if pa.types.is_integer(kind):
        return int(value)
    if pa.types.is_decimal(kind):
        return str(Decimal(str(value)).quantize(Decimal(1).scaleb(-kind.scale), context=Context(prec=40)))
    if pa.types.is_timestamp(kind):
        return _micros(value)
    if pa.types.is_date(kind):
        return value if isinstance(value, str) else value.isoformat()[:10]
    if pa.types.is_binary(kind):
        return (base64.b64decode(value) if isinstance(value, str) else bytes(value)).hex()
    return value


def _micros(value):
    if isinstance(value, int):
        return value
    moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // dt.timedelta(microseconds=1)


def _spell_nested(value, kind):
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, dict) else [_pair(one) for one in value]
        return tuple(sorted((key, spell(item, kind.item_type)) for key, item in pairs))
    if pa.types.is_list(kind):
        return tuple(spell(item, kind.value_type) for item in value)
    return tuple((field.name, spell(value[field.name], field.type)) for field in kind)


def _pair(one):
    return (one["key"], one["value"]) if isinstance(one, dict) else one


def widened(value, kind):
    """A value as a column of another kind holds it."""
    if value is None:
        return None
    return float(value) if kind in ("float", "double") else value


def order_of(value):
    """Sort key of a value that orders records, as Java compares: NaN is greatest, and -0.0 below 0.0."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))
    return (False, value, 0)
