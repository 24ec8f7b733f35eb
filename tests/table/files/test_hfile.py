"""HFile: what is written is read back, Hudi's files are read, and damaged bytes say that they are."""

import io
import struct
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.errors import CorruptFileError
from table.files.hfile import write_hfile
from table.files.hfile.blocks import (
    DATA,
    LEAF_INDEX,
    ROOT_INDEX,
    Codec,
    decode_block,
    decode_fields,
    decode_java_varint,
    decode_varint,
)
from table.files.hfile.read_hfile import TRAILER_BYTES, TRAILER_MAGIC, HFile
from table.files.hfile.write_hfile import (
    HFileEntries,
    encode_block,
    encode_field,
    encode_hfile,
    encode_java_varint,
    encode_varint,
)
from table.files.log.framing import BlockType, scan_blocks

GOLDEN = Path(__file__).parents[2] / "golden"
TABLES = ("cow_metadata_table", "v8_cow_defaults", "v8_cow_cleaned", "v9_cow_defaults", "v9_cow_indexes")
ENTRIES = st.dictionaries(st.binary(max_size=40), st.binary(max_size=300), max_size=60)


def hfiles_of(name):
    """Every HFile of a golden table: the base files and the blocks of log files of its metadata table."""
    found = {}
    with zipfile.ZipFile(GOLDEN / f"{name}.zip") as archive:
        for path in archive.namelist():
            if ".hoodie/metadata/" in path and path.endswith(".hfile"):
                found[path] = archive.read(path)
            elif ".hoodie/metadata/" in path and ".log." in path:
                for number, place in enumerate(scan_blocks(io.BytesIO(archive.read(path)))):
                    if place.block is not None and place.block.type is BlockType.HFILE_DATA:
                        found[f"{path} block {number}"] = bytes(place.block.content)
    return found


@pytest.mark.pure
@given(ENTRIES)
def test_what_is_written_is_read_back_in_order(entries):
    ordered = sorted(entries.items())
    file = HFile(encode_hfile(ordered, '"bytes"', is_base_file=True))
    assert list(file.entries()) == ordered
    assert file.entry_count == len(entries)
    assert (file.schema, file.info[b"minRecordKey"]) == ('"bytes"', ordered[0][0] if ordered else b"")
    assert all(file.find(key) == value for key, value in ordered)
    assert file.find(b"x" * 41) is None


@pytest.mark.pure
def test_the_same_entries_give_the_same_bytes():
    entries = [(b"a", b"1"), (b"b", b"2")]
    assert encode_hfile(entries, "{}") == encode_hfile(iter(entries), "{}")


@pytest.mark.pure
def test_many_entries_take_blocks_of_at_most_64_kib_except_one_that_is_larger_alone():
    entries = [(f"{n:06d}".encode(), bytes(27)) for n in range(5000)] + [(b"x", bytes(200_000)), (b"y", b"1")]
    data = encode_hfile(entries, "{}")
    file = HFile(data)
    assert list(file.entries()) == entries
    sizes, at = [], 0
    while data[at : at + 8] == DATA:
        block = decode_block(data, at, Codec.GZIP)
        sizes.append(len(block.data))
        at += block.size
    assert [size for size in sizes if size > 1 << 16] == [200_000 + 8 + 13 + 1]
    assert len(sizes) == 7


@pytest.mark.pure
@pytest.mark.parametrize("keys", [[b"b", b"a"], [b"a", b"a"]])
def test_keys_that_do_not_ascend_are_refused(keys):
    with pytest.raises(ValueError, match="comes after"):
        encode_hfile([(key, b"") for key in keys], "{}")


@pytest.mark.parametrize("name", TABLES)
def test_hudis_own_files_are_read_whole(name):
    files = hfiles_of(name)
    assert len(files) > 1
    for path, data in files.items():
        file = HFile(data)
        entries = list(file.entries())
        assert len(entries) == file.entry_count, path
        assert [key for key, _ in entries] == sorted({key for key, _ in entries}), path
        assert all(file.find(key) == value for key, value in entries), path
        assert '"HoodieMetadataRecord"' in file.schema
        again = HFile(encode_hfile(entries, file.schema))
        assert list(again.entries()) == entries
        assert set(again.info) <= set(file.info), path


@pytest.mark.pure
@given(ENTRIES.filter(bool), st.data())
def test_a_changed_or_cut_file_is_read_right_or_told(entries, data):
    ordered = sorted(entries.items())
    whole = bytearray(encode_hfile(ordered, "{}"))
    at = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        broken = bytes(whole[:at])
    else:
        whole[at] ^= data.draw(st.integers(1, 255))
        broken = bytes(whole)
    try:
        found = list(HFile(broken).entries())
    except CorruptFileError:
        return
    assert len(found) == len(ordered)  # a changed length of the file would have been told


@pytest.mark.pure
@given(st.binary(max_size=200))
def test_any_bytes_are_told(data):
    with pytest.raises(CorruptFileError):
        HFile(data + bytes(TRAILER_BYTES))


@pytest.mark.pure
def test_a_block_that_unpacks_to_more_than_it_says_is_told_without_unpacking_it():
    block = bytearray(encode_block(DATA, bytes(10_000_000)))
    struct.pack_into(">i", block, 12, 100)
    with pytest.raises(CorruptFileError, match="101 bytes unpacked, and says 100"):
        decode_block(bytes(block), 0, Codec.GZIP)


