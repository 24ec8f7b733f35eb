"""Hudi's entries in a footer: what is written is read back, and damaged entries count as absent."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parquet_bytes import footer_of, parquet_of
from tiers import examples

from table.files.base.hudi_footer import (
    encode_entries,
    filter_of_footer,
    has_high_characters,
    key_range,
    stored_bounds,
    text_of_footer,
)
from table.files.bloom.bloom_filter import sized_dynamic_filter, sized_filter
from table.files.parquet.footer import Footer

FILTERS = {"SIMPLE": sized_filter(5, 0.01), "DYNAMIC_V0": sized_dynamic_filter(2, 0.01, 6)}
KEYS = pa.array(["a", "b", "ключ"])
ALWAYS = {"org.apache.spark.version", "parquet.avro.schema", "org.apache.hudi.bloomfilter"}
RANGE = {"hoodie_min_record_key", "hoodie_max_record_key"}
# around the surrogates, where the order of UTF-8 is not that of UTF-16
TEXTS = st.text(st.sampled_from("\x00aé\ud7ff\ue000\uff61\uffff😀\U0010ffff"), max_size=4)


def footer_with(entries, is_sealed=False):
    """A footer of pyarrow that has these entries."""
    footer = footer_of(parquet_of(pa.table({"a": [1]}).replace_schema_metadata(entries)))
    return Footer(footer.decoded, groups=()) if is_sealed else footer


@pytest.mark.parametrize(
    ("kind", "bounds", "names"),
    [
        ("SIMPLE", None, ALWAYS),
        ("SIMPLE", ("a", "b"), ALWAYS | RANGE),
        ("DYNAMIC_V0", ("", ""), ALWAYS | RANGE | {"hoodie_bloom_filter_type_code"}),
    ],
)
def test_only_a_dynamic_filter_names_its_type_and_only_a_file_with_rows_has_a_range(kind, bounds, names):
    assert set(encode_entries("{}", FILTERS[kind], bounds)) == names


@given(st.sampled_from(sorted(FILTERS)), st.none() | st.tuples(TEXTS, TEXTS), st.booleans())
@settings(max_examples=examples(40), deadline=None)
def test_entries_are_read_back_from_a_file_of_arrow(kind, bounds, is_sealed):
    bloom = FILTERS[kind].added(KEYS)
    footer = footer_with(encode_entries('{"name": "é"}', bloom, bounds), is_sealed)
    found = filter_of_footer(footer, 20)
    assert (found.type_code, found.encode()) == (kind, bloom.encode())
    assert kind == "SIMPLE" or found.max_keys == 20
    assert stored_bounds(footer) == bounds
    assert text_of_footer(footer, "parquet.avro.schema") == '{"name": "é"}'


SIMPLE = FILTERS["SIMPLE"].added(KEYS).encode()
DYNAMIC = FILTERS["DYNAMIC_V0"].added(KEYS).encode()


@pytest.mark.parametrize(
    ("entries", "is_sealed"),
    [
        ({}, False),
        ({"org.apache.hudi.bloomfilter": SIMPLE[:-8] + "!" + SIMPLE[-7:]}, False),
        ({"org.apache.hudi.bloomfilter": SIMPLE[:-4]}, False),
        ({"org.apache.hudi.bloomfilter": SIMPLE[:-4]}, True),
        ({"org.apache.hudi.bloomfilter": b"\xff" + SIMPLE.encode()}, False),
        ({"org.apache.hudi.bloomfilter": SIMPLE, "hoodie_bloom_filter_type_code": "DYNAMIC_V0"}, True),
        ({"org.apache.hudi.bloomfilter": SIMPLE, "hoodie_bloom_filter_type_code": "RIBBON"}, False),
        ({"org.apache.hudi.bloomfilter": DYNAMIC}, False),
        ({"org.apache.hudi.bloomfilter": DYNAMIC}, True),
    ],
)
def test_a_filter_that_cannot_be_read_is_none(entries, is_sealed):
    assert filter_of_footer(footer_with(entries, is_sealed), 20) is None


@pytest.mark.parametrize("other", [{}, {"hoodie_max_record_key": b"\xff"}])
def test_half_a_range_is_none(other):
    footer = footer_with({"hoodie_min_record_key": "a", **other})
    assert text_of_footer(footer, "hoodie_max_record_key") is None
    assert stored_bounds(footer) is None


def java_order(text):
    """The UTF-16 units of a text, as Java compares them."""
    units = text.encode("utf-16-be")
    return [units[at : at + 2] for at in range(0, len(units), 2)]


@given(st.lists(st.lists(TEXTS, max_size=4), min_size=1, max_size=3).filter(any))
@settings(deadline=None)
def test_the_range_holds_every_key_in_javas_order_and_consists_of_keys(chunks):
    keys = [key for chunk in chunks for key in chunk]
    found = key_range(pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks]))
    assert found == (min(keys, key=java_order), max(keys, key=java_order))


@given(st.lists(TEXTS, max_size=6))
@settings(deadline=None)
def test_without_high_characters_the_order_of_bytes_is_javas(keys):
    if not has_high_characters(pa.array(keys, pa.string())):
        assert sorted(keys, key=str.encode) == sorted(keys, key=java_order)


@pytest.mark.parametrize("keys", [[], [""], ["k1", "é", "日本", "\ud7ff"]])
def test_usual_keys_have_no_high_characters(keys):
    assert not has_high_characters(pa.array(keys, pa.string()))
