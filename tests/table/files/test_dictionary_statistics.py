"""Statistics that are made of dictionaries are those that Arrow makes of their strings."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import table.files.parquet.dictionary_statistics as statistics_module
from table.files.base.hudi_footer import encode_entries
from table.files.bloom.bloom_filter import sized_filter
from table.files.parquet.dictionary_statistics import as_write_statistics, columns_told_here
from table.files.parquet.footer import MAGIC, join_footer
from table.files.parquet.row_group_writer import RowGroupWriter
from table.options.groups import BaseFileSettings
from table.schema.avro_schema import FILE_NAME

TEXT = pa.dictionary(pa.int32(), pa.string())
ROWS = st.lists(st.none() | st.sampled_from(["", "a", "b", "\x00", "日本", "z" * 4096]), min_size=1, max_size=40)


def statistics_of(rows, group_rows, told_from):
    """(nulls, least, greatest) of each column of each row group, as pyarrow reads them."""
    settings, sink = BaseFileSettings(), io.BytesIO()
    sink.write(MAGIC)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics_module, "TOLD_ROWS", told_from)
        writer = RowGroupWriter(sink, rows.schema, settings)
        writer.write(rows, -(-len(rows) // group_rows))
        groups, like = writer.finish()
    encoded = [group.as_row_group(number, FILE_NAME) for number, group in enumerate(groups)]
    sink.write(join_footer(encoded, like, encode_entries("{}", sized_filter(1, 0.1), None), settings.codec))
    file = pq.ParquetFile(pa.BufferReader(sink.getvalue()))
    assert file.read().num_rows == len(rows)
    found = []
    for group in range(file.metadata.num_row_groups):
        for number in range(file.metadata.num_columns):
            held = file.metadata.row_group(group).column(number)
            told = held.statistics
            assert told.has_null_count, held.path_in_schema
            found.append((held.path_in_schema, told.null_count, (told.min, told.max) if told.has_min_max else None))
    return found


@given(ROWS, st.integers(1, 40))
def test_they_are_those_of_the_strings(values, group_rows):
    column = pa.array(values, pa.string())
    others = {
        FILE_NAME: pa.array(["f"] * len(values)).dictionary_encode(),
        "number": range(len(values)),
        # short ones: of long texts in nested columns Arrow 26 once in thousands of files forgets the empty one
        "nested": pa.array(
            [[{"text": value and value[:9]}] for value in values], pa.list_(pa.struct([("text", pa.string())]))
        ),
    }
    # a value that is not in use, before the others
    held = pa.concat_arrays([pa.array(["\x00\x00 unused"]), column]).dictionary_encode().slice(1)
    as_dictionary, as_text = pa.table({"v": held, **others}), pa.table({"v": column, **others})
    told = statistics_of(as_dictionary, group_rows, told_from=1)
    assert told == statistics_of(as_text, group_rows, told_from=1_000_000)


def test_small_row_groups_and_other_columns_are_told_by_arrow():
    schema = pa.schema(
        [("v", TEXT), ("n", pa.int64()), ("l", pa.list_(pa.string())), ("b", pa.dictionary(pa.int32(), pa.binary()))]
    )
    assert columns_told_here(schema, statistics_module.TOLD_ROWS - 1) == []
    assert columns_told_here(schema, statistics_module.TOLD_ROWS) == ["v"]
    assert as_write_statistics(schema, []) is True
    assert as_write_statistics(schema, ["v"]) == ["n", "l.list.element", "b"]
    assert as_write_statistics(pa.schema([("v", TEXT)]), ["v"]) is False
