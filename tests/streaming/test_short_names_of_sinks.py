"""Short names of a sink: what they set, and what is said of one that does not exist."""

import pickle
from copy import copy

import pytest

from hudistream import ArrowSink, HudiRouter, HudiSink, InvalidConfigError

SINKS = [HudiSink, ArrowSink]


@pytest.mark.parametrize("sink", SINKS)
def test_bad_rows_and_schema_have_short_names(tmp_path, sink):
    made = pickle.loads(pickle.dumps(sink(str(tmp_path), key="id", bad_rows="quarantine", schema="strict")))
    assert (made._options.bad_rows.action, made._options.schema.mode) == ("quarantine", "strict")


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bad_rows": "quarantin"}, "did you mean quarantine"),
        ({"schema": "strikt"}, "did you mean strict"),
        ({"table_type": "moor"}, "did you mean mor"),
        ({"index": "blom"}, "did you mean bloom"),
    ],
)
def test_a_value_that_is_misspelled_names_the_near_one(tmp_path, sink, given, said):
    with pytest.raises(InvalidConfigError, match=said):
        sink(str(tmp_path), key="id", **given)


def test_a_short_name_and_an_option_that_differ_are_refused(tmp_path):
    with pytest.raises(InvalidConfigError, match="schema=strict and hudistream.schema.mode=reconcile"):
        ArrowSink(str(tmp_path), {"hudistream.schema.mode": "reconcile"}, key="id", schema="strict")


@pytest.mark.parametrize("sink", SINKS)
def test_a_parameter_that_does_not_exist_names_the_sink_and_the_near_one(tmp_path, sink):
    with pytest.raises(
        TypeError, match=rf"{sink.__name__}\(\) has no parameter 'partiton_by'; did you mean partition_by"
    ):
        sink(str(tmp_path), key="id", partiton_by="p")


def test_a_router_hands_them_to_its_tables(tmp_path):
    router = pickle.loads(
        pickle.dumps(HudiRouter(str(tmp_path), "kind", key="id", bad_rows="quarantine", schema="add"))
    )
    assert router._template.short_names["bad_rows"] == "quarantine"


@pytest.mark.parametrize("sink", SINKS)
def test_a_sink_without_a_path_is_named(sink, tmp_path):
    with pytest.raises(TypeError, match=rf"{sink.__name__}\(\) needs the path of a table"):
        sink()
    path = str(tmp_path / "t")
    assert repr(copy(sink(path=path, key="id"))) == repr(pickle.loads(pickle.dumps(sink(path, key="id"))))


def test_a_sink_given_to_foreach_says_foreach_batch(tmp_path):
    for sink in (HudiSink(tmp_path / "t", key="id"), HudiRouter(tmp_path, "name", key="id")):
        with pytest.raises(InvalidConfigError, match=rf"^a {type(sink).__name__} writes micro-batches.*foreachBatch"):
            sink(object())
