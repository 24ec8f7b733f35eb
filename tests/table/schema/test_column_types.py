"""Types of columns as Hive and Spark name them."""

import json

import pyarrow as pa
import pytest

from table.schema.column_types import hive_type, spark_schema

UTC = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("kind", "hive", "spark"),
    [
        (pa.bool_(), "boolean", "boolean"),
        (pa.int8(), "int", "integer"),
        (pa.int32(), "int", "integer"),
        (pa.int64(), "bigint", "long"),
        (pa.float32(), "float", "float"),
        (pa.float64(), "double", "double"),
        (pa.string(), "string", "string"),
        (pa.dictionary(pa.int8(), pa.string()), "string", "string"),
        (pa.binary(), "binary", "binary"),
        (pa.binary(4), "binary", "binary"),
        (pa.date32(), "date", "date"),
        (pa.time64("us"), "bigint", "long"),
        (pa.time32("ms"), "int", "integer"),
        (pa.decimal128(20, 3), "decimal(20,3)", "decimal(20,3)"),
        (UTC, "bigint", "timestamp"),
        (pa.timestamp("us"), "bigint", "timestamp_ntz"),
        (
            pa.list_(pa.int32()),
            "array<int>",
            {"type": "array", "elementType": "integer", "containsNull": True},
        ),
        (
            pa.map_(pa.string(), UTC),
            "map<string,bigint>",
            {"type": "map", "keyType": "string", "valueType": "timestamp", "valueContainsNull": True},
        ),
        (
            pa.struct([pa.field("x", pa.int64(), nullable=False)]),
            "struct<x:bigint>",
            {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": False, "metadata": {}}]},
        ),
    ],
)
def test_each_type_has_a_name_in_both(kind, hive, spark):
    assert hive_type(kind) == hive
    [field] = json.loads(spark_schema(pa.schema([("c", kind)])))["fields"]
    assert field == {"name": "c", "type": spark, "nullable": True, "metadata": {}}


def test_instants_are_timestamps_at_any_depth_where_that_is_asked_for():
    kind = pa.struct([("a", pa.list_(UTC)), ("m", pa.map_(pa.string(), UTC))])
    assert hive_type(kind, timestamps=True) == "struct<a:array<timestamp>,m:map<string,timestamp>>"
