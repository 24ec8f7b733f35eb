"""Pages carry the checksum of their bytes, whoever encodes them, and nobody builds on a page that differs from it."""

import io
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine import Engine, form_of, rows
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots import live_files
from tiers import examples

from hudistream import HudiTable
from table import read_table
from table.errors import CorruptFileError
from table.files.base.stored_file import StoredBaseFile
from table.files.log.framing import BlockType, scan_blocks
from table.files.parquet.page_checksums import CHECKSUM, ChunkProof, forms_of, signed_checksum, split_pages
from table.files.parquet.row_groups import chunk_extent, chunk_path, chunks_of
from table.files.parquet.thrift_compact import BINARY, I32, STRUCT, Field, encode_struct
from table.services.check.check import check
from table.storage.local import LocalStorage

# row groups of some hundred rows, with keys that share the chunk of their column
SMALL = {**form_of(6, "COPY_ON_WRITE"), "hoodie.parquet.block.size": "20000"}


def many(first, count, ts, v):
    return rows(range(first, first + count), lambda _: "p", ts, v)


def chunks_in(path, file):
    """(column, bytes) of each chunk of a base file."""
    with StoredBaseFile(LocalStorage(path), file) as stored:
        for group in stored.footer.groups:
            for chunk in chunks_of(group.decoded):
                [column] = chunk_path(chunk)
                yield column.decode(), b"".join(stored.read_bytes(*chunk_extent(chunk)))


def only_file(path):
    [file] = live_files(path)
    return os.path.relpath(file, path)


def flip(path, file, column):
    """Flips a bit in the last page of the first chunk of a column. Returns the file's full name."""
    found = next(data for name, data in chunks_in(path, file) if name == column)
    full = os.path.join(path, file)
    with open(full, "rb") as source:
        whole = bytearray(source.read())
    whole[whole.index(found) + len(found) - 1] ^= 0x10
    with open(full, "wb") as out:
        out.write(whole)
    return full


@pytest.mark.parametrize("version", [6, 9])
def test_every_page_of_every_file_carries_its_checksum(tmp_path, version):
    """New, patched, decoded, copied and joined row groups, file names and shared keys."""
    path = str(tmp_path / "t")
    engine = Engine(path, {**SMALL, "hoodie.write.table.version": str(version)})
    engine.write(0, many(0, 1200, 0, "v"))
    engine.write(1, many(100, 900, 1, "w"))  # patched
    engine.write(2, many(5000, 40, 2, "x"))  # appended: the others are copied
    engine.write(3, many(0, 3, 3, "y"))
    files = {os.path.relpath(os.path.join(at, name), path) for at, _, names in os.walk(path) for name in names
             if name.endswith(".parquet") and ".hoodie" not in at}  # fmt: skip
    assert len(files) == 4
    columns = set()
    for file in files:
        for column, data in chunks_in(path, file):
            columns.add(column)
            proof = ChunkProof(file, len(data))
            proof.take(data)
            assert 0 < proof.pages == proof.summed
        pq.read_table(os.path.join(path, file), page_checksum_verification=True)
    assert {"_hoodie_file_name", "_hoodie_record_key", "id", "v"} <= columns
    report = check(path, sample=None)
    assert 0 < report.chunks_read == report.chunks_summed
    assert "100% of their column chunks carry checksums" in report.verdict


def encoded(**given):
    out = io.BytesIO()
    table = pa.table({"a": pa.array(range(5000), pa.int32())})
    pq.write_table(table, out, data_page_size=2000, use_dictionary=False, **given)
    found = pq.read_metadata(out).row_group(0).column(0)
    start = found.data_page_offset
    return out.getvalue()[start : start + found.total_compressed_size]


@settings(max_examples=examples(30), deadline=None)
@given(cuts=st.lists(st.integers(1, 30_000), max_size=6), bit=st.integers(0, 7), at=st.floats(0, 1, exclude_max=True))
def test_a_flipped_bit_is_found_however_the_bytes_come(cuts, bit, at):
    data = encoded(write_page_checksum=True)
    ends = sorted({*(cut for cut in cuts if cut < len(data)), len(data)})

    def taken(chunk):
        proof = ChunkProof("f", len(chunk))
        for start, end in zip([0, *ends], ends, strict=False):
            proof.take(memoryview(chunk)[start:end])
        return proof

    proof = taken(data)
    assert proof.pages == proof.summed == len(list(split_pages(data))) > 3
    stored = next(iter(split_pages(data))).stored
    damaged = bytearray(data)
    damaged[data.index(stored) + int(at * len(stored))] ^= 1 << bit
    with pytest.raises(CorruptFileError, match="f has a page that differs from its checksum"):
        taken(bytes(damaged))


@pytest.mark.parametrize("piece_bytes", [100, 3000, 1 << 20])
def test_a_header_may_be_long(piece_bytes):
    page = encode_struct(
        {1: Field(I32, 0), 2: Field(I32, 3), 3: Field(I32, 3), 4: Field(I32, signed_checksum(b"abc")),
         5: Field(STRUCT, {5: Field(STRUCT, {5: Field(BINARY, b"z" * 5000)})})}
    )  # fmt: skip
    data = 3 * (page + b"abc")
    proof = ChunkProof("f", len(data))
    for start in range(0, len(data), piece_bytes):
        proof.take(data[start : start + piece_bytes])
    assert proof.pages == proof.summed == 3


