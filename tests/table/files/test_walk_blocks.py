"""Blocks that are walked side by side give what a walk through each of them gives."""

import random
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from table import CorruptFileError
from table.files.hfile import walk_blocks as walking
from table.files.hfile.pieces import Sought, pieces_of
from table.files.hfile.read_hfile import HFile
from table.files.hfile.walk_blocks import walk_blocks
from table.files.hfile.write_hfile import encode_hfile, encode_java_varint

KEY_END = b"\x00" + b"\x7f" + b"\xff" * 7 + b"\x04"
texts = st.binary(min_size=1, max_size=20) | st.binary(min_size=1, max_size=3000)


@pytest.fixture(params=[0, 10**9], ids=["together", "one by one"])
def _ways(request, monkeypatch):
    monkeypatch.setattr(walking, "_FEW_BLOCKS", request.param)


def block_of(entries, count=0):
    framed = ((struct.pack(">H", len(key)) + key + KEY_END, value) for key, value in entries)
    return b"".join(
        struct.pack(">ii", len(key), len(value)) + key + value + encode_java_varint(count) for key, value in framed
    )


def all_of(pieces):
    found = [b""] * len(pieces)
    for at, array in pieces.by_length():
        for position, value in zip(at.tolist(), array.to_pylist(), strict=True):
            found[position] = value
    return found


def entries_of(walked):
    return list(zip(all_of(walked.keys), all_of(walked.values), strict=True))


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize("count", [0, 127, 128, 70_000])
def test_entries_of_blocks_are_found(count):
    draw = random.Random(count)
    made = [
        [
            (draw.randbytes(draw.randrange(1, 40)), draw.randbytes(draw.randrange(60)))
            for _ in range(draw.randrange(1, 90))
        ]
        for _ in range(30)
    ]
    walked = walk_blocks([block_of(entries, count) for entries in made])
    assert entries_of(walked) == [entry for entries in made for entry in entries]


@pytest.mark.usefixtures("_ways")
def test_no_blocks_have_no_entries():
    assert entries_of(walk_blocks([])) == []


@given(st.dictionaries(texts, st.binary(max_size=80), max_size=60))
def test_a_file_that_was_written_is_walked_through(entries):
    file = HFile(encode_hfile(sorted(entries.items()), "{}"))
    walked = walk_blocks([file.block_data(offset) for offset, _ in file.places])
    assert entries_of(walked) == sorted(entries.items())


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize("byte", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("of", ["first", "last"])
def test_wrong_lengths_are_damage(byte, of):
    block = bytearray(block_of([(b"k%d" % n, b"value") for n in range(20)]))
    begin = 0 if of == "first" else len(block) - len(block_of([(b"k19", b"value")]))
    block[begin + byte] ^= 0x55
    with pytest.raises(CorruptFileError, match="an HFile is damaged"):
        walk_blocks([block_of([(b"a", b"")])] * 3 + [bytes(block)])


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize("cut", [1, 5, 9, 25])
def test_a_block_that_was_cut_is_damage(cut):
    with pytest.raises(CorruptFileError, match="an HFile is damaged"):
        walk_blocks([block_of([(b"k%d" % n, b"value") for n in range(20)])[:-cut], block_of([(b"z", b"1")])])


@pytest.mark.usefixtures("_ways")
def test_a_count_that_is_cut_is_damage():
    with pytest.raises(CorruptFileError, match="an HFile is damaged"):
        walk_blocks([block_of([(b"k", b"value")], 70_000)[:-1]])


@given(st.sets(texts, max_size=40), st.lists(texts, max_size=60))
def test_keys_are_found_among_pieces(keys, pieces):
    listed = sorted(keys)
    found, at = Sought(pa.array(listed, pa.binary())).match(pieces_of(pa.array(pieces, pa.binary())))
    wanted = [(place, listed.index(piece)) for place, piece in enumerate(pieces) if piece in keys]
    assert list(zip(found.tolist(), at.tolist(), strict=True)) == wanted


def test_pieces_of_a_part_of_an_array():
    array = pa.array(["", "a", "bb", "", "0123456789", "01234567", "x" * 17])
    assert all_of(pieces_of(array[1:6])) == [b"a", b"bb", b"", b"0123456789", b"01234567"]
    assert all_of(pieces_of(array[3:4])) == [b""]
