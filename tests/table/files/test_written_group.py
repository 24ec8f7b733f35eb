"""Row groups cut out of the footer of Arrow's writer are those that decoding it gives."""

import io

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parquet_bytes import data_of, footer_of, joined, parquet_of, rows_of_file
from tiers import examples

from table.errors import CorruptFileError
from table.files.parquet import field_ids as ids
from table.files.parquet.footer import MAGIC, join_footer
from table.files.parquet.row_group_writer import RowGroupWriter, empty_footer
from table.files.parquet.row_groups import chunk_extent, encode_group, moved_group
from table.files.parquet.thrift_compact import I64, Field, encode_struct
from table.files.parquet.written_group import cut_groups
from table.options.groups import BaseFileSettings
from table.schema.avro_schema import FILE_NAME, RECORD_KEY

ROWS = pa.table({"a": ["x", "yy"] * 50, "c": [[1.5, None], []] * 50, "b": range(100)})
FILE = parquet_of(ROWS, row_group_size=40, use_dictionary=["a"])
FOOTER = footer_of(FILE)
HEAD = footer_of(parquet_of(ROWS.slice(0, 0))).before_rows
RAW = encode_struct(FOOTER.fields)


@given(st.integers(-4, 2**40), st.sampled_from(["a", "b"]))
@settings(max_examples=examples(60), deadline=None)
def test_they_are_moved_and_encoded_as_structs_are(by, column):
    cut = cut_groups(RAW, HEAD, [by] * 3)
    wanted = [moved_group(group, by) for group in FOOTER.row_groups]
    assert [group.decoded for group in cut] == wanted
    for number, (group, struct) in enumerate(zip(cut, wanted, strict=True), 5):
        assert group.as_row_group(number, column) == encode_group(struct, number, column)
        assert group.with_struct(struct) == group


@given(st.integers(0, 5000))
@settings(max_examples=examples(20), deadline=None)
def test_rows_are_read_where_they_were_moved_to(by):
    cut = cut_groups(RAW, HEAD, [by] * 3)
    moved = [group.decoded for group in cut]
    assert rows_of_file(joined(b"PAR1" + bytes(by) + data_of(FILE)[4:], FOOTER, moved)) == ROWS


def test_a_second_description_of_a_chunk_is_forgotten():
    """Arrow before version 18 names its place."""
    groups = FOOTER.row_groups
    for group in groups:
        for chunk in group[ids.COLUMNS].value.values:
            assert chunk[ids.CHUNK_OFFSET].value in (0, sum(chunk_extent(chunk)))
    chunks = [{**chunk, ids.CHUNK_OFFSET: Field(I64, 99_999)} for chunk in groups[0][ids.COLUMNS].value.values]
    placed = {**groups[0], ids.COLUMNS: groups[0][ids.COLUMNS]._replace(value=_items(groups[0], chunks))}
    fields = {**FOOTER.fields, 4: FOOTER.fields[4]._replace(value=FOOTER.fields[4].value._replace(values=[placed]))}
    for by in (0, 7):
        [cut] = cut_groups(encode_struct(fields), HEAD, [by])
        assert cut.decoded == moved_group(groups[0], by)


def _items(group, chunks):
    return group[ids.COLUMNS].value._replace(values=chunks)


@pytest.mark.parametrize("column", ["missing", "c", "element"])
def test_a_row_group_without_the_column_is_refused(column):
    [first, *_] = cut_groups(RAW, HEAD, [0] * 3)
    with pytest.raises(CorruptFileError, match=f"a row group lacks the column '{column}'"):
        first.as_row_group(0, column)


def test_a_footer_that_is_not_of_these_columns_is_refused():
    other = footer_of(parquet_of(ROWS.select(["a"]).slice(0, 0))).before_rows
    with pytest.raises(CorruptFileError, match="in two ways"):
        cut_groups(RAW, other, [0] * 3)
    with pytest.raises(CorruptFileError, match="describes 3 row groups, and has written 2"):
        cut_groups(RAW, HEAD, [0] * 2)


@pytest.mark.parametrize("shared", [False, True])
def test_the_writer_cuts_what_it_would_have_decoded(shared):
    keys = [f"k{n}" for n in range(300)]
    rows = pa.table({RECORD_KEY: keys, FILE_NAME: ["f"] * 300, "id": keys, "n": range(300)})
    sink, form = io.BytesIO(), BaseFileSettings(shared_key_chunk=shared)
    sink.write(MAGIC)
    writer = RowGroupWriter(sink, rows.schema, form)
    writer.write(rows, 3)
    sink.write(b"between")
    writer.write(rows)
    groups, like = writer.finish()
    assert like == empty_footer(rows.schema, form)
    assert len(groups) == 4
    encoded = [group.as_row_group(number, FILE_NAME) for number, group in enumerate(groups)]
    assert encoded == [encode_group(group.decoded, number, FILE_NAME) for number, group in enumerate(groups)]
    file = sink.getvalue() + join_footer(encoded, like, {}, form.codec)
    assert rows_of_file(file) == pa.concat_tables([rows, rows])
    assert footer_of(file).num_rows == 600
