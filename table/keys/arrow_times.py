"""Partition paths made from times in Arrow columns; `time_partition` has the same rules as SQL (pure).

A time is a number of microseconds on the wall clock of its zone.
"""

import re
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.keys.time_partition import FORM_FIELDS, MOST, NUMBER_UNITS, TimePartition, split_format

Times = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_SECOND, _QUARTER, _DAY = 1_000_000, 900_000_000, 86_400_000_000
_LATE = 2_114_380_800 * _SECOND  # 2037
_CYCLE = 146_097 * _DAY  # 400 years
_MILLIS = {"MILLISECONDS": 1, "SECONDS": 1000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000}
_CUT = {"NANOSECONDS": 1_000_000, "MICROSECONDS": 1000}


def format_times(settings: TimePartition, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The partition value of each row (string); null if a text has none of the input formats, or a number is no time.

    Args:
        settings: how a time becomes a partition value.
        column: strings, numbers or times; `build_time_value` has checked the type.
    """
    if pa.types.is_string(column.type):
        times, good = _parse(settings, column)
        zone = settings.input_timezone
    else:
        unit = settings.scalar_unit if settings.type == "SCALAR" else NUMBER_UNITS.get(settings.type, "MILLISECONDS")
        numbers, good = _numbers(column, MOST[unit])
        times, zone = _millis(numbers, unit) * 1000, "UTC"
    if zone != settings.output_timezone:
        times = _to_wall_clock(_from_wall_clock(times, zone), settings.output_timezone)
    text = _formatted(times, settings.output_format)
    return pa.chunked_array([pc.if_else(pa.array(good), text, pa.scalar(None, pa.string()))])


def _numbers(column: pa.ChunkedArray, most: int) -> tuple[Times, Flags]:
    """The numbers, and whether each is a time. Hudi takes 1 for a null."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    elif pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    size = column if pa.types.is_integer(column.type) else column.cast(pa.float64())
    good = pc.fill_null(pc.and_(pc.greater_equal(size, -most), pc.less_equal(size, most)), True)
    if not pa.types.is_integer(column.type):
        column = pc.trunc(column)
    column = pc.if_else(good, column, pa.scalar(None, column.type))
    numbers: Times = pc.fill_null(pc.cast(column, pa.int64(), safe=False), 1).to_numpy()
    return numbers, good.to_numpy()


def _millis(numbers: Times, unit: str) -> Times:
    if unit in _CUT:  # rounds towards zero, as Java's TimeUnit does
        cut: Times = np.sign(numbers) * (np.abs(numbers) // _CUT[unit])
        return cut
    return numbers * _MILLIS[unit]


def _parse(settings: TimePartition, column: pa.ChunkedArray) -> tuple[Times, Flags]:
    """The times of texts, and whether each text has one of the input formats. Hudi takes the epoch for a null."""
    times, good = np.zeros(len(column), np.int64), column.is_null().to_numpy()
    for form in settings.input_formats:
        found, fits = _parsed(column, form)
        new = fits & ~good
        times[new] = found[new]
        good = good | fits
    return times, good


def _parsed(column: pa.ChunkedArray, form: str) -> tuple[Times, Flags]:
    pattern = "^"
    order: list[str] = []
    for text, is_field in split_format(form):
        pattern += f"(?P<f{len(order)}>{FORM_FIELDS[text][2]})" if is_field else re.escape(text)
        order += [text] if is_field else []
    if not order:  # a form without fields matches only its own text
        return np.zeros(len(column), np.int64), pc.fill_null(pc.equal(column, _literal(form)), False).to_numpy()
    found = pc.extract_regex(column, pattern + "$").combine_chunks()
    fits: Flags = found.is_valid().to_numpy(zero_copy_only=False)

    def part(field: str, default: int) -> Times:
        if field not in order:
            return np.full(len(column), default, np.int64)
        digits = pc.struct_field(found, f"f{order.index(field)}")
        numbers: Times = pc.fill_null(pc.cast(digits, pa.int64()), default).to_numpy()
        return numbers

    months = ((part("yyyy", 1970) - 1970) * 12 + part("MM", 1) - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (part("dd", 1) - 1)
    fits = fits & (days.astype("datetime64[M]") == months)  # otherwise the month does not have this day
    seconds = part("HH", 0) * 3600 + part("mm", 0) * 60 + part("ss", 0)
    return days.astype(np.int64) * _DAY + seconds * _SECOND, fits


def _literal(form: str) -> str:
    return "".join(text for text, _ in split_format(form))


def _formatted(times: Times, form: str) -> pa.Array:
    moments = times.astype("datetime64[us]")
    years, months, days = (moments.astype(f"datetime64[{unit}]") for unit in "YMD")
    seconds = np.mod(times, _DAY) // _SECOND
    fields = {
        "yyyy": years.astype(np.int64) + 1970,
        "MM": (months - years.astype("datetime64[M]")).astype(np.int64) + 1,
        "dd": (days - months.astype("datetime64[D]")).astype(np.int64) + 1,
        "HH": seconds // 3600,
        "mm": seconds // 60 % 60,
        "ss": seconds % 60,
    }
    pieces: list[str | pa.Array] = []
    for text, is_field in split_format(form):
        if is_field:
            pieces.append(pc.utf8_lpad(pa.array(fields[text]).cast(pa.string()), FORM_FIELDS[text][1], "0"))
        else:
            pieces.append(text)
    blank = pa.array(np.full(len(times), ""), pa.string())  # gives the result its length if the form has no field
    return pc.binary_join_element_wise(blank, *pieces, "")


def _fixed_offset(zone: str) -> int | None:
    """Microseconds that a zone such as ``GMT+8:00`` is ahead of UTC; None for a zone that names a region."""
    found = re.fullmatch(r"(?:GMT|UTC|UT)?(?:([+-])(\d{1,2})(?::(\d{2}))?)?", zone)
    if found is None:
        return None
    minutes = int(found[2] or 0) * 60 + int(found[3] or 0)
    return (-minutes if found[1] == "-" else minutes) * 60 * _SECOND


def _from_wall_clock(times: Times, zone: str) -> Times:
    """The UTC times of wall clock times of a zone.

    As in Java, a time that occurs twice means the first of the two moments. A time that the clock skips is converted
    with the offset before the change.
    """
    fixed = _fixed_offset(zone)
    if fixed is not None:
        return times - fixed
    before, after = _offsets(times - _DAY - _DAY // 12, zone), _offsets(times + _DAY + _DAY // 12, zone)
    is_past_change = _offsets(times - before, zone) != before
    is_past_change &= _offsets(times - after, zone) == after
    result: Times = times - np.where(is_past_change, after, before)
    return result


def _to_wall_clock(moments: Times, zone: str) -> Times:
    fixed = _fixed_offset(zone)
    return moments + (_offsets(moments, zone) if fixed is None else fixed)


def _offsets(moments: Times, zone: str) -> Times:
    """Microseconds by which the clock of a zone is ahead of UTC at each moment."""
    late = moments >= _LATE
    if not late.any():
        return _known_offsets(moments, zone)
    offsets = np.empty_like(moments)
    offsets[~late] = _known_offsets(moments[~late], zone)
    offsets[late] = _late_offsets(moments[late], zone)
    return offsets


def _known_offsets(moments: Times, zone: str) -> Times:
    shown: Times = pc.local_timestamp(pa.array(moments, pa.timestamp("us", zone))).cast(pa.int64()).to_numpy()
    return shown - moments


def _late_offsets(moments: Times, zone: str) -> Times:
    """Offsets after 2037, for which Arrow knows no clock changes.

    Clock changes fall on quarters of an hour, and repeat every 400 years.
    """
    quarters, places = np.unique(_LATE + (moments - _LATE) % _CYCLE // _QUARTER * _QUARTER, return_inverse=True)
    info = ZoneInfo(zone)
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    shown = ((epoch + timedelta(microseconds=quarter)).astimezone(info).utcoffset() for quarter in quarters.tolist())
    found = [round(offset.total_seconds()) * _SECOND for offset in shown if offset is not None]
    return np.array(found, np.int64)[places]
