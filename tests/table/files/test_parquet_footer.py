"""Footers: what pyarrow reads of them, the seal that a changed byte breaks, and footers that are refused."""

import time
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parquet_bytes import ROW_GROUPS, data_of, footer_of, metadata_of, parquet_of, rows_of_file, thrift_of
from tiers import examples

from table.errors import CorruptFileError
from table.files.parquet.field_ids import GROUP_ROWS
from table.files.parquet.footer import (
    BOUNDS_COMPLETE,
    BOUNDS_KEY,
    MAGIC,
    SEAL_KEY,
    decode_footer,
    find_footer,
    join_footer,
    why_not_continued,
)
from table.files.parquet.row_groups import chunk_extent, chunks_of, encode_group
from table.files.parquet.thrift_compact import BINARY, I64, LIST, STRUCT, Field, Items, encode_struct

ROWS = pa.table({"n": range(40), "name": [f"f{number % 3}" for number in range(40)]})
FILE = parquet_of(ROWS, row_group_size=2)  # from 15 row groups on the header of their list is longer
FOOTER = footer_of(FILE)
NUM_ROWS, KEY_VALUES = 3, 5  # fields of FileMetaData
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)


def sealed(count, texts, codec="zstd"):
    """A file of the first row groups."""
    groups = [encode_group(group, number, "name") for number, group in enumerate(FOOTER.row_groups[:count])]
    ends = [sum(chunk_extent(chunks_of(group)[-1])) for group in FOOTER.row_groups[:count]]
    return data_of(FILE)[: max(ends, default=len(MAGIC))] + join_footer(groups, FOOTER, texts, codec)


@pytest.mark.parametrize(("length", "size", "start"), [(0, 12, 4), (88, 100, 4), (88, 1000, 904)])
def test_a_footer_lies_before_its_length_and_behind_the_first_magic(length, size, start):
    tail = length.to_bytes(4, "little") + b"PAR1"
    assert find_footer(tail, size) == find_footer(b"more" + tail, size) == start


@pytest.mark.parametrize(
    ("tail", "size", "message"),
    [
        (b"", 0, "it does not end as a Parquet file does"),
        (b"PAR1", 4, "it does not end as a Parquet file does"),
        (b"\x00\x00\x00\x00PAR2", 100, "it does not end as a Parquet file does"),
        (b"\x00\x00\x00\x00PARE", 100, "the footer is encrypted"),
        (b"\x00\x00\x00\x00PAR1", 8, r"its footer would be longer \(0 bytes\) than the file"),
        (b"\x59\x00\x00\x00PAR1", 100, r"its footer would be longer \(89 bytes\) than the file"),
        (b"\xff\xff\xff\xffPAR1", 100, r"its footer would be longer \(4294967295 bytes\) than the file"),
    ],
)
def test_what_is_no_end_of_a_parquet_file_is_refused(tail, size, message):
    with pytest.raises(CorruptFileError, match=message):
        find_footer(tail, size)


def test_a_footer_of_another_writer_is_read_as_pyarrow_reads_it():
    file = parquet_of(ROWS.replace_schema_metadata({"k": "é", "raw": b"\xff"}), row_group_size=30)
    footer, known = footer_of(file), metadata_of(file)
    assert (footer.is_sealed, footer.has_all_bounds, footer.groups) == (False, False, None)
    assert (footer.num_rows, footer.group_rows, footer.created_by.decode()) == (40, [30, 10], known.created_by)
    assert (footer.largest_group, footer.row_groups[1]) == tuple(footer.row_groups)
    assert {key.encode(): bytes(value) for key, value in footer.entries.items()} == known.metadata
    assert footer.key_values["k"] == "é"
    assert "raw" not in footer.key_values  # it is no text


OTHER_ROWS = "the rows of its row groups are not the rows of the file"
WRONG_TYPES = "the footer has fields of wrong types"


