"""The text in a lock file: written and read; other engines' files; files of later versions."""

import json

import pytest

from table.transaction.locks.lock_info import LockInfo, decode_lock_info, describe_lock_info, is_expired

INFO = LockInfo("2026-01-01", "main", "me", 17, "0.9", "here")


def test_what_is_written_is_read():
    assert decode_lock_info(INFO.encode()) == INFO
    assert describe_lock_info(INFO.encode()) == "process 17, main, hudistream 0.9 (owner me)"


def test_a_later_version_may_say_more():
    assert decode_lock_info(json.dumps({**json.loads(INFO.encode()), "colour": "red"}).encode()) == INFO


def test_an_older_version_named_no_machine():
    known = {name: value for name, value in json.loads(INFO.encode()).items() if name != "machine"}
    assert decode_lock_info(json.dumps(known).encode()).machine == ""


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "a writer of another engine (the file names no writer)"),
        (b" \n", "a writer of another engine (the file names no writer)"),
        (b"12", "a writer whose file says b'12'"),
        (b"{}", "a writer whose file says b'{}'"),
        (b'{"process": "x"}', 'a writer whose file says b\'{"process": "x"}\''),
        (INFO.encode().replace(b"17", b'"17"'), "a writer whose file says"),
    ],
)
def test_files_of_another_make(data, said):
    assert decode_lock_info(data) is None
    assert describe_lock_info(data).startswith(said)


@pytest.mark.parametrize(
    ("modified_ms", "expiry_ms", "now_ms", "expected"),
    [(0, 0, 10**12, False), (100, 50, 150, False), (100, 50, 151, True), (200, 50, 100, False)],
)
def test_when_a_lock_counts_as_left_behind(modified_ms, expiry_ms, now_ms, expected):
    assert is_expired(modified_ms, expiry_ms, now_ms) is expected
