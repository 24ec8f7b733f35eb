"""Rows with a column of every type that a key may be made of, and ways to make keys of them."""

import datetime as dt
import decimal

import pyarrow as pa

D = decimal.Decimal
ROWS = pa.table(
    {
        "n": pa.array([0, 1, 2], pa.int64()),
        "s": ["a", None, ""],
        "u": ["x", "y z", "é,:"],
        "i": pa.array([1, -2, 2147483647], pa.int32()),
        "l": pa.array([1, -2, 9007199254740993], pa.int64()),
        "b": [True, False, True],
        "f": pa.array([1.0, 0.1, 1e10], pa.float32()),
        "d": [1e7, 1e-5, -0.0],
        "d2": [1e21, 4.9e-324, 123456789.125],
        "dec": pa.array([D("1.50"), D("-0.01"), D("0.00")], pa.decimal128(10, 2)),
        "dec18": pa.array([D("1E-18"), D("0"), D("123.5")], pa.decimal128(38, 18)),
        "date": [dt.date(2020, 1, 2), dt.date(1969, 12, 31), dt.date(1999, 1, 1)],
        "time": pa.array([1577836800123456, -1, 0], pa.timestamp("us", "UTC")),
        "bin": [b"abc", b"\x00\xff", b"z"],
        "ms": pa.array([1700000000000, 1, 86400000 * 365], pa.int64()),
        "sec": pa.array([1700000000, None, -86401], pa.int64()),
        "text": ["2023-11-14", "2024-02-29 10:11", "2020-01-01"],
        "st": [{"a": "q", "b": {"c": 1}}, {"a": "r", "b": {"c": 2}}, {"a": "s", "b": {"c": 3}}],
        "ts": pa.array([1, 1, 1], pa.int64()),
    }
)
SIMPLE, COMPLEX, NONE = "SimpleKeyGenerator", "ComplexKeyGenerator", "NonpartitionedKeyGenerator"
TIME, CUSTOM = "TimestampBasedKeyGenerator", "CustomKeyGenerator"
TYPES = ("i", "l", "b", "f", "d", "d2", "dec", "dec18", "date", "time", "bin")


def timed(**settings):
    return {f"hoodie.keygen.timebased.{name.replace('_', '.')}": value for name, value in settings.items()}


HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODE = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
CASES = [
    (COMPLEX, ",".join(("u", *TYPES)), "i", {}),
    (COMPLEX, "u", ",".join(TYPES), {}),
    (COMPLEX, "u", ",".join(TYPES), {**HIVE, **ENCODE}),
    (SIMPLE, "time", "dec18", {}),
    (SIMPLE, "d2", "u", ENCODE),
    (SIMPLE, "dec", "date", HIVE),
    (COMPLEX, "u", "i", {}),
    (COMPLEX, "s,u", "s,i", {}),
    (COMPLEX, "s,u", "s,i", HIVE),
    (COMPLEX, "s,u", "", {}),
    (NONE, "s,u", "", {}),
    (SIMPLE, "st.a", "st.b.c", HIVE),
    (COMPLEX, "st.a,u", "st.b.c,i", {}),
    (TIME, "u", "ms", timed(timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy/MM/dd")),
    (
        TIME,
        "u",
        "ms",
        timed(timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy-MM-dd HH", timezone="GMT+8:00"),
    ),
    (TIME, "u", "ms", {**timed(timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy/MM/dd"), **HIVE, **ENCODE}),
    (
        TIME,
        "u",
        "sec",
        timed(timestamp_type="UNIX_TIMESTAMP", output_dateformat="yyyyMMddHHmmss", output_timezone="America/New_York"),
    ),
    (
        TIME,
        "u",
        "i",
        timed(timestamp_type="SCALAR", timestamp_scalar_time_unit="hours", output_dateformat="yyyy-MM-dd'T'HH"),
    ),
    (
        TIME,
        "u",
        "text",
        timed(
            timestamp_type="DATE_STRING", input_dateformat="yyyy-MM-dd,yyyy-MM-dd HH:mm", output_dateformat="yyyy/MM"
        ),
    ),
    (TIME, "u", "time", timed(timestamp_type="EPOCHMICROSECONDS", output_dateformat="yyyy-MM-dd")),
    (TIME, "u", "date", timed(timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy-MM-dd")),
    (CUSTOM, "u", "i:simple,ms:timestamp", timed(timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy/MM/dd")),
    (CUSTOM, "u,n", "i:SIMPLE", {}),
]
