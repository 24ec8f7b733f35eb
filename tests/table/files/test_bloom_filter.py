import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from table.errors import CorruptFileError
from table.files.bloom.bloom_filter import (
    can_extend,
    decode_filter,
    decode_simple,
    empty_filter,
    filter_bits,
    fitted_filter,
    hash_count,
    hash_rounds,
    sized_dynamic_filter,
    sized_filter,
)
from table.files.bloom.encoded_filter import view_filter
from table.files.bloom.key_hashes import screen_hashes
from table.options.groups import BaseFileSettings

KEYS = ["k0000", "k0001", "abc", "ключ-é", "a,b"]


def murmur(data, seed):
    """Hadoop's MurmurHash, one key at a time: the slow form to hold the fast one against."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = (seed ^ len(data)) & mask
    for i in range(0, len(data) & ~3, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    left = len(data) & 3
    if left:
        tail = [b - 256 if b > 127 else b for b in data[len(data) - left :]][::-1]
        for shift, byte in zip((0, 8, 16), tail, strict=False):
            h ^= byte << shift & mask
        h = h * m & mask
    h ^= h >> 13
    h = h * m & mask
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h


# printed by Hudi 1.0.2 itself
@pytest.mark.parametrize(
    ("key", "chain"),
    [
        ("k0000", [2068872719, -158211269, -630161343, 980574328]),
        ("abc", [1775488903, 1492699528, -1540251996, -1289704357]),
        ("ключ-é", [1406399235, -403511614, -1846485206, -1190976178]),
        ("a,b", [-403696230, 1504796965, 1890878138, 434745960]),
    ],
)
def test_hash_chain_is_hudis(key, chain):
    [(_, rounds)] = hash_rounds(pa.array([key]), 4)
    assert [int(values[0]) for values in rounds] == [abs(value) for value in chain]


def test_filter_is_hudis_bit_for_bit():
    assert sized_filter(5, 0.01).added(pa.array(KEYS)).encode() == "/////wAAAAcBAAAAMOiYkN130Q=="
    assert (filter_bits(60000, 1e-9), hash_count(60000, 2587966)) == (2587966, 30)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), min_size=1, max_size=30))
@settings(max_examples=examples(60), deadline=None)
def test_vectorised_hash_equals_the_slow_one(keys):
    column = pa.array(["x", *keys, "y"]).slice(1, len(keys))
    for positions, rounds in hash_rounds(column, 5):
        for at, position in enumerate(positions):
            seed = 0
            for values in rounds:
                seed = murmur(keys[position].encode(), seed)
                assert int(values[at]) == abs(seed)


@given(st.sets(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12), min_size=1, max_size=50))
@settings(max_examples=examples(40), deadline=None)
def test_no_key_is_ever_missed_and_the_form_round_trips(keys):
    column = pa.array(sorted(keys))
    bloom = sized_filter(len(keys), 0.01).added(column)
    assert bloom.may_contain(column).all()
    again = decode_simple(bloom.encode())
    assert again.encode() == bloom.encode()
    assert again.may_contain(column).all()


def test_false_positives_stay_near_the_rate():
    keys = pa.array([f"key-{n}" for n in range(20_000)])
    others = pa.array([f"other-{n}" for n in range(20_000)])
    assert 100 < sized_filter(20_000, 0.01).added(keys).may_contain(others).sum() < 400


def test_adding_in_two_steps_is_adding_at_once():
    bits = filter_bits(100, 1e-6)
    empty = empty_filter(hash_count(100, bits), bits)
    first, second = pa.array(KEYS[:2]), pa.array(KEYS[2:])
    assert empty.added(first).added(second).encode() == empty.added(pa.array(KEYS)).encode()
    assert empty.entries == pytest.approx(100, rel=0.05)


def test_dynamic_filter_is_hudis_bit_for_bit():
    bloom = sized_dynamic_filter(2, 0.01, 6).added(pa.array(KEYS))
    expected = "/////wAAAAcBAAAAFAAAAAIAAAABAAAAA/////8AAAAHAQAAABSNkwn/////AAAABwEAAAAUWcEH/////wAAAAcBAAAAFCMUBA=="
    assert bloom.encode() == expected
    more = bloom.added(pa.array([f"x{n}" for n in range(6)]))
    assert more.encode() == (
        "/////wAAAAcBAAAAFAAAAAIAAAAHAAAAA/////8AAAAHAQAAABT/9wv/////AAAABwEAAAAUWfcH/////wAAAAcBAAAAFD/cBQ=="
    )
    assert decode_filter(more.encode(), "DYNAMIC_V0", 6).encode() == more.encode()


def test_hudis_default_filter_is_built_as_hudi_does():
    import hashlib

    text = sized_dynamic_filter(60_000, 1e-9, 100_000).added(pa.array(KEYS)).encode()
    assert len(text) == 431_380
    assert hashlib.md5(text.encode()).hexdigest() == "b3d5156ac54378feab0cd39781e1244b"


def test_filters_that_hudi_wrote_know_their_keys(golden):
    path, expected = golden("cow_insert_partitioned")
    for file in expected["live_base_files"]:
        metadata = pq.read_metadata(f"{path}/{file}").metadata
        text, code = (
            metadata[key].decode() for key in (b"org.apache.hudi.bloomfilter", b"hoodie_bloom_filter_type_code")
        )
        bloom = decode_filter(text, code, 100_000)
        keys = pq.read_table(f"{path}/{file}").column("_hoodie_record_key").combine_chunks()
        assert bloom.may_contain(keys).all()
        assert not bloom.may_contain(pa.array([f"never-{n}" for n in range(500)])).any()
        assert bloom.keys_held == len(keys)
        assert bloom.encode() == text


@given(st.lists(st.sets(st.integers(0, 10**6), max_size=9), max_size=6))
@settings(max_examples=examples(40), deadline=None)
def test_a_dynamic_filter_never_misses_a_key_however_it_grew(parts):
    bloom = sized_dynamic_filter(4, 0.01, 12)
    for part in parts:
        bloom = bloom.added(pa.array([str(n) for n in part], pa.string()))
        bloom = decode_filter(bloom.encode(), "DYNAMIC_V0", 12)
    everything = pa.array([str(n) for part in parts for n in part], pa.string())
    assert bloom.may_contain(everything).all()
    assert len(bloom.rows) <= 3


@pytest.mark.parametrize(
    ("settings_of", "keys", "extends"),
    [
        ({}, 100, True),
        ({}, 110, False),  # the rows have doubled
        ({"bloom_entries": 10}, 1000, True),
        ({"bloom_type": "DYNAMIC_V0", "bloom_entries": 10}, 1000, True),
    ],
)
def test_a_filter_is_extended_while_it_lasts(settings_of, keys, extends):
    options = BaseFileSettings(**settings_of)
    bloom = fitted_filter(options, 50).added(pa.array([str(n) for n in range(50)]))
    assert can_extend(bloom, options, keys) is extends
    assert not can_extend(bloom, BaseFileSettings(bloom_fpp=1e-3), 50)


@pytest.mark.parametrize("options", [{}, {"hoodie.bloom.index.filter.type": "DYNAMIC_V0"},
                                     {"hoodie.index.bloom.num_entries": "20"}])  # fmt: skip
def test_a_file_that_grows_keeps_every_key_in_its_filter(tmp_path, options):
    from engine import Engine, rows
    from snapshots import list_snapshot_files

    from table.hudi_table import HudiTable

    engine = Engine(str(tmp_path / "t"), options)
    for batch_id in range(6):
        engine.write(batch_id, rows(range(batch_id * 30, batch_id * 30 + 10 * (batch_id + 1)), lambda n: "p"))
    [file] = list_snapshot_files(HudiTable.open(tmp_path / "t"))
    metadata = pq.read_metadata(tmp_path / "t" / file.path).metadata
    code = metadata.get(b"hoodie_bloom_filter_type_code")
    assert (code == b"DYNAMIC_V0") is ("DYNAMIC_V0" in options.values())
    bloom = decode_filter(metadata[b"org.apache.hudi.bloomfilter"].decode(), code and code.decode(), 100_000)
    keys = pq.read_table(tmp_path / "t" / file.path).column("_hoodie_record_key").combine_chunks()
    assert len(keys) == 210
    assert bloom.may_contain(keys).all()


@pytest.mark.parametrize("text", ["", "!!", "AAAA", "/////wAAAAcBAAAAMOiYkN130Q", "/////wAAAAcBAAAAMOiYkN130QAA"])
def test_what_is_no_filter_is_said_to_be_none(text):
    with pytest.raises(CorruptFileError):
        decode_simple(text)


def test_footers_of_our_files_hold_filter_and_range(tmp_path):
    from engine import Engine, rows
    from snapshots import list_snapshot_files

    from table.hudi_table import HudiTable

    Engine(str(tmp_path / "t")).write(0, rows(range(30)))
    for file in list_snapshot_files(HudiTable.open(tmp_path / "t")):
        metadata = pq.read_metadata(tmp_path / "t" / file.path).metadata
        keys = pq.read_table(tmp_path / "t" / file.path).column("_hoodie_record_key")
        assert decode_simple(metadata[b"org.apache.hudi.bloomfilter"].decode()).may_contain(keys.combine_chunks()).all()
        assert b"hoodie_bloom_filter_type_code" not in metadata
        assert metadata[b"hoodie_min_record_key"].decode() == min(keys.to_pylist())
        assert metadata[b"hoodie_max_record_key"].decode() == max(keys.to_pylist())


def test_key_range_is_in_javas_order():
    from table.files.base.hudi_footer import key_range

    # U+FF61 sorts after the emoji's surrogates in UTF-16, before it in UTF-8
    keys = pa.chunked_array([["a", "｡", "😀"]])
    assert key_range(keys) == ("a", "｡")


@given(
    held=st.integers(0, 400),
    more=st.integers(0, 60),
    entries=st.integers(1, 30_000),
    fpp=st.sampled_from([1e-9, 1e-3, 0.2]),
)
@settings(max_examples=examples(120), deadline=None)
def test_a_filter_patched_in_its_text_is_the_one_decoded_extended_and_encoded(held, more, entries, fpp):
    keys, added = (
        pa.array([f"{kind}{n}" for n in range(count)], pa.string())
        for kind, count in zip("ab", (held, more), strict=True)
    )
    decoded = sized_filter(entries, fpp).added(keys)
    viewed = view_filter(decoded.encode().encode())
    assert viewed.encode() == decoded.encode()
    assert viewed.added(added).encode() == decoded.added(added).encode()
    assert viewed.encode() == decoded.encode(), "a filter is a value: extending it makes another one"
    assert (viewed.keys_held, viewed.entries, viewed.type_code) == (decoded.keys_held, decoded.entries, "SIMPLE")
    strangers = pa.array([f"c{n}" for n in range(300)])
    assert (viewed.may_contain(strangers) == decoded.may_contain(strangers)).all()
    hashes = screen_hashes(strangers)
    assert (viewed.screen(hashes) == decoded.screen(hashes)).all()


def test_a_large_filter_tells_by_a_sample_how_many_keys_it_holds():
    bloom = sized_filter(100_000, 1e-9).added(pa.array([str(n) for n in range(50_000)]))
    assert bloom.keys_held == pytest.approx(50_000, rel=0.02)
    assert view_filter(bloom.encode().encode()).keys_held == bloom.keys_held


@pytest.mark.parametrize("cut", [4, 400])
def test_the_text_of_a_filter_must_have_the_length_that_its_header_says(cut):
    text = sized_filter(1_000, 1e-9).added(pa.array(KEYS)).encode()
    with pytest.raises(CorruptFileError, match="digits, not"):
        view_filter(text[:-cut].encode())
