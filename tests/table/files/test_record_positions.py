"""Positions of log records in the base file, against Hudi's bytes and another writer of Roaring bitmaps."""

from base64 import b64decode

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyroaring import BitMap64

from table.files.log.framing import Header
from table.files.log.record_positions import RecordPositions, encode_positions
from table.schema.avro_schema import RECORD_KEY
from table.write.merge_bucket import Changes
from table.write.write_log import with_positions

BASE_FILE = "f0-0_1-2-3_20261122113938551.parquet"
ANYWHERE = st.integers(0, 2**40)
CLOSE = st.integers(0, 200_000)


def test_the_bytes_are_those_of_hudi():
    """The header of a block of the golden table v8_mor_logs."""
    header = RecordPositions("20261122113938551", np.array([1, 2])).header()
    assert header == {
        Header.RECORD_POSITIONS: "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAEAEAAAAAEAAgA=",
        Header.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: "20261122113938551",
    }


@given(st.sets(ANYWHERE | CLOSE, min_size=1, max_size=400))
@example(set(range(4096)))
@example(set(range(4097)))
@example(set(range(0, 200_000, 3)))
def test_another_reader_of_roaring_bitmaps_finds_the_positions(positions):
    rows = np.array(sorted(positions), np.int64)
    assert list(BitMap64.deserialize(encode_positions(rows))) == rows.tolist()


@given(st.sets(CLOSE, min_size=2, max_size=50), st.data())
def test_a_part_has_the_positions_of_its_records(positions, data):
    rows = np.array(sorted(positions), np.int64)
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)).filter(any)))
    part = RecordPositions("1", rows).part(chosen)
    found = BitMap64.deserialize(b64decode(part.header()[Header.RECORD_POSITIONS]))
    assert list(found) == [row for row, is_chosen in zip(rows.tolist(), chosen, strict=True) if is_chosen]


def changes(keys, rows, matches, removes=None):
    incoming = pa.table({RECORD_KEY: keys})
    removes = np.zeros(len(keys), np.bool_) if removes is None else np.array(removes)
    return Changes(incoming, np.array(rows, np.int64), np.array(matches, np.int64), removes)


def test_changes_are_put_into_the_order_of_their_rows():
    ordered, positions = with_positions(changes(["c", "a", "b"], [0, 4, 9], [1, 2, 0], [True, False, False]), BASE_FILE)
    assert ordered.incoming.column(RECORD_KEY).to_pylist() == ["a", "b", "c"]
    assert ordered.removes.tolist() == [False, False, True]
    assert (positions.base_instant_time, positions.rows.tolist()) == ("20261122113938551", [0, 4, 9])


@pytest.mark.parametrize(
    ("found", "base_file"),
    [
        (changes(["a", "b"], [], []), BASE_FILE),
        (changes(["a", "b"], [0], [1]), BASE_FILE),
        (changes(["a", "b"], [0, 1], [0, 0]), BASE_FILE),
        (changes(["a", "b"], [0, 1, 2], [0, 1, 1]), BASE_FILE),
        (changes(["a", "b"], [0, 1], [0, 1]), None),
    ],
    ids=["not looked up", "one is not there", "one key twice, one not", "a key twice", "no base file"],
)
def test_positions_are_told_only_if_each_record_changes_one_row(found, base_file):
    assert with_positions(found, base_file) == (found, None)
