"""Rows by position, where a column is larger than one array of Arrow can be."""

import numpy as np
import pyarrow as pa
import pytest

from table.columns.take import take_rows, take_values

MANY = 120  # of chunks that share their bytes: the column counts 2.4 GB, and takes 20 MB


@pytest.fixture(scope="module")
def large():
    size = 400_000
    text = pa.array([chr(97 + n % 26) * size for n in range(50)])
    return pa.table({"n": np.arange(MANY * 50), "v": pa.chunked_array([text] * MANY)})


@pytest.mark.parametrize(
    "positions",
    [[0, 5999], [5999, 0, 3000, 0], [], [7], list(range(5999, 0, -1500))],
    ids=str,
)
def test_rows_of_a_column_that_no_array_can_hold(large, positions):
    with pytest.raises(pa.ArrowInvalid):
        large.take(pa.array([0, 5999]))  # else this tests nothing
    found = take_rows(large, np.array(positions, np.int64))
    assert found.column("n").to_pylist() == positions
    assert [value[:1] for value in found.column("v").to_pylist()] == [chr(97 + n % 50 % 26) for n in positions]
    assert found.schema == large.schema


def test_values_that_are_larger_than_the_others(large, monkeypatch):
    from table.columns import take

    monkeypatch.setattr(take, "_PART_BYTES", 2**40)  # as where the average tells nothing of the largest values
    positions = np.array([5999, 0, 1])
    assert take_values(large.column("n"), positions).to_pylist() == [5999, 0, 1]
    assert take_rows(large, positions).column("n").to_pylist() == [5999, 0, 1]


def test_a_position_that_is_not_there_is_an_error():
    with pytest.raises(IndexError):
        take_rows(pa.table({"n": [1]}), np.array([1]))
