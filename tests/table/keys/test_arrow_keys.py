"""Keys and partition paths over Arrow, text by text, against Spark SQL."""

import numpy as np
import pyarrow as pa
import pytest
from key_cases import CASES, ROWS, timed

from table.config.table_config import TableConfig, keygen_type_of
from table.keys.arrow_keys import compute_keys
from table.keys.arrow_times import format_times
from table.keys.keygen import build_key_expressions
from table.keys.time_partition import MOST, TimePartition


def expressions(case, schema):
    keygen, key, partition, options = case
    fields = tuple(partition.split(",")) if partition else ()
    config = TableConfig(
        "t",
        tuple(key.split(",")),
        tuple(field.split(":")[0] for field in fields),
        keygen_type=keygen_type_of(keygen),
        hive_style="hoodie.datasource.write.hive_style_partitioning" in options,
        url_encode="hoodie.datasource.write.partitionpath.urlencode" in options,
        extra=options,
    )
    kinds = tuple(field.split(":")[1].upper() for field in fields) if keygen.startswith("Custom") else ()
    return build_key_expressions(config, schema, kinds)


def agree(spark, folder, rows, cases):
    """Both spellings of every case, in one Spark action."""
    import pyarrow.parquet as pq
    from pyspark.sql import functions as F

    pq.write_table(rows, str(folder / "rows.parquet"))
    made = [expressions(case, rows.schema) for case in cases]
    columns = [
        F.expr(sql).alias(f"{what}{n}")
        for n, keys in enumerate(made)
        for what, sql in (("key", keys.record_key), ("path", keys.partition_path))
    ]
    read = spark.read.parquet(str(folder / "rows.parquet")).select("n", *columns).orderBy("n").collect()
    for number, keys in enumerate(made):
        record_keys, paths = compute_keys(keys.rules, rows)
        assert record_keys.type == paths.type == pa.string()
        assert record_keys.to_pylist() == [row[f"key{number}"] for row in read], cases[number]
        assert paths.to_pylist() == [row[f"path{number}"] for row in read], cases[number]


@pytest.mark.slow  # what Hudi makes of the same rows is compared in every run
@pytest.mark.spark
@pytest.mark.usefixtures("utc")
def test_every_kind_of_key_is_spelled_as_in_sql(spark, tmp_path):
    agree(spark, tmp_path, ROWS, CASES)


ZONES = ["Europe/Berlin", "Australia/Lord_Howe", "GMT+8:00"]
FORMS = ["yyyy/MM/dd", "yyyyMMddHHmmss", "yyyy-MM-dd'T'HH"]
# numbers that are times in one unit and none in another, around what each unit takes
FAR = [None, 0, 2**62, -(2**63), 2**63 - 1, 2**31 - 1, -(2**31)]
FAR += [sign * most + step for most in MOST.values() for sign in (1, -1) for step in (-1, 0, 1)]


def time_cases():
    time = "TimestampBasedKeyGenerator"
    for number, zone in enumerate(ZONES):
        form = FORMS[number % len(FORMS)]
        yield time, "u", "ms", timed(timestamp_type="EPOCHMILLISECONDS", output_dateformat=form, output_timezone=zone)
        unit = ["nanoseconds", "milliseconds", "hours"][number]
        yield (
            time,
            "u",
            "some",
            timed(timestamp_type="SCALAR", timestamp_scalar_time_unit=unit, output_dateformat=form, timezone=zone),
        )
        for unit in list(MOST)[number :: len(ZONES)]:
            scalar = {"timestamp_type": "SCALAR", "timestamp_scalar_time_unit": unit}
            yield time, "u", "far", timed(**scalar, output_dateformat=form, output_timezone=zone)
        for name, kind in (("far", "UNIX_TIMESTAMP"), ("real", "UNIX_TIMESTAMP"), ("far", "EPOCHMICROSECONDS")):
            yield time, "u", name, timed(timestamp_type=kind, output_dateformat=form, output_timezone=zone)
        yield (
            time,
            "u",
            "text",
            timed(
                timestamp_type="DATE_STRING",
                input_dateformat="yyyy-MM-dd HH:mm:ss,dd.MM.yyyy",
                input_timezone=zone,
                output_dateformat="yyyy-MM-dd HH:mm:ss",
                output_timezone=ZONES[(number + 1) % len(ZONES)],
            ),
        )


