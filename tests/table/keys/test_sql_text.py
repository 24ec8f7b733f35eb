"""Names and texts in Spark SQL: what closes a quote, escapes or is replaced is written so that it is not."""

import pytest

from table.keys.sql_text import quote_name, quote_text


@pytest.mark.parametrize(("name", "quoted"), [("id", "`id`"), ("a`b", "`a``b`"), ("`", "````"), ("a.b", "`a.b`")])
def test_names(name, quoted):
    assert quote_name(name) == quoted


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("it", "'it'"),
        ("it's", r"'it\'s'"),
        ("a\\", r"'a\\'"),
        ("\\'", r"'\\\''"),
        ("${env:HOME}", r"'\u0024{env:HOME}'"),
    ],
)
def test_texts(text, quoted):
    assert quote_text(text) == quoted


def test_spark_reads_the_text_as_it_was(spark):
    texts = ["it's", "a\\", "\\'", "${env:HOME}", "a\nb", "`"]
    assert list(spark.sql("SELECT " + ", ".join(map(quote_text, texts))).first()) == texts


def test_spark_reads_the_name_as_it_was(spark):
    names = ["it's", "a\\", "a.b", "a\nb", "`", "$x"]
    assert spark.sql("SELECT " + ", ".join(f"1 AS {quote_name(name)}" for name in names)).columns == names
