"""Options of the format hudistream."""

import pytest

from pyspark_hudistream.source_options import SourceOptions, parse_source_options
from table import InvalidConfigError
from table.options.read_options import QueryType, ReadOptions


def parse(**options):
    return parse_source_options({"path": "/lake/t", **options})


def test_text_becomes_what_is_read():
    assert parse() == SourceOptions("/lake/t")
    assert parse(columns="id, day").columns == ("id", "day")
    assert parse(columns='["a,b"]').columns == ("a,b",)
    assert parse(where='[["day", "=", "2026-01-02"], ["ts", ">", 5]]').where == [
        ("day", "=", "2026-01-02"),
        ("ts", ">", 5),
    ]
    assert parse(where='[[["a", "in", [1]]], [["b", "=", 2]]]').where == [[("a", "in", [1])], [("b", "=", 2)]]
    assert parse(storage_options='{"key": "k"}').storage_options == {"key": "k"}
    assert parse(since="20260101000000").read == ReadOptions(QueryType.INCREMENTAL, since="20260101000000")
    limited = parse(max_instants_per_batch="3", starting_offset="latest")
    assert (limited.max_instants, limited.is_limited, limited.read.start) == (3, True, "latest")


def test_spark_hands_keys_over_in_lower_case():
    given = {"path": "/lake/t", "hoodie.datasource.streaming.startoffset": "latest"}
    assert parse_source_options(given).read.start == "latest"
    assert parse_source_options(given).of_streams == ("hoodie.datasource.streaming.startOffset",)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"path": " "}, "no path"),
        ({"colums": "id"}, "did you mean columns"),
        ({"columns": ","}, "columns is empty"),
        ({"columns": "[1]"}, "JSON list of names"),
        ({"where": "day = 3"}, "is no JSON"),
        ({"where": '["day", "=", 3]'}, "JSON list of terms"),
        ({"where": "[]"}, "JSON list of terms"),
        ({"max_instants_per_batch": "0"}, "max_instants_per_batch=0"),
        ({"max_bytes_per_batch": "many"}, "max_bytes_per_batch=many"),
        ({"pushdown": "true"}, "use where"),
        ({"columns": "id,ts,id"}, "names id more than once"),
        ({"columns": "[]"}, "columns is empty"),
        ({"as_of": "1", "since": "1"}, "set it to incremental|give until="),
        ({"hoodie.datasource.query.type": "cdc"}, "query type"),
    ],
)
def test_what_does_not_fit_is_named(options, said):
    with pytest.raises(InvalidConfigError, match=said):
        parse(**options)


def test_secrets_are_in_no_message_and_no_representation():
    with pytest.raises(InvalidConfigError) as raised:
        parse(storage_options='{"secret": "hush"')
    assert "hush" not in str(raised.value)
    assert "hush" not in repr(parse(storage_options='{"secret": "hush"}'))


@pytest.mark.parametrize("options", [{"starting_offset": "latest"}, {"max_bytes_per_batch": "1"}])
def test_a_batch_takes_no_option_of_streams(options):
    with pytest.raises(InvalidConfigError, match=next(iter(options))):
        parse(**options).check_for_batch()


@pytest.mark.parametrize(
    "options", [{"as_of": "2026-01-01"}, {"since": "1"}, {"hoodie.datasource.query.type": "read_optimized"}]
)
def test_a_stream_takes_no_time_but_its_start(options):
    with pytest.raises(InvalidConfigError, match="starting_offset|not for streams"):
        parse(**options).check_for_stream()
    parse(starting_offset="2026-01-01").check_for_stream()
