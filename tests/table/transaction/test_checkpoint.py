import pytest

from table.errors import CommitConflictError
from table.transaction.checkpoint import (
    HUDI_KEY,
    CommittedBatch,
    Verdict,
    already_committed,
    decode_checkpoints,
    encode_checkpoints,
    merge_checkpoints,
    next_checkpoints,
)


@pytest.mark.parametrize(
    ("last", "batch_id", "query_id", "verdict"),
    [
        (None, 0, "q", Verdict.WRITE),
        (None, 17, "q", Verdict.WRITE),  # a stream that moves over from elsewhere
        (CommittedBatch(3, "q"), 4, "q", Verdict.WRITE),
        (CommittedBatch(3, "q"), 9, "q", Verdict.WRITE),
        (CommittedBatch(3, "q"), 3, "q", Verdict.SKIP),
        (CommittedBatch(3, "q"), 2, "q", "went back"),
        (CommittedBatch(3, "old"), 3, "new", "another query"),
        (CommittedBatch(3, "old"), 0, "new", "another query"),
        (CommittedBatch(3, "old"), 4, "new", Verdict.WRITE),
        (CommittedBatch(3, None), 3, None, Verdict.SKIP),  # called by hand, outside a stream
        (CommittedBatch(3, None), 3, "q", "another query"),
        (CommittedBatch(3, None, recorded=False), 3, "q", "not recorded"),  # Hudi's own sink
        (CommittedBatch(3, None, recorded=False), 3, None, "not recorded"),
        (CommittedBatch(3, None, recorded=False), 4, "q", Verdict.WRITE),
    ],
)
def test_never_a_silent_skip_never_a_silent_double(last, batch_id, query_id, verdict):
    if isinstance(verdict, str):
        with pytest.raises(CommitConflictError, match=verdict) as error:
            already_committed(last, batch_id, query_id, "s")
        assert "checkpoint.identifier" in str(error.value)
    else:
        assert already_committed(last, batch_id, query_id, "s") is verdict


def test_both_keys_round_trip_with_several_sinks():
    known = next_checkpoints({"other": CommittedBatch(7, None, recorded=False)}, "mine", CommittedBatch(3, "q"))
    extra = encode_checkpoints(known)
    assert extra[HUDI_KEY] == '{"other": "7", "mine": "3"}'
    assert decode_checkpoints(extra) == known


def test_hudis_own_sink_is_read():
    assert decode_checkpoints({HUDI_KEY: '{"query1":"2"}'}) == {"query1": CommittedBatch(2, None, recorded=False)}


def test_hudis_newer_batch_of_the_same_sink_wins():
    extra = {**encode_checkpoints({"s": CommittedBatch(1, "q")}), HUDI_KEY: '{"s":"5"}'}
    assert decode_checkpoints(extra)["s"] == CommittedBatch(5, None, recorded=False)


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"s": "x"}'])
def test_what_cannot_be_read_is_not_there(text):
    assert decode_checkpoints({HUDI_KEY: text}) == {}


def test_highest_batch_of_each_sink_over_all_commits():
    merged = merge_checkpoints(
        [{"a": CommittedBatch(5, "q")}, {"b": CommittedBatch(1, "r")}, {"a": CommittedBatch(3, "q")}]
    )
    assert merged == {"a": CommittedBatch(5, "q"), "b": CommittedBatch(1, "r")}
