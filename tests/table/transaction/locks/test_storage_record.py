"""The storage-based lock as a value: its text, and who may take it when."""

import pytest

from table.errors import StorageError
from table.transaction.locks.storage_record import LockRecord, decode_record, free_from_ms, is_trusted

HELD = LockRecord(expired=False, valid_until_ms=10_000, owner="them")


def test_it_is_written_as_hudi_writes_it():
    record = LockRecord(expired=False, valid_until_ms=1795343212345, owner="0f3a")
    assert record.encode() == b'{"expired":false,"validUntil":1795343212345,"owner":"0f3a"}'
    assert record.released().encode() == b'{"expired":true,"validUntil":1795343212345,"owner":"0f3a"}'
    assert decode_record(record.encode()) == record


def test_fields_that_are_not_known_are_passed_over():
    text = b'{"owner":"o", "validUntil":5, "added":[1], "expired":true}'
    assert decode_record(text) == LockRecord(expired=True, valid_until_ms=5, owner="o")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"null",
        b'{"expired":false,"validUntil":5}',
        b'{"expired":"false","validUntil":5,"owner":"o"}',
        b'{"expired":false,"validUntil":true,"owner":"o"}',
        b'{"expired":false,"validUntil":5.5,"owner":"o"}',
        b'{"expired":false,"validUntil":null,"owner":"o"}',
        b'{"expired":false,"validUntil":5,"owner":null}',
        b"\xff",
    ],
)
def test_what_is_no_record_is_said_with_the_way_out(text):
    with pytest.raises(StorageError, match="hudistream lock break"):
        decode_record(text)


@pytest.mark.parametrize(
    ("record", "me", "now_ms", "free"),
    [
        (None, "me", 0, True),
        (HELD, "me", 0, False),
        (HELD, "me", 10_000, False),
        (HELD, "me", 10_500, False),  # a clock half a second behind shows 10,000
        (HELD, "me", 10_501, True),
        (HELD.released(), "me", 0, True),
        (HELD, "them", 0, True),  # left behind by an answer that was lost
    ],
)
def test_who_may_take_it_and_when(record, me, now_ms, free):
    assert (free_from_ms(record, me) <= now_ms) is free


@pytest.mark.parametrize(("now_ms", "trusted"), [(0, True), (9_499, True), (9_500, False), (10_000, False)])
def test_until_when_its_owner_relies_on_it(now_ms, trusted):
    assert is_trusted(10_000, now_ms) is trusted


def test_nobody_takes_what_somebody_relies_on_while_clocks_differ_by_no_more_than_hudis_bound():
    for behind_ms in range(-500, 501, 50):
        for now_ms in range(8_000, 12_000, 7):
            taken = free_from_ms(HELD, "me") <= now_ms + behind_ms
            assert not (taken and is_trusted(HELD.valid_until_ms, now_ms))