@pytest.mark.spark
@pytest.mark.usefixtures("utc")
def test_times_of_any_zone_make_the_same_paths_as_in_sql(spark, tmp_path):
    random = np.random.default_rng(7)
    count = 400
    # every hour around the changes of the clock, and moments anywhere between 1900 and 2100
    changes = [1710054000, 1711846800, 1729987200, 1730613600, 1712419200]
    seconds = np.concatenate(
        [
            np.array([change + 1800 * step for change in changes for step in range(-8, 9)]),
            random.integers(-2_200_000_000, 4_100_000_000, count),
        ]
    )
    shown = seconds.astype("datetime64[s]").astype(str)
    texts = [str(text).replace("T", " ") for text in shown]
    texts[:7] = [None, "", "31.02.2024", "29.02.2024", "2024-13-01 00:00:00", "2024-01-01", "29.02.2024\n"]
    rows = pa.table(
        {
            "n": np.arange(len(seconds)),
            "u": ["x"] * len(seconds),
            "ms": seconds * 1000 + 7,
            "some": pa.array([None, *(seconds[1:] // 977).tolist()], pa.int64()),
            "text": texts,
            "far": pa.array(FAR + [1700000000] * (len(seconds) - len(FAR)), pa.int64()),
            "real": [1e30, None, float("nan"), -1e30, 1.7e9] + [1700000000.5] * (len(seconds) - 5),
        }
    )
    agree(spark, tmp_path, rows, list(time_cases()))


@pytest.mark.pure
def test_decimals_are_spelled_as_java_spells_them():
    import decimal

    def texts(scale, *numbers):
        values = [decimal.Decimal(number).scaleb(-scale) for number in numbers]
        rows = pa.table({"d": pa.array([None, *values], pa.decimal128(20, scale))})
        rules = expressions(("SimpleKeyGenerator", "d", "", {}), rows.schema).rules
        return compute_keys(rules, rows)[0].to_pylist()[1:]

    assert texts(18, 0, 1, -1, 12, 1000) == ["0E-18", "1E-18", "-1E-18", "1.2E-17", "1.000E-15"]
    assert texts(7, 0, 1, -1, 12, 10**7) == ["0E-7", "1E-7", "-1E-7", "0.0000012", "1.0000000"]
    assert texts(6, 0, 1, 10**6) == ["0.000000", "0.000001", "1.000000"]


@pytest.mark.spark
def test_odd_values_are_spelled_as_in_sql(spark, tmp_path):
    import datetime as dt
    import decimal

    rows = pa.table(
        {
            "n": pa.array(range(8), pa.int64()),
            "s": ["", None, "a/b:c=%", "é\u00a0", "\u4e2d", ".", "a'b\\", " "],
            "d": [float("nan"), float("inf"), -float("inf"), 0.0, 1e-3, 9999999.999, 1e7, 4.9e-324],
            "f": pa.array([1.4e-45, 3.4028235e38, 0.001, 1e7, -1.5, None, 0.3, 16777216], pa.float32()),
            "date": [dt.date(1600, 1, 1), dt.date(9999, 12, 31), None, *[dt.date(2024, 2, day) for day in range(1, 6)]],
            "dec": pa.array([None, *map(decimal.Decimal, ("0", "1", "-1", "10", "0.0000001", "0.000001", "5"))],
                            pa.decimal128(20, 7)),
            "bin": [b"", None, *[bytes([value, 255 - value]) for value in range(6)]],
        }
    )  # fmt: skip
    several = ("ComplexKeyGenerator", "s,d,f,date,dec,bin", "s,d,f,date,dec,bin", {})
    single = [("SimpleKeyGenerator", name, name, {}) for name in ("s", "d", "f", "date", "dec", "bin")]
    agree(spark, tmp_path, rows, [several, *single])
    # a slice of a column has its own offsets
    sliced = rows.slice(3, 4)
    for case in (several, *single):
        whole, part = (compute_keys(expressions(case, rows.schema).rules, each) for each in (rows, sliced))
        assert [column.slice(3, 4).to_pylist() for column in whole] == [column.to_pylist() for column in part]


def test_dates_of_any_year_are_spelled_as_java_does():
    days = {
        -(2**31): "-5877641-06-23",
        -12_687_429: "-32768-12-31",
        -719_529: "-0001-12-31",
        0: "1970-01-01",
        2_932_897: "+10000-01-01",
        11_248_738: "+32768-01-01",
        2**31 - 1: "+5881580-07-11",
    }
    dates = pa.chunked_array([pa.array([*days, None], pa.int32()), pa.array([], pa.int32())]).cast(pa.date32())
    rules = expressions(("SimpleKeyGenerator", "d", "d", {}), pa.schema([("d", pa.date32())])).rules
    keys, paths = compute_keys(rules, pa.table({"d": dates}))
    assert keys.to_pylist() == [*days.values(), None]
    assert paths.to_pylist() == [*days.values(), "__HIVE_DEFAULT_PARTITION__"]


@pytest.mark.pure
@pytest.mark.parametrize("values", [[0, None, 2**62, -(2**63)], [0.5, None, 1e30, float("nan")]])
def test_a_number_beyond_the_range_of_times_makes_no_path(values):
    column = pa.chunked_array([pa.array(values)])
    assert format_times(TimePartition("UNIX_TIMESTAMP", "yyyy"), column).to_pylist() == ["1970", "1970", None, None]
