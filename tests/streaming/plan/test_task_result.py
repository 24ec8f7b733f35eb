"""Results of tasks add up in any grouping, and come back from their text as they were."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from streaming.plan.task_result import EXAMPLES, TaskResult, decode_result, sum_results
from table.index.key_lookup import LookupCounts
from table.timeline.metadata.commit import WriteStat
from table.view.file_group import base_file_of

COUNTS = st.integers(0, 2**40)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
TEXTS = st.lists(TEXT, max_size=4).map(tuple)
EXTRA = st.dictionaries(st.sampled_from(["baseFile", "logFiles", "logVersion"]), TEXT | COUNTS | st.lists(TEXT))
STATS = st.builds(
    WriteStat, TEXT, TEXT, TEXT, TEXT, st.none() | TEXT, *[COUNTS] * 7, create_ms=COUNTS, upsert_ms=COUNTS, extra=EXTRA
)
NAMES = st.integers(0, 2**60).map("{0:x}-0_1-2-3_{0:017d}.parquet".format)
LISTED = st.dictionaries(st.sampled_from(["", "p", "q"]), st.lists(st.tuples(NAMES, COUNTS), max_size=3)).map(
    lambda listed: {path: tuple(base_file_of(path, *file) for file in files) for path, files in listed.items()}
)
RESULTS = st.builds(
    TaskResult,
    stats=st.lists(STATS, max_size=2).map(tuple),
    footer_bytes=COUNTS,
    copied_bytes=COUNTS,
    reencoded=st.dictionaries(st.sampled_from(["schema", "codec"]), st.integers(1, 9)),
    listed=LISTED,
    bad_rows=COUNTS,
    examples=st.lists(TEXT, max_size=EXAMPLES).map(tuple),
    quarantined=TEXTS,
    query_id=st.none() | TEXT.filter(bool),
    job_group=st.none() | TEXT.filter(bool),
    lookup=st.builds(LookupCounts, *[COUNTS] * 6),
)


@given(RESULTS, st.floats(0, 1e9), st.floats(0, 1e9))
@settings(deadline=None)
def test_the_text_of_a_result_goes_back_to_the_same_result(result, spent_ms, update_ms):
    object.__setattr__(result.lookup, "spent_ms", spent_ms)
    object.__setattr__(result.lookup, "update_ms", update_ms)
    again = decode_result(result.encode())
    assert again == result
    assert (again.lookup.spent_ms, again.lookup.update_ms) == (spent_ms, update_ms)


def test_the_text_is_one_line_of_ascii_json():
    text = TaskResult(examples=("ü\n",), listed={"": ()}).encode()
    assert text.isascii()
    assert "\n" not in text
    assert json.loads(text)["listed"] == {"": []}


@given(RESULTS, RESULTS, RESULTS)
@settings(max_examples=examples(40), deadline=None)
def test_results_add_up_the_same_in_any_grouping(first, second, third):
    assert (first + second) + third == first + (second + third) == sum_results(iter([first, second, third]))


@given(RESULTS)
@settings(deadline=None)
def test_a_result_of_nothing_adds_nothing(result):
    assert TaskResult() + result == result == result + TaskResult()
    assert sum_results([]) == TaskResult()


@given(st.lists(RESULTS, max_size=4))
@settings(max_examples=examples(40), deadline=None)
def test_the_sum_has_every_file_and_counts_every_byte_and_row(results):
    total = sum_results(results)
    assert total.stats == tuple(stat for result in results for stat in result.stats)
    assert total.quarantined == tuple(name for result in results for name in result.quarantined)
    for name in ("footer_bytes", "copied_bytes", "bad_rows"):
        assert getattr(total, name) == sum(getattr(result, name) for result in results)
    assert total.lookup.keys == sum(result.lookup.keys for result in results)
    assert sum(total.reencoded.values()) == sum(sum(result.reencoded.values()) for result in results)


def test_of_many_examples_the_first_three_stay():
    assert (TaskResult(examples=("a", "b")) + TaskResult(examples=("c", "d"))).examples == ("a", "b", "c")


@pytest.mark.parametrize(("ids", "last"), [(["a", "b"], "b"), (["a", None], "a"), ([None, ""], None), ([], None)])
def test_the_query_is_the_last_one_that_a_task_knows(ids, last):
    assert sum_results(TaskResult(query_id=query_id) for query_id in ids).query_id == last


@pytest.mark.parametrize(
    ("result", "is_empty"),
    [
        (TaskResult(), True),
        (TaskResult(query_id="q"), True),
        (TaskResult(stats=(WriteStat("f", "p/f", "p"),)), False),
        (TaskResult(bad_rows=1), False),
        (TaskResult(lookup=LookupCounts(keys=1)), False),
        (TaskResult(listed={"p": ()}), False),
    ],
)
def test_a_result_with_a_file_a_bad_row_or_an_empty_listing_is_sent(result, is_empty):
    assert result.is_empty is is_empty