def test_pages_without_checksums_pass_and_are_counted():
    data = encoded()
    proof = ChunkProof("f", len(data))
    proof.take(data)
    assert (proof.pages > 3, proof.summed) == (True, 0)
    again = b"".join(form.filled(b"nowhere", b"!!!!!!!") for form in forms_of(data))
    assert again == data  # none is added: it would certify what nobody has seen


def test_a_text_is_replaced_in_a_page_with_its_right_checksum():
    [form, *_] = forms_of(encoded(write_page_checksum=True))
    old, new = form.stored[100:108], b"another!"
    page = form.filled(old, new)
    assert page[-len(form.stored) :] == form.stored.replace(old, new) != form.stored
    proof = ChunkProof("f", len(page))
    proof.take(page)
    assert proof.pages == proof.summed == 1


@pytest.mark.parametrize("data", [b"\0", b"\x15", b"\x15\x00\x15\x02\x15\x01\x00"])
def test_what_is_no_page_is_said(data):
    """Zeros, a header that is cut short, a page of a negative length."""
    with pytest.raises(CorruptFileError):
        ChunkProof("f", len(data)).take(data)
    with pytest.raises(CorruptFileError):
        list(split_pages(data))


def test_readers_and_check_say_that_a_page_is_damaged(tmp_path):
    path = str(tmp_path / "t")
    Engine(path, SMALL).write(0, many(0, 1200, 0, "v"))
    file = only_file(path)
    flip(path, file, "v")
    for read in (read_table, lambda at: HudiTable.open(at).scan(where=[("ts", "=", 0)]).to_arrow()):
        with pytest.raises(CorruptFileError, match="differs from its checksum"):
            read(path)
    report = check(path, sample=None)
    assert not report.is_sound
    assert "differs from its checksum" in report.findings[0].text


@pytest.mark.parametrize("column", ["v", "_hoodie_commit_time", "id"])
def test_an_update_does_not_carry_a_damaged_page_along(tmp_path, column):
    """It changes `w` alone: the chunks of the other columns are copied."""
    path = str(tmp_path / "t")

    def batch(ts, w):
        return many(0, 1200, 0, "v").append_column("w", pa.array([w] * 1200)).set_column(2, "ts", pa.array([ts] * 1200))

    engine = Engine(path, SMALL)
    engine.write(0, batch(0, "a"))
    file = only_file(path)
    full, before = os.path.join(path, file), open(os.path.join(path, file), "rb").read()
    flip(path, file, column)
    with pytest.raises(CorruptFileError, match="checksum"):
        engine.write(1, batch(1, "b"))
    with open(full, "wb") as out:
        out.write(before)
    assert read_table(path).column("w").unique().to_pylist() == ["a"]
    engine.write(1, batch(1, "b"))
    assert read_table(path).column("w").unique().to_pylist() == ["b"]


def test_a_damaged_page_of_a_log_block_is_found_by_check(tmp_path):
    path = str(tmp_path / "t")
    options = {**form_of(6, "MERGE_ON_READ"), "hoodie.logfile.data.block.format": "parquet"}
    engine = Engine(path, options)
    engine.write(0, many(0, 500, 0, "v"))
    engine.write(1, many(0, 500, 1, "w"))
    [log] = [os.path.join(at, name) for at, _, names in os.walk(path) for name in names if ".log." in name]
    with LocalStorage(path).open_input(os.path.relpath(log, path)) as source:
        [block] = [place.block for place in scan_blocks(source) if place.block.type is BlockType.PARQUET_DATA]
    file = pq.ParquetFile(pa.BufferReader(block.content))
    chunk = next(
        chunk for number in range(9) if (chunk := file.metadata.row_group(0).column(number)).path_in_schema == "v"
    )
    assert (
        CHECKSUM in next(iter(split_pages(block.content[chunk.dictionary_page_offset : chunk.data_page_offset]))).header
    )
    with open(log, "rb") as source:
        whole = bytearray(source.read())
    whole[whole.index(block.content) + chunk.data_page_offset + chunk.total_compressed_size // 2 - 4] ^= 1
    with open(log, "wb") as out:
        out.write(whole)
    with pytest.raises(CorruptFileError):
        read_table(path)
    report = check(path, sample=None)
    assert "verification failed" in report.findings[0].text
    assert not report.is_sound


def test_copied_pages_without_checksums_stay_so(tmp_path, monkeypatch):
    """A checksum that is added later would certify what nobody has seen."""
    path, make = str(tmp_path / "t"), pq.ParquetWriter
    engine = Engine(path, SMALL)
    with monkeypatch.context() as earlier:
        earlier.setattr(
            pq, "ParquetWriter", lambda *args, **named: make(*args, **{**named, "write_page_checksum": False})
        )
        engine.write(0, many(0, 1200, 0, "v"))
    engine.write(1, many(5000, 400, 1, "x"))
    file = only_file(path)
    with StoredBaseFile(LocalStorage(path), file) as stored:
        found = stored.find_checksums()
    assert any(found)
    assert not all(found)
    report = check(path, sample=None)
    assert report.is_sound
    assert 0 < report.chunks_summed < report.chunks_read == len(found)
