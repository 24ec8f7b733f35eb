"""Where a stream stands: read from Spark's files, compared, and written as Hudi's own streamer reads it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.errors import BatchOrderError
from table.transaction.checkpoint import (
    CommittedBatch,
    Verdict,
    already_committed,
    decode_checkpoints,
    encode_checkpoints,
    merge_checkpoints,
)
from table.transaction.positions import (
    STREAMER_KEY,
    STREAMER_KEY_8,
    canonical,
    continue_within,
    decode_initial_offsets,
    decode_offset_log,
    decode_streamer,
    encode_streamer,
    find_break,
    kafka_offsets,
    position_of,
)

LOG = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n{"t":{"1":7,"0":5}}\n-\n{"logOffset":3}'
OFFSETS = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9._-]{0,9}", fullmatch=True),
    st.dictionaries(st.integers(0, 999), st.integers(0, 2**62), min_size=1, max_size=5),
    min_size=1,
    max_size=3,
)


def at(**partitions):
    return position_of({"t": {int(name[1:]): offset for name, offset in partitions.items()}})


def test_an_offset_log_of_spark_is_read():
    assert decode_offset_log(LOG) == ('{"t":{"0":5,"1":7}}', None, '{"logOffset":3}')


@pytest.mark.parametrize("text", ["", "v2\n{}\n{}", "v1", "v1\n{}", "v1\n{}\nnonsense"])
def test_another_file_is_no_offset_log(text):
    with pytest.raises(ValueError, match=r"."):
        decode_offset_log(text)


@pytest.mark.parametrize("content", [b'\0v1\n{"t":{"1":7,"0":5}}', b'v1\n{"t": {"0": 5, "1": 7}}\n'])
def test_where_a_source_began_is_read_with_and_without_the_zero_byte(content):
    assert decode_initial_offsets(content) == at(p0=5, p1=7)


@pytest.mark.parametrize("content", [b"", b"\0", b"v1\n", b"v1\nnonsense", b"\0v3\n{}"])
def test_another_file_is_no_initial_offset(content):
    with pytest.raises(ValueError, match=r"."):
        decode_initial_offsets(content)


@given(OFFSETS)
def test_offsets_of_kafka_round_trip(offsets):
    assert kafka_offsets(position_of(offsets)) == offsets


@pytest.mark.parametrize(
    "position", [None, "5", "{}", '{"logOffset":3}', '{"t":{}}', '{"t":{"a":1}}', '{"t":{"0":"x"}}']
)
def test_what_is_no_position_of_kafka(position):
    assert kafka_offsets(position) is None


@pytest.mark.parametrize(
    ("end", "start", "told"),
    [
        ((at(p0=5, p1=7),), (at(p0=5, p1=7),), None),
        ((at(p0=5),), (at(p0=5, p1=0),), None),  # a partition that was added, read from its beginning
        ((at(p0=5),), (at(p0=5, p1=3),), "t-1: offsets 0 to 2 would be lost"),
        ((at(p0=5),), (at(p0=9),), "t-0: offsets 5 to 8 would be lost"),
        ((at(p0=5),), (at(p0=2),), "t-0: offsets 2 to 4 would be written a second time"),
        ((at(p0=5, p1=7),), (at(p0=5),), "t-1 is not read by this query"),
        ((at(p0=5),), (position_of({"u": {0: 5}}),), "t-0 is not read by this query"),
        ((at(p0=5), at(p0=1)), (at(p0=5),), "read 2 sources, and this one reads 1"),
        (('{"logOffset":3}',), ('{"logOffset":3}',), None),
        (('{"logOffset":3}',), ('{"logOffset":4}',), "source 0 ended at"),
        ((None,), (None,), None),
        ((None,), (at(p0=5),), "source 0 ended at None"),
    ],
)
def test_a_query_goes_on_exactly_where_the_other_ended_or_it_is_said_what_would_happen(end, start, told):
    found = find_break(end, start)
    assert (found is None) if told is None else (told in found)


@given(OFFSETS, st.data())
def test_no_offset_that_differs_is_passed_over(offsets, data):
    end = (position_of(offsets),)
    topic = data.draw(st.sampled_from(sorted(offsets)))
    number = data.draw(st.sampled_from(sorted(offsets[topic])))
    other = data.draw(st.integers(0, 2**62).filter(lambda found: found != offsets[topic][number]))
    start = (position_of({**offsets, topic: {**offsets[topic], number: other}}),)
    assert f"{topic}-{number}: offsets" in find_break(end, start)


@pytest.mark.parametrize(
    ("bounds", "outcome"),
    [
        ({"t": {0: (0, 9), 1: (7, 7)}}, at(p0=5, p1=7)),
        ({"t": {0: (5, 5), 1: (0, 9), 2: (0, 4)}}, at(p0=5, p1=7, p2=0)),
        ({"t": {0: (6, 9), 1: (0, 9)}}, "t-0: offsets 5 to 5 are lost"),
        ({"t": {0: (0, 9), 1: (0, 9), 2: (3, 4)}}, "t-2: offsets 0 to 2 are lost"),
        ({"t": {0: (0, 4), 1: (0, 9)}}, "t-0: the table has its rows up to offset 4, and the topic ends at 4"),
        ({"t": {0: (0, 9)}}, "t-1 is gone"),
        ({}, "the topic t is gone"),
    ],
)
def test_a_broker_has_the_rows_that_follow_or_it_is_said_which_are_lost(bounds, outcome):
    if outcome.startswith("{"):
        assert continue_within(at(p0=5, p1=7), bounds) == outcome
        return
    with pytest.raises(BatchOrderError) as error:
        continue_within(at(p0=5, p1=7), bounds)
    assert outcome in str(error.value)


def test_the_streamer_of_hudi_reads_where_we_are_and_we_where_it_is():
    positions = (at(p0=5, p10=7, p2=1),)
    assert encode_streamer(positions, 6) == {STREAMER_KEY: "t,0:5,2:1,10:7"}
    assert encode_streamer(positions, 9) == {STREAMER_KEY_8: "t,0:5,2:1,10:7"}
    for version in (6, 9):
        assert decode_streamer(encode_streamer(positions, version)) == positions


@pytest.mark.parametrize(
    "positions", [(), (None,), ("5",), (at(p0=5), at(p0=5)), (position_of({"t": {0: 1}, "u": {0: 1}}),)]
)
def test_what_the_streamer_has_no_words_for_is_left_out(positions):
    assert encode_streamer(positions, 6) == {}


@pytest.mark.parametrize("text", ["", "t", "20240101", "t,0", "t,0:x", "t,a:1", "/folder/file,0:1:2"])
def test_other_checkpoints_of_the_streamer_are_passed_over(text):
    assert decode_streamer({STREAMER_KEY: text}) == ()


def test_positions_and_epoch_travel_with_the_commits():
    known = {"s": CommittedBatch(3, "q", operation="UPSERT", positions=(at(p0=5), None), epoch=2)}
    assert decode_checkpoints(encode_checkpoints(known)) == known


def test_a_record_of_an_earlier_version_has_neither():
    entry = {"hudistream.checkpoint": json.dumps({"s": {"batch_id": 3, "query_id": "q"}})}
    assert decode_checkpoints(entry) == {"s": CommittedBatch(3, "q")}


def test_a_later_epoch_is_later_whatever_its_batch_id():
    old, new = CommittedBatch(57, "q"), CommittedBatch(0, "r", epoch=1)
    for commits in ([{"s": old}, {"s": new}], [{"s": new}, {"s": old}]):
        assert merge_checkpoints(commits) == {"s": new}


@pytest.mark.parametrize(
    ("last", "batch_id", "query_id", "start", "verdict"),
    [
        (CommittedBatch(57, "q", positions=(at(p0=5),)), 0, "r", (at(p0=5),), Verdict.CONTINUE),
        (CommittedBatch(57, "q", positions=(at(p0=5),)), 58, "r", (at(p0=5),), Verdict.CONTINUE),
        (CommittedBatch(57, "q", positions=(at(p0=5),)), 0, "r", (at(p0=4),), "written a second time"),
        (CommittedBatch(57, "q", positions=(at(p0=5),)), 58, "r", (at(p0=6),), "would be lost"),
        (CommittedBatch(57, "q", positions=(at(p0=5),)), 0, "r", None, "another query"),
        (CommittedBatch(57, "q"), 0, "r", (at(p0=5),), "another query"),
        (CommittedBatch(57, "q", positions=(at(p0=5),)), 57, "q", (at(p0=1),), Verdict.SKIP),
        (CommittedBatch(57, "q", positions=(at(p0=5),)), 58, "q", (at(p0=1),), Verdict.WRITE),
        (None, 0, "q", (at(p0=1),), Verdict.WRITE),
        # after a query went on, ids of different queries say nothing: the replaced query is not let in by its number
        (CommittedBatch(0, "r", positions=(at(p0=5),), epoch=1), 58, "q", None, "cannot be compared with batch 0"),
        (CommittedBatch(0, "r", epoch=1), 58, "q", None, "cannot be compared with batch 0"),
        (CommittedBatch(0, "r", epoch=1), 1, "r", None, Verdict.WRITE),
    ],
)
def test_another_query_is_let_in_by_its_positions_alone(last, batch_id, query_id, start, verdict):
    if isinstance(verdict, str):
        with pytest.raises(BatchOrderError, match=verdict):
            already_committed(last, batch_id, query_id, "s", lambda: start)
    else:
        assert already_committed(last, batch_id, query_id, "s", lambda: start) is verdict


@pytest.mark.parametrize(
    ("recorded", "planned", "batch_id", "verdict"),
    [
        ((at(p0=5),), (at(p0=5),), 57, Verdict.SKIP),
        ((at(p0=5),), (at(p0=5),), 58, Verdict.WRITE),
        ((at(p0=5),), (at(p0=9),), 57, "t-0: offsets 5 to 8 would be lost"),
        ((at(p0=5),), (at(p0=9),), 58, "t-0: offsets 5 to 8 would be lost"),  # an earlier version skipped batch 57
        ((at(p0=5),), (at(p0=3),), 57, "t-0: offsets 3 to 4 would be written a second time"),
        (("4",), ("7",), 57, "what comes after 4, up to 7, would be lost"),
        (("7",), ("4",), 57, "what comes after 4, up to 7, would be written a second time"),
        (('{"logOffset":2}',), ('{"logOffset":3}',), 57, 'the checkpoint has its end at {"logOffset":3}'),
        ((None,), (None,), 57, Verdict.SKIP),  # the source has sent nothing
        ((None, at(p0=5)), (None, at(p0=9)), 57, "offsets 5 to 8"),
        ((None,), (at(p0=9),), 57, "source 0 ended at None"),
        ((at(p0=5),), None, 57, Verdict.SKIP),  # the checkpoint does not tell
        ((), (at(p0=5),), 57, Verdict.SKIP),  # the commit does not
    ],
)
def test_a_batch_of_the_same_number_is_the_committed_one_if_it_ends_where_that_ended(
    recorded, planned, batch_id, verdict
):
    last, asked = CommittedBatch(57, "q", positions=recorded), []

    def load_end(number):
        asked.append(number)
        return planned

    if isinstance(verdict, str):
        with pytest.raises(BatchOrderError, match="has another batch of that number") as error:
            already_committed(last, batch_id, "q", "s", load_end=load_end)
        assert verdict in str(error.value)
        assert "hudistream rollback PATH INSTANT --force" in str(error.value)
    else:
        assert already_committed(last, batch_id, "q", "s", load_end=load_end) is verdict
    assert set(asked) <= {57}


def test_equal_positions_have_one_spelling():
    assert canonical('{"b": 1, "a": {"y":2,"x":1}}') == canonical('{"a":{"x":1,"y":2},"b":1}')