@pytest.mark.pure
def test_an_index_of_two_levels_is_followed():
    """As HBase writes it for large files: the root names leaves, and each leaf names data blocks."""
    entries = [(f"k{n}".encode(), str(n).encode()) for n in range(4)]
    tail = b"\x00" + b"\x7f" + b"\xff" * 7 + b"\x04"

    def framed(key):
        return struct.pack(">H", len(key)) + key + tail

    file, leaf, places = bytearray(), bytearray(), [0]
    for key, value in entries:
        body = struct.pack(">ii", len(framed(key)), len(value)) + framed(key) + value + b"\x00"
        block = encode_block(DATA, body)
        leaf += struct.pack(">qi", len(file), len(block)) + framed(key)
        places.append(len(leaf))
        file += block
    leaf_at = len(file)
    file += encode_block(LEAF_INDEX, struct.pack(f">{len(entries) + 1 + 1}i", len(entries), *places) + leaf)
    one = HFile(encode_hfile(entries, "{}"))
    info = b"".join(encode_field(1, encode_field(1, k) + encode_field(2, v)) for k, v in one.info.items())
    root_at = len(file)
    root = struct.pack(">qi", leaf_at, root_at - leaf_at) + encode_java_varint(len(framed(b"k0"))) + framed(b"k0")
    file += encode_block(ROOT_INDEX, root)
    info_at = len(file)
    file += encode_block(b"FILEINF2", b"PBUF" + encode_varint(len(info)) + info)
    fields = ((1, info_at), (2, root_at), (5, 1), (7, len(entries)), (8, 2), (12, 1))
    trailer = b"".join(encode_field(number, value) for number, value in fields)
    head = TRAILER_MAGIC + encode_varint(len(trailer)) + trailer
    file += head + bytes(TRAILER_BYTES - len(head) - 4) + struct.pack(">i", 3)
    read = HFile(bytes(file))
    assert list(read.entries()) == entries
    assert read.find(b"k3") == b"3"


@pytest.mark.pure
@given(st.integers(0, 2**63 - 1))
def test_numbers_are_read_back(number):
    assert decode_varint(encode_varint(number), 0) == (number, len(encode_varint(number)))
    assert decode_java_varint(encode_java_varint(number), 0) == (number, len(encode_java_varint(number)))
    assert list(decode_fields(encode_field(7, number) + encode_field(8, b"ab"))) == [(7, number), (8, b"ab")]


@given(
    st.dictionaries(st.binary(min_size=1, max_size=6), st.binary(max_size=200), max_size=60),
    st.lists(st.binary(min_size=1, max_size=6), max_size=40),
)
def test_keys_are_found_in_any_order(entries, others):
    """The search goes on where the last one ended, or begins anew."""
    file = HFile(encode_hfile(sorted(entries.items()), "{}", is_base_file=False))
    for key in [*sorted([*entries, *others]), *others, *list(entries), *reversed(list(entries)), *others]:
        assert file.find(key) == entries.get(key)


def test_keys_in_the_order_of_java_strings_are_found():
    """Hudi orders by UTF-16: a character beyond U+FFFF comes before those from U+E000 on."""
    keys = [key.encode() for key in ("a", "b\U0001f44d", "b\uff41", "c")]
    assert sorted(keys) != keys
    file = HFile(encode_hfile(((key, key) for key in sorted(keys)), "{}", is_base_file=False))
    entries = file._read(file._offsets[0])
    by_java = [entries[sorted(keys).index(key)] for key in keys]
    file._read = lambda _: by_java
    assert [file.find(key) for key in keys] == keys


@given(
    st.integers(1, 6).flatmap(lambda size: st.sets(st.binary(min_size=size, max_size=size), min_size=1, max_size=60)),
    st.integers(0, 9),
    st.booleans(),
)
def test_keys_and_values_of_one_length_are_read_as_others_are(keys, length, has_another):
    entries = {key: (key * 9)[:length] for key in keys}
    if has_another:
        entries[max(keys) + b"x"] = b"another"
    file = HFile(encode_hfile(sorted(entries.items()), "{}", is_base_file=False))
    assert list(file.entries()) == sorted(entries.items())


@pytest.mark.parametrize("at_once", [1, 3, 1000])
def test_entries_that_come_in_pieces_give_the_same_file(monkeypatch, at_once):
    entries = [(b"k%05d" % number, bytes(number % 7 * 40)) for number in range(3000)]
    whole = encode_hfile(HFileEntries.of(entries), "{}", is_base_file=True)
    monkeypatch.setattr(write_hfile, "_PAIRS_AT_ONCE", at_once)
    assert encode_hfile(iter(entries), "{}", is_base_file=True) == whole
    with pytest.raises(ValueError, match="comes after"):
        encode_hfile([*entries, (b"k00000", b"")], "{}")


def test_files_of_one_schema_share_its_text():
    """Thousands of files are remembered, and each would keep some kilobytes."""
    one, other = (HFile(encode_hfile([(key, b"1")], '{"type": "x"}')) for key in (b"a", b"b"))
    assert one.schema is other.schema
