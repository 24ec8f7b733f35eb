"""A file in the store gives the same bytes as in memory, from few requests and within a bound."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.files.hfile.read_hfile import HFile
from table.files.hfile.write_hfile import encode_hfile
from table.metadata_table import stored_bytes
from table.metadata_table.stored_bytes import StoredBytes, windows
from table.storage.local import LocalStorage

SIZE = 3_000_000


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bytes")
    data = b"".join(number.to_bytes(4, "big") for number in range(SIZE // 4))
    (folder / "f").write_bytes(data)
    return data, LocalStorage(str(folder))


@given(st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, 300_000)), max_size=6))
def test_slices_are_those_of_the_file(stored, parts):
    data, storage = stored
    file = StoredBytes(storage, "f", SIZE)
    file.load((start, start + length) for start, length in parts[::2])
    for start, length in parts:
        assert file[start : start + length] == data[start : start + length]


@given(st.lists(st.tuples(st.integers(0, 60_000_000), st.integers(1, 70_000)), max_size=60).map(sorted))
def test_windows_cover_every_part_within_their_bound(parts):
    places = [(start, start + length) for start, length in parts]
    at = 0
    for count, joined in windows(places):
        for start, end in places[at : at + count]:
            assert any(low <= start and end <= high for low, high in joined)
        assert joined == sorted(joined)
        assert all(later[0] - earlier[1] > stored_bytes._GAP_BYTES for earlier, later in pairwise(joined))
        read = sum(end - start for start, end in joined)
        assert read <= stored_bytes._WINDOW_BYTES + count * stored_bytes._GAP_BYTES
        at += count
    assert at == len(places)


def test_parts_side_by_side_are_one_request_and_far_ones_another():
    near = [(0, 10), (10, 20), (30, 40)]
    assert list(windows(near)) == [(3, [(0, 40)])]
    far = 10_000_000
    assert list(windows([*near, (far, far + 5)])) == [(4, [(0, 40), (far, far + 5)])]


def test_few_keys_of_a_large_file_read_few_of_its_bytes(tmp_path, monkeypatch):
    keys = [f"{number:09}".encode() for number in range(300_000)]
    data = encode_hfile(((key, key * 8) for key in keys), "{}", is_base_file=True)
    (tmp_path / "f").write_bytes(data)
    read, real = [], LocalStorage.read_part
    monkeypatch.setattr(LocalStorage, "read_part", lambda *given: read.append(given[3] - given[2]) or real(*given))
    storage = LocalStorage(str(tmp_path))
    file = HFile(StoredBytes(storage, "f", len(data)))
    for key in (keys[0], keys[150_000], keys[-1]):
        assert file.find(key) == key * 8
    assert file.find(b"000150000x") is None
    assert sum(read) < len(data) / 3
    assert len(read) <= 5
