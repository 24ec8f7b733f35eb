"""Keys hashed by columns: each key gets its own hash, however the column is cut, typed or ordered."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from table.files.bloom.key_hashes import hash_keys, hash_rounds, same_length_blocks, screen_hashes

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
ABC = [1775488903, 1492699528, 1540251996, 1289704357]  # of "abc": printed by Hudi 1.0.2, without their signs


@given(st.lists(TEXTS, max_size=30), st.integers(0, 5), st.integers(0, 5))
@settings(deadline=None)
def test_each_key_is_in_one_block_with_its_bytes(keys, first, last):
    part = pa.array(keys, pa.string()).slice(first, max(0, len(keys) - first - last))
    found = [
        (at, bytes(row)) for places, block in same_length_blocks(part) for at, row in zip(places, block, strict=True)
    ]
    assert sorted(found) == list(enumerate(key.encode() for key in part.to_pylist()))


@pytest.mark.parametrize("between", ["", "longer {}"], ids=["side by side", "with others between them"])
def test_a_large_column_is_hashed_block_by_block_and_every_key_gets_its_own_hashes(between):
    texts = [text for n in range(20_000) for text in (f"{n:05}", between.format(n)) if text]
    keys = pa.array(texts)
    assert max(len(places) for places, _ in same_length_blocks(keys)) < 20_000
    found = screen_hashes(keys)
    assert found[:, :200].tolist() == screen_hashes(keys.slice(0, 200)).tolist()
    assert found[:, -200:].tolist() == screen_hashes(keys.slice(len(keys) - 200)).tolist()
    assert len(np.unique(found, axis=1).T) == len(keys)


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_the_type_of_a_text_does_not_change_its_hashes(kind):
    keys = pa.array(["x", "abc", "é", ""])
    assert screen_hashes(keys)[:, 1].tolist() == ABC
    assert (screen_hashes(keys.cast(kind)) == screen_hashes(keys)).all()


@given(st.lists(TEXTS, min_size=1, max_size=4), st.integers(1, 30))
@settings(deadline=None)
def test_few_keys_have_the_hashes_that_they_have_among_many(keys, rounds):
    def hashes(texts):
        found = {}
        for places, values in hash_rounds(pa.array(texts, pa.string()), rounds):
            found |= {texts[at]: [int(each[row]) for each in values] for row, at in enumerate(places)}
        return found

    assert hashes(keys) == hashes(keys * 20)


# their hash is -2147483648, which has no opposite in 32 bits
@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.parametrize("key", ["aem0uqmk", "arb2zbyp"])
def test_the_least_hash_counts_as_its_absolute_value(key, count):
    [(_, [values])] = hash_rounds(pa.array([key] * count), 1)
    assert values.tolist() == [2**31] * count


def test_keys_that_are_null_are_refused():
    with pytest.raises(ValueError, match="record keys cannot be null"):
        list(hash_rounds(pa.array(["a", None]), 1))
    assert list(hash_rounds(pa.array([], pa.string()), 1)) == []


@given(st.lists(st.lists(st.none() | TEXTS, max_size=6), max_size=4))
@settings(deadline=None)
def test_the_number_of_a_key_depends_on_its_text_alone_and_null_counts_as_empty(chunks):
    numbers = hash_keys(pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks], pa.string()))
    texts = [text or "" for chunk in chunks for text in chunk]
    assert numbers.tolist() == [hash_keys(pa.chunked_array([[text]]))[0] for text in texts]
    assert numbers.dtype == np.int64
    assert (numbers >= 0).all()
    assert hash_keys(pa.chunked_array([["x", "abc"]]))[1] == ABC[0]
