"""Cursors into Avro records: they read what fastavro wrote, and no field ends behind its record."""

import io
from contextlib import suppress

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from table.files.log.avro_cursors import Cursors, gathered, padded

LONGS = st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)


def long_bytes(value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", value)
    return out.getvalue()


def cursors_over(*records):
    """A cursor at the beginning of each record; the records lie one behind the other."""
    ends = np.cumsum([len(record) for record in records], dtype=np.int64)
    starts = np.array([0, *ends[:-1]], np.int64)
    return Cursors(padded(memoryview(b"".join(records))), starts, ends)


@given(st.lists(st.tuples(LONGS, LONGS, st.binary(max_size=3)), min_size=1, max_size=9))
@settings(deadline=None)
def test_numbers_are_those_that_fastavro_wrote_and_the_cursors_stand_behind_them(records):
    cursors = cursors_over(*(long_bytes(first) + long_bytes(second) + rest for first, second, rest in records))
    assert cursors.longs().tolist() == [first for first, _, _ in records]
    assert cursors.longs().tolist() == [second for _, second, _ in records]
    assert (cursors.ends - cursors.at).tolist() == [len(rest) for _, _, rest in records]


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=5))
@settings(deadline=None)
def test_a_length_leads_to_the_bytes_behind_it(values):
    cursors = cursors_over(*(long_bytes(len(value)) + value for value in values))
    lengths = cursors.lengths()
    assert gathered(cursors.data, cursors.at, lengths).to_pylist() == values
    cursors.skip(lengths)
    assert (cursors.at == cursors.ends).all()


BEHIND, TOO_LONG = "a field ends behind its record", "a number has more than ten bytes"
TOO_GREAT = "a length is greater than the record"


@pytest.mark.parametrize(
    ("record", "read", "message"),
    [
        (b"", Cursors.longs, BEHIND),
        (b"\x80", Cursors.longs, BEHIND),
        (b"\xff" * 9, Cursors.longs, BEHIND),
        (b"\xff" * 10 + b"\x00", Cursors.longs, TOO_LONG),
        (long_bytes(-1), Cursors.lengths, TOO_GREAT),
        (long_bytes(2) + b"x", Cursors.lengths, TOO_GREAT),
        (long_bytes(2**63 - 1) + b"x", Cursors.lengths, TOO_GREAT),
        (b"abc", lambda cursors: cursors.fixed(4), BEHIND),
        (b"abc", lambda cursors: cursors.skip(np.array([0, 4, 0])[: len(cursors)]), BEHIND),
    ],
)
@pytest.mark.parametrize("behind", [[b"\x00" * 8], []], ids=["before another record", "at the end"])
def test_a_record_whose_field_ends_behind_it_is_refused(record, read, message, behind):
    with pytest.raises(ValueError, match=message):
        read(cursors_over(b"\x00" * 8, record, *behind))


@given(st.binary(max_size=24), st.lists(st.sampled_from([("longs",), ("lengths",), ("fixed", 3)]), max_size=4))
@settings(deadline=None)
def test_any_bytes_are_read_within_their_record_or_refused(data, fields):
    cursors, at = cursors_over(data), 0
    with suppress(ValueError):
        for name, *size in fields:
            found = getattr(cursors, name)(*size)
            assert at < cursors.at[0] <= len(data)
            assert not size or found.tobytes() == data[at : at + 3]
            at = int(cursors.at[0])


def test_reading_some_of_the_records_moves_no_other_cursor_and_no_array_of_the_caller():
    cursors = cursors_over(b"\x02abc", b"\x04def", b"\x06ghi")
    starts = cursors.at
    part = cursors.part(np.array([0, 2]))
    assert (part.longs().tolist(), part.fixed(2).tobytes(), len(part)) == ([1, 3], b"abgh", 2)
    assert cursors.longs().tolist() == [1, 2, 3]
    assert starts.tolist() == [0, 4, 8]


@given(st.lists(st.tuples(st.binary(max_size=3), st.binary(max_size=5)), max_size=8))
@settings(deadline=None)
def test_the_bytes_of_values_are_taken_from_between_others(pieces):
    ends = np.cumsum([len(gap) + len(value) for gap, value in pieces], dtype=np.int64)
    lengths = np.array([len(value) for _, value in pieces], np.int64)
    found = gathered(padded(memoryview(b"".join(gap + value for gap, value in pieces))), ends - lengths, lengths)
    found.validate(full=True)
    assert found.equals(pa.array([value for _, value in pieces], pa.binary()))


def test_values_of_more_than_two_gibibytes_are_refused():
    with pytest.raises(ValueError, match="the values of a column have more than 2 GiB"):
        gathered(padded(memoryview(b"")), np.array([5, 5 + 2**31]), np.array([0, 0]))
