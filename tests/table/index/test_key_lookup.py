"""Whether a file may hold one of many keys: what is asked in few steps has the answer of asking key by key."""

import pyarrow as pa
import pytest

from table.files.bloom.bloom_filter import sized_filter
from table.files.bloom.encoded_filter import view_filter
from table.index.key_lookup import SoughtKeys


def keys_from(first, count):
    return pa.array([f"key-{number:06d}" for number in range(first, first + count)])


@pytest.mark.parametrize("fpp", [0.3, 1e-9])
@pytest.mark.parametrize("count", [1, 300, 20_000])
def test_a_filter_says_of_many_keys_what_it_says_of_each(fpp, count):
    held = sized_filter(500, fpp).added(keys_from(100_000, 500))
    for first in (0, 100_499, 50_000, 100_000 - count // 2):
        keys = keys_from(first, count)
        sought = SoughtKeys(keys)
        for bloom in (held, view_filter(held.encode().encode())):
            assert sought.any_may_be_in(bloom, 0, count) == held.may_contain(keys).any()
            half = count // 2
            assert sought.any_may_be_in(bloom, half, count) == held.may_contain(keys.slice(half)).any()
            assert not sought.any_may_be_in(bloom, half, half)


def test_a_single_key_among_strangers_is_enough():
    held = sized_filter(100, 1e-9).added(keys_from(0, 100))
    strangers = keys_from(500_000, 20_000).to_pylist()
    assert not SoughtKeys(pa.array(strangers)).any_may_be_in(held, 0, len(strangers))
    with_one = pa.array([*strangers, "key-000042"])
    assert SoughtKeys(with_one).any_may_be_in(held, 0, len(with_one))
