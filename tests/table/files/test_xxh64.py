"""XXH64: the vectors that its authors publish, at all lengths that take another path, and names of locks as Hudi's."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from table.files.xxh64 import hash_of_address, xxh64

PRIME32 = 0x9E3779B1


def sanity_buffer(length):
    """The input of xxHash's own check (xsum_sanity_check.c)."""
    made, state = bytearray(), PRIME32
    for _ in range(length):
        made.append(state >> 56)
        state = state * 0x9E3779B185EBCA8D % 2**64
    return bytes(made)


@pytest.mark.parametrize(
    ("length", "of_seed_0", "of_prime32"),
    [
        (0, 0xEF46DB3751D8E999, 0xAC75FDA2929B17EF),
        (1, 0xE934A84ADB052768, 0x5014607643A9B4C3),
        (4, 0x9136A0DCA57457EE, 0xCAAB286BD8E9FDB5),
        (8, 0xCDBCF538E71D1348, 0xFE0C047A5353CDAC),
        (14, 0x8282DCC4994E35C8, 0xC3BD6BF63DEB6DF0),
        (32, 0x18B216492BB44B70, 0xB3F33BDF93ADE409),
        (33, 0x55C8DC3E578F5B59, 0xE92C292F64BC3071),
        (100, 0x4BFE019CD91D9EA4, 0x4853706DC9625CAE),
        (222, 0xB641AE8CB691C174, 0x20CB8AB7AE10C14A),
    ],
)
def test_the_hash_of_the_sanity_buffer_is_the_published_one_with_and_without_a_seed(length, of_seed_0, of_prime32):
    data = sanity_buffer(length)
    assert (xxh64(data), xxh64(data, PRIME32)) == (of_seed_0, of_prime32)


@given(st.binary(max_size=100), st.integers(0, 2**64 - 1), st.data())
def test_the_hash_has_64_bits_and_depends_on_each_byte_and_on_the_seed(data, seed, draw):
    at = draw.draw(st.integers(0, len(data)))
    hashed = xxh64(data, seed)
    assert 0 <= hashed < 2**64
    others = [(data[:at] + b"\0" + data[at:], seed), (data, seed ^ 1)]
    others += [(data[:at] + bytes([data[at] ^ 0x80]) + data[at + 1 :], seed)] if at < len(data) else []
    assert hashed not in [xxh64(*other) for other in others]


@pytest.mark.parametrize("scheme", ["s3", "s3a", "S3A"])
def test_the_name_of_a_lock_is_the_one_that_hudis_own_test_has(scheme):
    assert hash_of_address(f"{scheme}://my-bucket/my_lake/my_table") == "C0E15D0CE1AD11CC"


@given(st.text(max_size=40))
@example("/t23")  # its hash begins with a zero
def test_the_name_of_a_lock_has_16_digits_in_upper_case_whatever_the_address(address):
    assert re.fullmatch("[0-9A-F]{16}", hash_of_address(address))


@pytest.mark.parametrize("address", ["s3a:/b/t", "xs3a://b/t", "s3ab://b/t", "/s3a://b/t"])
def test_only_the_scheme_s3a_counts_as_s3(address):
    assert hash_of_address(address) != hash_of_address(address.replace("s3a", "s3", 1))
    assert int(hash_of_address(address), 16) == xxh64(address.encode(), 0xFFFFFFFFDABADABA)
