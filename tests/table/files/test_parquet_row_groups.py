"""Row groups moved, cut and joined: pyarrow reads their rows where the footer says that they are."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parquet_bytes import data_of, footer_of, joined, metadata_of, parquet_of, rows_of_file
from tiers import examples

from table.errors import CorruptFileError
from table.files.parquet import field_ids as ids
from table.files.parquet.row_groups import (
    chunk_extent,
    chunks_of,
    encode_group,
    field_value,
    fields_of_known_types,
    has_small_dictionary,
    moved_chunk,
    moved_group,
    shifted_group,
    with_chunk,
    with_columns,
)
from table.files.parquet.thrift_compact import I16, I64, STRUCT, Field, decode_struct

ROWS = pa.table({"a": ["x", "yy"] * 50, "c": [[1.5, None], []] * 50, "b": range(100)})
FILE = parquet_of(ROWS, row_group_size=40, use_dictionary=["a"])
GROUPS = footer_of(FILE).row_groups


@given(st.integers(0, 5000))
@settings(max_examples=examples(30), deadline=None)
def test_rows_are_read_where_they_were_moved_to(by):
    moved = [moved_group(group, by) for group in GROUPS]
    assert rows_of_file(joined(b"PAR1" + bytes(by) + data_of(FILE)[4:], footer_of(FILE), moved)) == ROWS
    first_pages = [metadata_of(FILE).row_group(number).column(0).dictionary_page_offset for number in range(3)]
    assert [group[ids.GROUP_OFFSET].value for group in moved] == [page + by for page in first_pages]


@pytest.mark.parametrize(("column", "at"), [("a", 0), ("b", 2)])
def test_an_encoded_row_group_is_cut_around_the_column_and_has_its_number(column, at):
    group = {**GROUPS[1], ids.ORDINAL: Field(I16, 9)}
    made = encode_group(group, 3, column)
    assert made.decoded == {**group, ids.ORDINAL: Field(I16, 3)}
    assert decode_struct(made.chunk) == chunks_of(group)[at]
    others = [chunk for number, chunk in enumerate(chunks_of(group)) if number != at]
    assert (made.rows, made.data_end) == (40, max(sum(chunk_extent(chunk)) for chunk in others))
    assert shifted_group(made, 0, 7, column) is made
    assert shifted_group(made, 11, 7, column) == encode_group(moved_group(group, 11), 7, column)


@pytest.mark.parametrize("column", ["missing", "c"])  # c is no chunk of its own: its elements are
def test_a_row_group_without_the_column_is_refused(column):
    with pytest.raises(CorruptFileError, match=f"a row group lacks the column '{column}'"):
        encode_group(GROUPS[0], 0, column)


def test_an_exchanged_chunk_is_read_in_the_place_of_the_old_one_and_counts_in_the_totals():
    names = pa.array(["another and longer name"] * 40)
    file, data = parquet_of(pa.table({"a": names})), data_of(FILE)
    [new] = chunks_of(footer_of(file).row_groups[0])
    made = with_chunk(encode_group(GROUPS[0], 0, "a"), moved_chunk(new, len(data) - 4)).decoded
    both = joined(data + data_of(file)[4:], footer_of(FILE), [made])
    assert rows_of_file(both) == ROWS.slice(0, 40).set_column(0, "a", names)
    known = metadata_of(both).row_group(0)
    chunks = [known.column(number) for number in range(3)]
    assert known.total_byte_size == sum(chunk.total_uncompressed_size for chunk in chunks)
    assert made[ids.COMPRESSED].value == sum(chunk.total_compressed_size for chunk in chunks)


@pytest.mark.parametrize(("group", "at"), [(0, 1), (2, 0)], ids=["another column", "fewer values"])
def test_a_chunk_that_does_not_fit_is_not_exchanged(group, at):
    with pytest.raises(CorruptFileError, match="a chunk does not fit into the place of another"):
        with_chunk(encode_group(GROUPS[0], 0, "a"), chunks_of(GROUPS[group])[at])


def test_bytes_that_two_chunks_share_count_once_in_the_file_and_twice_in_memory():
    first, *others = chunks_of(GROUPS[1])
    meta = dict(first[ids.CHUNK_META].value)
    lead_bytes = meta[ids.DATA_PAGE].value - meta.pop(ids.DICTIONARY_PAGE).value
    meta[ids.CHUNK_BYTES] = Field(I64, meta[ids.CHUNK_BYTES].value - lead_bytes)
    made = with_columns(GROUPS[1], [*others, {**first, ids.CHUNK_META: Field(STRUCT, meta)}, first])
    assert made[ids.COMPRESSED].value == GROUPS[1][ids.COMPRESSED].value
    assert made[ids.TOTAL_BYTES].value == GROUPS[1][ids.TOTAL_BYTES].value + meta[ids.UNCOMPRESSED].value
    assert made[ids.GROUP_OFFSET].value == chunk_extent(others[0])[0]


MANY = [f"{number:06}" for number in range(3000)]


@pytest.mark.parametrize(
    ("values", "options", "most_bytes", "is_small"),
    [
        (["x", "y"] * 999, {}, 1000, True),
        (["x", "y"] * 999, {"data_page_version": "2.0", "version": "1.0"}, 1000, True),
        (["x", "y"] * 999, {"use_dictionary": False}, 1000, False),
        (MANY, {"compression": "none"}, 20_000, False),
        (MANY, {"compression": "none"}, 50_000, True),
        (MANY, {"dictionary_pagesize_limit": 9000, "data_page_size": 1000}, 50_000, False),  # the rest is beside it
    ],
)
def test_a_dictionary_is_small_if_its_page_is_and_its_writer_says_that_all_values_are_in_it(
    values, options, most_bytes, is_small
):
    file = parquet_of(pa.table({"a": pa.array(values, pa.string())}), **options)
    [chunk] = chunks_of(footer_of(file).row_groups[0])
    assert has_small_dictionary(chunk, most_bytes) is is_small
    meta = {number: field for number, field in chunk[ids.CHUNK_META].value.items() if number != ids.ENCODING_STATISTICS}
    assert not has_small_dictionary({**chunk, ids.CHUNK_META: Field(STRUCT, meta)}, most_bytes)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: field_value({6: Field(I16, 1)}, 7), "the footer lacks the required field 7"),
        (lambda: {}[7], "the footer has fields of wrong types: KeyError"),
        (lambda: [].pop(0), "the footer has fields of wrong types: IndexError"),
        (lambda: b"".values, "the footer has fields of wrong types: AttributeError"),
        (lambda: 1 + b"", "the footer has fields of wrong types: TypeError"),
        (lambda: min([]), "the footer has fields of wrong types: ValueError"),
        (lambda: (1 << 70).to_bytes(8, "little"), "the footer has fields of wrong types: OverflowError"),
    ],
)
def test_missing_fields_and_fields_of_a_wrong_type_are_damage(read, message):
    with pytest.raises(CorruptFileError, match=message), fields_of_known_types():
        read()