def structs(*fields):
    return Field(LIST, Items(STRUCT, list(fields)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({NUM_ROWS: Field(I64, 41)}, OTHER_ROWS),
        ({ROW_GROUPS: structs()}, OTHER_ROWS),
        ({ROW_GROUPS: structs({GROUP_ROWS: Field(I64, -1)}, {GROUP_ROWS: Field(I64, 41)})}, OTHER_ROWS),
        ({ROW_GROUPS: structs({})}, "the footer lacks the required field 3"),
        ({ROW_GROUPS: Field(I64, 7)}, WRONG_TYPES),
        ({NUM_ROWS: Field(BINARY, b"many")}, WRONG_TYPES),
        ({KEY_VALUES: structs({1: Field(I64, 7), 2: Field(I64, 7)})}, WRONG_TYPES),
    ],
)
def test_a_footer_that_contradicts_itself_is_refused(changes, message):
    with pytest.raises(CorruptFileError, match=message):
        decode_footer(encode_struct(dict(sorted({**FOOTER.fields, **changes}.items()))))


@given(st.integers(0, 20), st.dictionaries(TEXTS, TEXTS | st.just(SEAL_KEY.decode()), max_size=3))
@settings(max_examples=examples(40), deadline=None)
def test_a_sealed_footer_is_read_by_pyarrow_and_comes_back_with_its_row_groups(count, texts):
    file = sealed(count, texts)
    assert rows_of_file(file) == ROWS.slice(0, 2 * count)
    footer, known = footer_of(file), metadata_of(file).metadata
    assert [group.decoded for group in footer.groups] == FOOTER.row_groups[:count]
    assert (footer.is_sealed, footer.has_all_bounds, footer.codec) == (True, True, "zstd")
    assert (footer.num_rows, footer.group_rows) == (2 * count, [2] * count)
    assert footer.schema == FOOTER.schema
    assert {key: footer.key_values[key] for key in texts} == texts
    assert {key.encode(): bytes(value) for key, value in footer.entries.items()} == known


SEALED = thrift_of(sealed(16, {"k": "v"}))


@given(st.integers(0, len(SEALED) - 1), st.integers(1, 255))
@settings(max_examples=examples(300), deadline=None)
def test_no_footer_counts_as_sealed_after_a_byte_of_it_changed_and_an_intact_seal_shows_it(at, flip):
    changed = SEALED[:at] + bytes([SEALED[at] ^ flip]) + SEALED[at + 1 :]
    with suppress(CorruptFileError):
        assert not decode_footer(changed).is_sealed
    with pytest.raises(CorruptFileError, match="its footer was changed after it was written"):
        decode_footer(SEALED.replace(b"\x01k", b"\x01K"))


def test_a_file_of_another_writer_that_copied_the_entries_of_a_sealed_one_is_not_sealed():
    copied = metadata_of(sealed(3, {})).metadata
    footer = footer_of(parquet_of(ROWS.replace_schema_metadata(copied)))
    assert footer.key_values[BOUNDS_KEY] == BOUNDS_COMPLETE
    assert SEAL_KEY.decode() in footer.key_values
    assert (footer.is_sealed, footer.has_all_bounds) == (False, False)


OURS = footer_of(sealed(3, {}, "snappy"))


def test_a_file_of_another_version_of_the_writer_is_not_continued_whatever_else_differs():
    reason = why_not_continued(OURS, schema=Items(STRUCT, []), created_by=b"a later version", codec="zstd")
    assert reason == "other version of the writer"
    assert why_not_continued(OURS, OURS.schema, OURS.created_by, "snappy") is None


def test_a_length_that_goes_on_for_a_megabyte_is_damage_at_once():
    started_s = time.process_time()
    with pytest.raises(CorruptFileError):
        decode_footer(SEAL_KEY + b"\x18" + b"\xff" * 1_000_000)
    assert time.process_time() - started_s < 10
