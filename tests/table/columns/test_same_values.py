"""The same bit by bit: zeros of two signs differ, NaNs are the same, at any depth."""

import pyarrow as pa
import pytest

from table.columns.same_values import same_column

NAN = float("nan")
PAIR = pa.struct([("a", pa.float64()), ("b", pa.string())])


@pytest.mark.parametrize(
    ("kind", "first", "second", "expected"),
    [
        (pa.int64(), [1, None], [1, None], True),
        (pa.int64(), [1, None], [1, 0], False),
        (pa.float64(), [0.0], [-0.0], False),
        (pa.float32(), [NAN, None], [NAN, None], True),
        (pa.float64(), [None], [0.0], False),
        (pa.float64(), [1.0], [1.0, 1.0], False),
        (pa.list_(pa.float64()), [[0.0], []], [[0.0], []], True),
        (pa.list_(pa.float64()), [[0.0], []], [[], [0.0]], False),
        (pa.list_(pa.float64()), [[NAN]], [[NAN]], True),
        (PAIR, [{"a": 0.0, "b": "x"}], [{"a": -0.0, "b": "x"}], False),
        (PAIR, [{"a": NAN, "b": "x"}], [{"a": NAN, "b": "x"}], True),
        (PAIR, [{"a": NAN, "b": "x"}], [{"a": NAN, "b": "y"}], False),
        (pa.map_(pa.string(), pa.float64()), [[("k", 0.0)]], [[("k", -0.0)]], False),
        (pa.map_(pa.string(), pa.float64()), [[("k", NAN)]], [[("k", NAN)]], True),
    ],
)
def test_values(kind, first, second, expected):
    columns = [pa.chunked_array([pa.array(values, kind)]) for values in (first, second)]
    assert same_column(*columns) is expected


def test_chunks_and_dictionaries_do_not_matter():
    plain = pa.chunked_array([["a"], ["b", "a"]])
    assert same_column(plain.dictionary_encode(), pa.chunked_array([["a", "b", "a"]]).dictionary_encode())
    assert not same_column(plain, pa.chunked_array([["a", "a", "b"]]))
