"""Random schemas and rows of every type, nested too, through the sink and back through Hudi's bundle and hudi-rs."""

import random

import pytest
from oracles import hudi_rs
from pyspark.sql import types as T
from values import rows_of, shown

from streaming import HudiSink, read_hudi
from table import SchemaMismatchError, read_table
from table.schema.avro_schema import META_COLUMNS

pytestmark = [pytest.mark.hudi, pytest.mark.spark, pytest.mark.usefixtures("utc")]

LEAVES = [
    T.BooleanType(), T.ByteType(), T.ShortType(), T.IntegerType(), T.LongType(), T.FloatType(), T.DoubleType(),
    T.StringType(), T.BinaryType(), T.DateType(), T.TimestampType(), T.DecimalType(5, 1), T.DecimalType(10, 0),
    T.DecimalType(20, 4), T.DecimalType(38, 18),
]  # fmt: skip


def random_type(rng, depth):
    kind = rng.random()
    if depth == 0 or kind < 0.5:
        return rng.choice(LEAVES)
    if kind < 0.67:
        return T.ArrayType(random_type(rng, depth - 1))
    if kind < 0.83:
        return T.MapType(T.StringType(), random_type(rng, depth - 1))
    return T.StructType([T.StructField(f"f{n}", random_type(rng, depth - 1)) for n in range(rng.randint(1, 3))])


def random_value(rng, kind, nullable=True):
    import datetime as dt
    import decimal

    if nullable and rng.random() < 0.2:
        return None
    if isinstance(kind, T.ArrayType):
        return [random_value(rng, kind.elementType) for _ in range(rng.randint(0, 3))]
    if isinstance(kind, T.MapType):
        return {f"k{n}": random_value(rng, kind.valueType) for n in range(rng.randint(0, 3))}
    if isinstance(kind, T.StructType):
        return tuple(random_value(rng, field.dataType) for field in kind.fields)
    if isinstance(kind, T.BooleanType):
        return rng.random() < 0.5
    if isinstance(kind, (T.ByteType, T.ShortType, T.IntegerType, T.LongType)):
        bits = {"byte": 7, "short": 15, "integer": 31, "long": 63}[kind.typeName()]
        return rng.choice([0, -1, 2**bits - 1, -(2**bits), rng.randint(-100, 100)])
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return float(rng.choice([0.0, -1.5, 1e10, 0.25, rng.randint(-99, 99)]))
    if isinstance(kind, T.StringType):
        return rng.choice(["", "a", "sträng", "日本", "😀", "x" * 50])
    if isinstance(kind, T.BinaryType):
        return bytearray(rng.choice([b"", b"\x00\xff", b"abc"]))
    if isinstance(kind, T.DateType):
        return dt.date(1970, 1, 1) + dt.timedelta(days=rng.randint(-20_000, 40_000))
    if isinstance(kind, T.TimestampType):
        return dt.datetime(2000, 2, 29, 12, 0, 0, rng.randint(0, 999_999), tzinfo=dt.timezone.utc)
    digits = rng.randint(0, 10**kind.precision - 1)
    return decimal.Decimal(rng.choice([-1, 1]) * digits).scaleb(-kind.scale, decimal.Context(prec=40))


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.slow) for seed in range(9)])
def test_random_schemas_and_rows_are_equal_in_every_reader(hudi, spark, tmp_path, seed):
    rng = random.Random(seed)
    columns = [T.StructField(f"c{n}", random_type(rng, 2)) for n in range(6)]
    schema = T.StructType([T.StructField("id", T.StringType()), T.StructField("p", T.StringType()), *columns])
    path = str(tmp_path / "t")
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.operation": "insert",
        "hoodie.datasource.write.partitionpath.field": "p",
    }
    sink = HudiSink(path, options)
    for batch in range(3):
        rows = [
            (f"{batch}-{n}", f"p{n % 2}", *(random_value(rng, column.dataType) for column in columns))
            for n in range(12)
        ]
        sink.write(spark.createDataFrame(rows, schema))
    ours = shown(rows_of(read_table(path)))
    assert len(ours) == 36
    assert ours == shown(hudi.read(path))
    if not any(isinstance(column.dataType, T.MapType) and nested(column.dataType.valueType) for column in columns):
        assert ours == shown(rows_of(hudi_rs.read(path)))
    assert read_hudi(spark, path).count() == 36
    # Hudi carries our rows over through its own readers and writers
    update = read_table(path).slice(0, 2)
    update = update.select([name for name in update.column_names if name not in META_COLUMNS])
    hudi.write(path, update, {**options, "hoodie.datasource.write.operation": "upsert", "hoodie.index.type": "BLOOM"})
    assert shown(hudi.read(path)) == ours
    sink.write(spark.createDataFrame(rows[:1], schema))
    assert len(hudi.read(path)) == 37


def nested(kind):
    return isinstance(kind, (T.StructType, T.ArrayType, T.MapType))


def test_dates_before_the_calendar_changed(hudi, spark, tmp_path):
    path = str(tmp_path / "t")
    rows = spark.sql("SELECT 'a' id, DATE'1000-01-01' d, TIMESTAMP'0900-01-01 00:00:00 UTC' t")
    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.operation": "insert"}
    HudiSink(path, options).write(rows)
    [ours] = rows_of(read_table(path))
    assert ours == {"id": "a", "d": "1000-01-01", "t": "0900-01-01T00:00:00.000000"}
    [theirs] = hudi.read(path)
    assert {key: theirs[key] for key in ours} == ours
    [row] = read_hudi(spark, path).collect()
    assert row.d.isoformat() == "1000-01-01"


def test_a_timestamp_without_zone_is_refused_because_hudi_cannot_store_it(spark, tmp_path):
    rows = spark.sql("SELECT 'a' id, TIMESTAMP_NTZ'2020-03-08 02:30:00' n")
    with pytest.raises(SchemaMismatchError, match="'n' has the Spark type timestamp_ntz"):
        HudiSink(str(tmp_path / "t"), {"hoodie.datasource.write.recordkey.field": "id"}).write(rows)


@pytest.mark.parametrize(
    ("column", "fits"),
    [("plain", True), ("_under", True), ("UPPER", True), ("a1", True), ("a b", False), ("a.b", False), ("1a", False),
     ("é", False), ("a-b", False)],
)  # fmt: skip
def test_column_names_that_need_care(hudi, spark, tmp_path, column, fits):
    path = str(tmp_path / "t")
    rows = spark.sql(f"SELECT 'a' id, 1L `{column}`")
    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.operation": "insert"}
    if not fits:
        with pytest.raises(SchemaMismatchError, match=column.replace(".", r"\.")):
            HudiSink(path, options).write(rows)
        return
    HudiSink(path, options).write(rows)
    [row] = hudi.read(path)
    assert row[column] == 1
    assert rows_of(hudi_rs.read(path)) == [{"id": "a", column: 1}]
