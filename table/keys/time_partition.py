"""Partition paths made from times, as Spark SQL text (pure; TimestampBasedAvroKeyGenerator, HoodieDateTimeParser).

The SQL computes with timestamps without zone and with their parts: Spark's own formatting uses the session's zone, and
would write another hour where that zone skips an hour.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from table.errors import InvalidConfigError, SchemaMismatchError
from table.keys.sql_text import quote_text

PREFIX = "hoodie.keygen.timebased."

# field of a form -> SQL function, width, and pattern of the digits in a text
FORM_FIELDS = {
    "yyyy": ("year", 4, "[0-9]{4}"),
    "MM": ("month", 2, "0[1-9]|1[0-2]"),
    "dd": ("day", 2, "0[1-9]|[12][0-9]|3[01]"),
    "HH": ("hour", 2, "[01][0-9]|2[0-3]"),
    "mm": ("minute", 2, "[0-5][0-9]"),
    "ss": ("second", 2, "[0-5][0-9]"),
}
# SQL of a number as milliseconds; div rounds towards zero, as Java's TimeUnit does
_SCALAR_MILLIS = {
    "NANOSECONDS": "{} div 1000000",
    "MICROSECONDS": "{} div 1000",
    "MILLISECONDS": "{}",
    "SECONDS": "{} * 1000",
    "MINUTES": "{} * 60000",
    "HOURS": "{} * 3600000",
    "DAYS": "{} * 86400000",
}
# the greatest number that is a time, in the year 293,506: beyond 2^63 microseconds Spark and Arrow have no room
MOST = {
    "NANOSECONDS": 9 * 10**18,
    "MICROSECONDS": 92 * 10**17,
    "MILLISECONDS": 92 * 10**14,
    "SECONDS": 92 * 10**11,
    "MINUTES": 153 * 10**9,
    "HOURS": 2555 * 10**6,
    "DAYS": 106 * 10**6,
}
NUMBER_UNITS = {"UNIX_TIMESTAMP": "SECONDS", "EPOCHMILLISECONDS": "MILLISECONDS", "EPOCHMICROSECONDS": "MICROSECONDS"}
_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


@dataclass(frozen=True)
class TimePartition:
    """How a partition value is made from a time: ``hoodie.keygen.timebased.*``.

    Attributes:
        type: ``UNIX_TIMESTAMP``, ``EPOCHMILLISECONDS``, ``EPOCHMICROSECONDS``, ``SCALAR``, ``DATE_STRING``, ``MIXED``.
        output_format: format of the partition path, such as ``yyyy/MM/dd``.
        output_timezone: zone of the partition path.
        input_formats: formats of texts, tried in order.
        input_timezone: zone of texts.
        scalar_unit: unit of SCALAR numbers.
    """

    type: str
    output_format: str
    output_timezone: str = "UTC"
    input_formats: tuple[str, ...] = ()
    input_timezone: str = "UTC"
    scalar_unit: str = "SECONDS"


def parse_time_partition(settings: Mapping[str, str]) -> TimePartition:
    """Reads ``hoodie.keygen.timebased.*``, from options or from the table's properties.

    Raises:
        InvalidConfigError: names the key that is missing or wrong.
    """

    def get(key: str, default: str = "") -> str:
        return settings.get(PREFIX + key) or default

    kind = get("timestamp.type").upper()
    if kind not in (*NUMBER_UNITS, "SCALAR", "DATE_STRING", "MIXED"):
        raise InvalidConfigError(
            f"{PREFIX}timestamp.type={kind or '(not set)'}: the timestamp key generator needs one of "
            f"{', '.join(NUMBER_UNITS)}, SCALAR, DATE_STRING, MIXED"
        )
    output = get("output.dateformat")
    if not output:
        raise InvalidConfigError(f"{PREFIX}output.dateformat is not set: give the form of the path, such as yyyy/MM/dd")
    formats = _split_formats(get("input.dateformat"), get("input.dateformat.list.delimiter.regex", ","))
    if kind in ("DATE_STRING", "MIXED") and not formats:
        raise InvalidConfigError(f"{PREFIX}input.dateformat is not set: {kind} needs the form of the texts")
    unit = get("timestamp.scalar.time.unit", "SECONDS").upper()
    if unit not in _SCALAR_MILLIS:
        raise InvalidConfigError(f"{PREFIX}timestamp.scalar.time.unit={unit}: one of {', '.join(_SCALAR_MILLIS)}")
    for form in (output, *formats):
        split_format(form)
    zones = []
    for key in ("output.timezone", "input.timezone"):
        named = "timezone" if get("timezone") else key
        zones.append(get(named, "UTC"))
        _check_zone(named, zones[-1])
    return TimePartition(kind, output, zones[0], formats, zones[1], unit)


def _split_formats(formats: str, delimiter: str) -> tuple[str, ...]:
    """The forms of a list. Java's split, unlike Python's, does not return what groups of the delimiter match."""
    try:
        ends = [(0, 0), *(match.span() for match in re.finditer(delimiter, formats)), (len(formats), len(formats))]
    except re.error as error:
        raise InvalidConfigError(
            f"{PREFIX}input.dateformat.list.delimiter.regex={delimiter} is no regular expression: {error}"
        ) from error
    parts = (formats[end:start].strip() for (_, end), (start, _) in pairwise(ends))
    return tuple(part for part in parts if part)


def _check_zone(key: str, name: str) -> None:
    if re.fullmatch(r"(GMT|UTC|UT)?([+-]\d{1,2}(:\d{2})?)?", name) and name:
        return
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidConfigError(f"{PREFIX}{key}={name}: there is no such time zone") from error


def split_format(form: str) -> list[tuple[str, bool]]:
    """Splits a date format into parts: (text, whether the text is a field).

    Raises:
        InvalidConfigError: the format has letters other than the fields yyyy MM dd HH mm ss.
    """
    parts: list[tuple[str, bool]] = []
    for found in re.finditer(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+", form):
        text = found[0]
        if found[1] is not None:
            parts.append((found[1].replace("''", "'") or "'", False))
        elif text in FORM_FIELDS:
            parts.append((text, True))
        elif text[0].isalpha():
            raise InvalidConfigError(
                f"the date form {form!r} has {text!r}: supported are {' '.join(FORM_FIELDS)} and quotes"
            )
        else:
            parts.append((text, False))
    return parts


def build_time_value(settings: TimePartition, column: str, kind: pa.DataType, name: str) -> str:
    """SQL of the partition value of a time column.

    Args:
        settings: how a time becomes a partition value.
        column: SQL of the column.
        kind: type of the column (Arrow).
        name: name of the column, for the error.

    Raises:
        SchemaMismatchError: when the type does not fit the settings.
    """
    is_text = pa.types.is_string(kind)
    if is_text and settings.type not in ("DATE_STRING", "MIXED"):
        raise SchemaMismatchError(f"the column {name!r} is a string, and {PREFIX}timestamp.type is {settings.type}")
    if is_text:
        time = f"coalesce({', '.join(_parsed(column, form) for form in settings.input_formats)})"
        # Hudi takes the epoch for a null; a text in no known format is an error, which a null path reports
        time = f"CASE WHEN {column} IS NULL THEN {_EPOCH} ELSE {time} END"
        zone = settings.input_timezone
    else:
        unit = settings.scalar_unit if settings.type == "SCALAR" else NUMBER_UNITS.get(settings.type, "MILLISECONDS")
        number = _number_of(column, kind, name)
        given = column if pa.types.is_floating(kind) or pa.types.is_decimal(kind) else number
        fits = f"{column} IS NULL OR {given} BETWEEN -{MOST[unit]} AND {MOST[unit]}"
        time = f"CASE WHEN {fits} THEN {_from_number(number, unit)} END"
        zone = "UTC"
    if zone != settings.output_timezone:
        time = f"convert_timezone({quote_text(zone)}, {quote_text(settings.output_timezone)}, {time})"
    return _formatted(time, settings.output_format)


def _number_of(column: str, kind: pa.DataType, name: str) -> str:
    if pa.types.is_timestamp(kind) and kind.tz:
        return f"unix_micros({column})"  # Hudi reads the stored number in the unit of the settings
    if pa.types.is_date32(kind):
        return f"unix_date({column})"
    if pa.types.is_integer(kind):
        return column
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return f"CAST({column} AS BIGINT)"
    raise SchemaMismatchError(f"the column {name!r} of type {kind} is no time that the timestamp key generator takes")


def _from_number(number: str, unit: str) -> str:
    # Hudi takes 1 for a null
    millis = f"({_SCALAR_MILLIS[unit].format(f'coalesce(CAST({number} AS BIGINT), 1L)')})"
    rest = f"pmod({millis}, 86400000L)"
    days = f"CAST(({millis} - {rest}) div 86400000L AS INT)"
    interval = f"make_dt_interval({days}, 0, 0, CAST({rest} AS DECIMAL(18,6)) / 1000)"
    return f"({_EPOCH} + {interval})"


def _parsed(column: str, form: str) -> str:
    """SQL of a text as a timestamp without zone; null if the text does not have the format."""
    pattern, order = "^", []
    for text, is_field in split_format(form):
        if is_field:
            pattern += f"({FORM_FIELDS[text][2]})"
            order.append(text)
        else:
            pattern += re.escape(text)
    pattern = quote_text(pattern + r"\z")  # to Java "$" is also before a last line end

    def part(field: str, default: str) -> str:
        if field not in order:
            return default
        return f"CAST(regexp_extract({column}, {pattern}, {order.index(field) + 1}) AS INT)"

    month, day = part("MM", "1"), part("dd", "1")
    parts = [part("yyyy", "1970"), month, "1", part("HH", "0"), part("mm", "0"), part("ss", "0")]
    # the day is added to the first of the month: so the 30th of February falls into another month, and raises no error
    time = f"(make_timestamp_ntz({', '.join(parts)}) + make_dt_interval({day} - 1))"
    return f"CASE WHEN {column} RLIKE {pattern} THEN CASE WHEN month({time}) = {month} THEN {time} END END"


def _formatted(time: str, form: str) -> str:
    pieces = []
    for text, is_field in split_format(form):
        if is_field:
            function, width, _ = FORM_FIELDS[text]
            number = f"CAST(CAST({function}({time}) AS INT) AS STRING)"
            pieces.append(f"lpad({number}, greatest({width}, length({number})), '0')")
        else:
            pieces.append(quote_text(text))
    return f"concat({', '.join(pieces)})"
