import pyarrow as pa
import pytest

from table.config import TableConfig
from table.errors import InvalidConfigError, SchemaMismatchError
from table.keygen import ESCAPED_CHARACTERS, build_key_expressions, quote_name, quote_text, url_encode_text

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("n", pa.int64()), ("x", pa.float64())])


def test_simple_keys():
    keys = build_key_expressions(TableConfig("t", ("id",), ("p",)), SCHEMA)
    assert keys.record_key == "`id`"
    assert keys.partition_path == "coalesce(nullif(`p`, ''), '__HIVE_DEFAULT_PARTITION__')"


def test_non_partitioned_and_numbers():
    keys = build_key_expressions(TableConfig("t", ("n",), keygen_type="NON_PARTITION"), SCHEMA)
    assert (keys.record_key, keys.partition_path) == ("CAST(`n` AS STRING)", "''")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (TableConfig("t", ("gone",)), "recordkey.field=gone"),
        (TableConfig("t", ("id",), ("gone",)), "partitionpath.field=gone"),
        (TableConfig("t", ("id",), ("p",), "gone"), "precombine.field=gone"),
    ],
)
def test_absent_columns_are_named(config, message):
    with pytest.raises(InvalidConfigError, match=message):
        build_key_expressions(config, SCHEMA)


def test_types_that_cannot_be_keys_yet_are_named():
    with pytest.raises(SchemaMismatchError, match="'x' of type double"):
        build_key_expressions(TableConfig("t", ("x",)), SCHEMA)


def test_quoting():
    assert quote_name("a`b") == "`a``b`"
    assert quote_text("it's \\") == "'it\\'s \\\\'"


@pytest.mark.spark
@pytest.mark.parametrize("hive_style", [False, True])
@pytest.mark.parametrize("url_encode", [False, True])
def test_partition_paths_as_spark_computes_them(spark, hive_style, url_encode):
    config = TableConfig("t", ("id",), ("p",), hive_style=hive_style, url_encode=url_encode)
    values = ["eu", "", None, "a b/c:d%", "ü+ é", *ESCAPED_CHARACTERS]
    frame = spark.createDataFrame([(str(n), value) for n, value in enumerate(values)], "id string, p string")
    expression = build_key_expressions(config, SCHEMA).partition_path
    found = [
        row.path for row in frame.selectExpr("id", f"{expression} AS path").orderBy(frame.id.cast("int")).collect()
    ]
    expected = [value or "__HIVE_DEFAULT_PARTITION__" for value in values]
    if url_encode:
        expected = [url_encode_text(value) for value in expected]
        assert expected[3] == "a b%2Fc%3Ad%25"  # as Hudi writes it
    assert found == [("p=" if hive_style else "") + value for value in expected]


@pytest.mark.spark
def test_hash_of_an_int_is_sparks(spark):
    from streaming.routes import hash_int

    numbers = [*range(-50, 50), 2**31 - 1, -(2**31)]
    frame = spark.createDataFrame([(number,) for number in numbers], "n int").selectExpr("n", "hash(n) AS h")
    assert {row.n: row.h for row in frame.collect()} == {number: hash_int(number) for number in numbers}
