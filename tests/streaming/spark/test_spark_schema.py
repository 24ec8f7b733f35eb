"""Types of Spark and Arrow: each that can be stored has one of the other, and the others are refused by name."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as T

from streaming.spark.schema import to_arrow_schema, to_spark_arrow, to_spark_ddl, to_spark_type
from table.errors import SchemaMismatchError

PLAIN = [
    (T.BooleanType(), pa.bool_()),
    (T.IntegerType(), pa.int32()),
    (T.LongType(), pa.int64()),
    (T.FloatType(), pa.float32()),
    (T.DoubleType(), pa.float64()),
    (T.StringType(), pa.string()),
    (T.BinaryType(), pa.binary()),
    (T.DateType(), pa.date32()),
    (T.TimestampType(), pa.timestamp("us", "UTC")),
    (T.DecimalType(10, 2), pa.decimal128(10, 2)),
    (T.DecimalType(38, 0), pa.decimal128(38, 0)),
]
SMALL = [(T.ByteType(), pa.int32()), (T.ShortType(), pa.int32())]


def struct_of(kinds):
    fields = [T.StructField(f"f{number}", kind, nullable) for number, (kind, nullable) in enumerate(kinds)]
    return T.StructType(fields)


TYPES = st.recursive(
    st.sampled_from([kind for kind, _ in PLAIN]),
    lambda inner: (
        st.builds(T.ArrayType, inner, st.booleans())
        | st.builds(T.MapType, st.just(T.StringType()), inner, st.booleans())
        | st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=3).map(struct_of)
    ),
    max_leaves=5,
)
SCHEMAS = st.lists(st.tuples(TYPES, st.booleans()), min_size=1, max_size=4).map(struct_of)


def arrow_of(kind, nullable=True):
    return to_arrow_schema(T.StructType([T.StructField("c", kind, nullable)])).field("c")


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize(("kind", "arrow"), PLAIN + SMALL, ids=str)
def test_each_type_that_can_be_stored_has_its_arrow_type(kind, arrow, nullable):
    assert arrow_of(kind, nullable) == pa.field("c", arrow, nullable)


def test_a_column_without_a_type_has_none_in_arrow():
    for nullable in (True, False):
        assert arrow_of(T.NullType(), nullable) == pa.field("c", pa.null())
        assert arrow_of(T.ArrayType(T.NullType(), nullable)).type == pa.list_(pa.field("element", pa.null()))
        made = arrow_of(T.MapType(T.StringType(), T.NullType(), nullable)).type
        assert made == pa.map_(pa.string(), pa.field("value", pa.null()))


@pytest.mark.parametrize("nullable", [True, False])
def test_within_a_column_nulls_are_allowed_where_spark_allows_them(nullable):
    element, value = pa.field("element", pa.int64(), nullable), pa.field("value", pa.int64(), nullable)
    inner = pa.struct([pa.field("f0", pa.int64(), nullable)])
    assert arrow_of(T.ArrayType(T.LongType(), nullable)).type.value_field == element
    assert arrow_of(T.MapType(T.StringType(), T.LongType(), nullable)).type.item_field == value
    assert arrow_of(struct_of([(T.LongType(), nullable)])).type == inner


@given(SCHEMAS)
@settings(deadline=None)
def test_the_name_of_each_type_is_the_one_that_spark_has_for_it(schema):
    for field, arrow in zip(schema, to_arrow_schema(schema), strict=True):
        plain = to_spark_type(arrow.type).replace("`", "").replace(", ", ",").replace(": ", ":")
        assert plain.lower().replace("timestamp_ltz", "timestamp") == field.dataType.simpleString()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (T.DayTimeIntervalType(), "interval day to second, which cannot be stored: cast it"),
        (T.TimestampNTZType(), "timestamp_ntz: Hudi has no timestamp without zone .* cast it to timestamp$"),
        (T.MapType(T.LongType(), T.LongType()), "map with keys of type long, which cannot be stored"),
        (T.MapType(struct_of([]), T.LongType()), r"map with keys of type \{.*, which cannot be stored"),
    ],
    ids=str,
)
def test_another_type_is_refused_with_its_column_also_where_it_lies_within_one(kind, said):
    within = struct_of([(T.ArrayType(kind), True)])
    for outer, column in [(kind, "c"), (T.ArrayType(kind), r"c\.element"), (within, r"c\.f0\.element")]:
        with pytest.raises(SchemaMismatchError, match=f"^the column '{column}' has the Spark type {said}"):
            arrow_of(outer)


def test_a_backtick_in_a_name_does_not_end_it():
    schema = pa.schema([("a`b", pa.struct([("c`", pa.int32())])), ("select", pa.timestamp("ms"))])
    assert to_spark_ddl(schema) == "`a``b` STRUCT<`c```: INT>, `select` TIMESTAMP_NTZ"


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", None])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_spark_takes_times_in_microseconds_of_utc_or_of_no_zone_at_any_depth(unit, zone):
    given, taken = pa.timestamp(unit, zone), pa.timestamp("us", "UTC" if zone else None)
    for wrap in (lambda t: t, pa.list_, lambda t: pa.map_(pa.string(), t), lambda t: pa.struct([("f", pa.list_(t))])):
        assert to_spark_arrow(pa.schema([("c", wrap(given))])).field("c").type == wrap(taken)


@given(SCHEMAS)
@settings(deadline=None)
def test_what_spark_takes_has_the_same_names_and_types_all_nullable_and_without_metadata(schema):
    arrow = to_arrow_schema(schema)
    marked = pa.schema([field.with_metadata({"PARQUET:field_id": "7"}) for field in arrow])
    taken = to_spark_arrow(marked)
    assert to_spark_ddl(taken) == to_spark_ddl(arrow)
    assert all(field.nullable and field.metadata is None for field in taken)
    assert to_spark_arrow(taken).equals(taken, check_metadata=True)
