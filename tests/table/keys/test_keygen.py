from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiers import examples

from table.config.key_generator import KeyEncoding
from table.config.table_config import TableConfig
from table.errors import InvalidConfigError, SchemaMismatchError
from table.keys.arrow_keys import compute_record_keys
from table.keys.keygen import (
    ESCAPED_CHARACTERS,
    build_key_expressions,
    doubled_by,
    partition_path_problem,
    url_encode_text,
)
from table.keys.sql_text import quote_name, quote_text
from table.keys.time_partition import split_format

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
        (TableConfig("t", ("id",), ("p",), ("gone",)), "precombine.field=gone"),
    ],
)
def test_absent_columns_are_named(config, message):
    with pytest.raises(InvalidConfigError, match=message):
        build_key_expressions(config, SCHEMA)


def test_types_that_cannot_be_keys_are_named():
    with pytest.raises(SchemaMismatchError, match="'l' of type list"):
        build_key_expressions(TableConfig("t", ("l",)), pa.schema([("l", pa.list_(pa.int64()))]))


@pytest.mark.parametrize(
    ("version", "encoding", "said"),
    [
        (9, KeyEncoding.FIELD_PREFIXED, None),
        (9, KeyEncoding.VALUE_ONLY, "Hudi 1.1 and later put 'id:' before it in version 9"),
        (6, KeyEncoding.VALUE_ONLY, "Hudi 1.1 and later refuse such a table in version 6"),
        (6, KeyEncoding.FIELD_PREFIXED, "Hudi 0.14.1 to 1.0.2 store the value alone"),
        (6, None, None),
    ],
)
def test_who_would_double_a_table_with_a_complex_key_of_one_field(version, encoding, said):
    config = TableConfig("t", ("id",), ("p",), keygen_type="COMPLEX", version=version, key_encoding=encoding)
    found = doubled_by(config)
    assert found is None if said is None else said in found
    assert doubled_by(replace(config, record_key_fields=("id", "n"))) is None
    assert doubled_by(replace(config, keygen_type="SIMPLE")) is None


def test_the_name_of_one_field_stands_before_its_value_where_the_table_says_so():
    config = TableConfig("t", ("id",), ("p",), keygen_type="COMPLEX", key_encoding=KeyEncoding.FIELD_PREFIXED)
    keys = build_key_expressions(config, SCHEMA)
    assert (keys.key_column, "'id:'" in keys.record_key) == (None, True)
    found = compute_record_keys(keys.rules, pa.table({"id": ["k1", "", None]})).to_pylist()
    assert found == ["id:k1", None, None]
    plain = build_key_expressions(replace(config, key_encoding=KeyEncoding.VALUE_ONLY), SCHEMA)
    assert (plain.key_column, plain.record_key) == ("id", "`id`")
    assert build_key_expressions(replace(config, key_encoding=None), SCHEMA).key_column is None


@pytest.mark.parametrize(
    ("path", "problem"),
    [("", None), ("eu", None), ("2023/11/14", None), ("a/b:c", None), ("..", "empty part"), ("a/../b", "empty part"),
     ("/a", "empty part"), ("a//b", "empty part"), ("a/", "empty part"), (".hoodie", "metadata"), ("eu:1", "colon"),
     ("a\tb", "urlencode"), ("a/b\x7f", "control character"), (None, "no time")],
)  # fmt: skip
def test_paths_that_cannot_be_folders_of_the_table(path, problem):
    said = partition_path_problem(path)
    assert (said is None) if problem is None else (problem in said)


@pytest.mark.parametrize("form", ["yy", "yyyy-MMM", "hh", "E"])
def test_date_forms_that_are_not_supported_are_named(form):
    with pytest.raises(InvalidConfigError, match=form):
        split_format(form)


def test_quoting():
    assert quote_name("a`b") == "`a``b`"
    assert quote_text("it's \\") == "'it\\'s \\\\'"
    assert quote_text("${x}") == "'\\u0024{x}'"


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
    from streaming.plan.routes import hash_int

    numbers = [*range(-50, 50), 2**31 - 1, -(2**31)]
    frame = spark.createDataFrame([(number,) for number in numbers], "n int").selectExpr("n", "hash(n) AS h")
    assert {row.n: row.h for row in frame.collect()} == {number: hash_int(number) for number in numbers}


@pytest.mark.slow
@pytest.mark.spark
def test_any_text_is_escaped_alike_in_sql_and_in_python_and_can_be_read_back(spark):
    from urllib.parse import unquote

    config = TableConfig("t", ("id",), ("p",), url_encode=True)
    expression = build_key_expressions(config, SCHEMA).partition_path

    @given(
        st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1), min_size=20)
    )
    @settings(max_examples=8, deadline=None)
    def check(texts):
        frame = spark.createDataFrame(list(enumerate(texts)), "n int, p string")
        found = [row.path for row in frame.selectExpr("n", f"{expression} AS path").orderBy("n").collect()]
        assert found == [url_encode_text(text) for text in texts]
        assert [unquote(path) for path in found] == texts

    check()


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("${}:'\\\"`%_u024\n\0"))
VARIABLES = ["${x}", "${y}", "${env:HOME}", "$${x}", "\\u0024{x}", "\\${x}", "${spark.app.name}", "a'${x}'b", "\\"]


@pytest.mark.spark
def test_a_literal_is_the_text_whatever_its_characters(spark):
    from pyspark.sql import functions as F

    @given(st.lists(ANY_TEXT, min_size=1, max_size=40))
    @example(VARIABLES)
    @settings(max_examples=examples(25), deadline=None)
    def check(texts):
        row = spark.range(1).select(*[F.expr(quote_text(text)).alias(f"c{n}") for n, text in enumerate(texts)]).first()
        assert list(row) == texts

    check()


@pytest.mark.spark
def test_partition_paths_that_look_like_variables_are_found_in_literal_maps(spark):
    from pyspark.sql import functions as F

    from streaming.spark.workers import _look_up

    @given(st.lists(ANY_TEXT, min_size=1, max_size=40, unique=True))
    @example(VARIABLES)
    @settings(max_examples=10, deadline=None)
    def check(paths):
        frame = spark.createDataFrame(list(enumerate(paths)), "n int, p string")
        found = F.expr(_look_up({path: str(n) for n, path in enumerate(paths)}, "`p`", "-1"))
        assert all(row.n == row.found for row in frame.select("n", found.alias("found")).collect())

    check()


@pytest.mark.spark
def test_date_forms_with_dollars_and_braces_are_what_they_say(spark):
    timed = {
        "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
        "hoodie.keygen.timebased.input.dateformat": "yyyy'${x}'MM",
        "hoodie.keygen.timebased.output.dateformat": "'${y}'yyyy-MM",
    }
    config = TableConfig("t", ("id",), ("p",), keygen_type="TIMESTAMP")
    path = build_key_expressions(config, SCHEMA, settings=timed).partition_path
    frame = spark.createDataFrame([("1", "2026${x}03")], "id string, p string")
    assert frame.selectExpr(f"{path} AS path").first().path == "${y}2026-03"
