"""The bucket index: hashes as Java computes them, which parts of a key are hashed, and ids of buckets' file groups."""

import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from table.index.bucket import are_buckets, bucket_file_id, bucket_numbers, bucket_of_file_id, hashed_parts

CHARACTERS = st.characters(exclude_categories=["Cs"]) | st.sampled_from(",:")
KEYS = st.text(CHARACTERS, max_size=6)
FIELDS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=2, unique=True)
WITHOUT_COMMA = st.text(CHARACTERS.filter(",".__ne__), max_size=3)
WITHOUT_COLON = st.text(CHARACTERS.filter(":".__ne__), max_size=3)
ALL = 2**31  # as many buckets as there are hashes: the bucket is the hash


def java_hash(texts):
    """Java's List.hashCode & Integer.MAX_VALUE, of strings and nulls."""
    total = 1
    for text in texts:
        h = 0
        for (unit,) in struct.iter_unpack(">H", (text or "").encode("utf-16-be")):
            h = h * 31 + unit
        total = total * 31 + h
    return total & 0x7FFFFFFF


@pytest.mark.parametrize(
    ("key", "fields", "hashed"),
    [
        ("", ["id"], 31),
        ("k1", ["id"], 31 + 107 * 31 + 49),
        ("hello", ["id"], 31 + 99162322),
        ("polygenelubricants", ["id"], 31),  # its hash is the least int: a sign is masked, and not negated
        ("é", ["id"], 31 + 233),
        ("\U0001f600", ["id"], 31 + 0xD83D * 31 + 0xDE00),  # two units of UTF-16
        ("a:1", ["a"], 31 + (97 * 31 + 58) * 31 + 49),  # one pair is hashed as a whole
        ("a:1,b:2", ["a"], 31 + 49),
        ("a:1,b:2", ["b"], 31 + 50),
        ("a:1,b:2", ["b", "a"], (31 + 49) * 31 + 50),  # in the order of the key
        ("a:__null__,b:__empty__", ["a", "b"], 31 * 31),
    ],
)
def test_the_hash_of_a_key_is_that_of_a_list_in_java(key, fields, hashed):
    assert bucket_numbers(pa.array([key]), ALL, fields).tolist() == [hashed]


@given(st.lists(KEYS, max_size=8), FIELDS, st.integers(1, 1000), st.integers(0, 2))
@settings(deadline=None)
def test_each_key_has_the_bucket_of_its_hashed_parts_whatever_stands_beside_it(keys, fields, buckets, skipped):
    array = pa.array(["é", "x:1,y"][:skipped] + keys, pa.string()).slice(min(skipped, 2))
    expected = [java_hash(hashed_parts(key, fields)) % buckets for key in keys]
    assert bucket_numbers(array, buckets, fields).tolist() == expected


@given(st.lists(st.none() | st.builds(str.__add__, WITHOUT_COMMA, WITHOUT_COLON), min_size=3, max_size=3), FIELDS)
def test_values_with_commas_and_colons_are_found_again_in_the_order_of_the_key(values, fields):
    spelled = ["__null__" if value is None else value or "__empty__" for value in values]
    key = ",".join(f"{name}:{text}" for name, text in zip("abc", spelled, strict=True))
    assert hashed_parts(key, fields) == [value for name, value in zip("abc", values, strict=True) if name in fields]


@pytest.mark.parametrize("key", ["", "user:1", "a,1", "x:1,y:2", "2026-01-01 10:11:12", ":,", "a b,c: "])
def test_a_key_without_pairs_or_without_the_fields_is_hashed_as_a_whole(key):
    assert hashed_parts(key, ["a", "id"]) == [key]


@given(st.integers(0, 10**8 - 1), st.uuids().map(lambda one: f"{one}-0"))
def test_the_id_of_a_bucket_begins_with_its_number_and_goes_on_as_the_new_id(bucket, fresh):
    made = bucket_file_id(bucket, fresh)
    assert bucket_of_file_id(made) == bucket
    assert (made[8:], len(made)) == (fresh[8:], len(fresh))


@pytest.mark.parametrize(
    "file_id", ["", "1234567", "1234567-8", "+0000001-0", " 0000001-0", "0000_001-0", "\u0660" * 8, "0000000\u00b2"]
)
def test_an_id_that_does_not_begin_with_eight_digits_has_no_bucket(file_id):
    assert bucket_of_file_id(file_id) is None


@pytest.mark.parametrize(("other", "are"), [("00099999-b", True), ("00100000-b", False), ("0000000f-b", False)])
def test_file_groups_are_buckets_if_there_is_one_and_all_have_low_numbers(other, are):
    assert are_buckets(iter(["00000000-a", other])) is are
    assert not are_buckets([])
