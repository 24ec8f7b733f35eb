"""Field ids of Parquet footers: each names the field that pyarrow reads under its name."""

from decimal import Decimal

import pyarrow as pa
import pytest
from parquet_bytes import footer_of, metadata_of, parquet_of

from table.files.parquet import field_ids as ids

ROWS = pa.table({"n": range(300), "s": [f"text {n % 7}" if n % 9 else None for n in range(300)]})
FILE = parquet_of(ROWS, row_group_size=200, compression="zstd")
PLACES = [(group, chunk) for group in range(2) for chunk in range(2)]


def fields_at(group, chunk):
    """ColumnMetaData of a chunk, and the chunk as pyarrow describes it."""
    fields = footer_of(FILE).row_groups[group][ids.COLUMNS].value.values[chunk][ids.CHUNK_META].value
    return fields, metadata_of(FILE).row_group(group).column(chunk)


@pytest.mark.parametrize(("group", "chunk"), PLACES)
def test_the_fields_of_a_chunk_are_those_of_pyarrow(group, chunk):
    fields, known = fields_at(group, chunk)
    numbers = (ids.NUM_VALUES, ids.UNCOMPRESSED, ids.CHUNK_BYTES, ids.DATA_PAGE, ids.DICTIONARY_PAGE)
    assert [fields[number].value for number in numbers] == [
        known.num_values,
        known.total_uncompressed_size,
        known.total_compressed_size,
        known.data_page_offset,
        known.dictionary_page_offset,
    ]
    assert b".".join(fields[ids.PATH].value.values).decode() == known.path_in_schema
    assert (fields[ids.TYPE].value == ids.BYTE_ARRAY) is (known.physical_type == "BYTE_ARRAY")


@pytest.mark.parametrize("group", [0, 1])
def test_the_fields_of_a_statistic_are_those_of_pyarrow(group):
    fields, known = fields_at(group, 1)
    held = fields[ids.STATISTICS].value
    assert held[ids.NULLS].value == known.statistics.null_count > 0
    assert [held[number].value.decode() for number in (ids.LOWER, ids.UPPER)] == [
        known.statistics.min,
        known.statistics.max,
    ]


@pytest.mark.parametrize("group", [0, 1])
def test_the_fields_of_a_row_group_are_those_of_pyarrow(group):
    fields, known = footer_of(FILE).row_groups[group], metadata_of(FILE).row_group(group)
    chunks = [known.column(number) for number in range(2)]
    assert len(fields[ids.COLUMNS].value.values) == known.num_columns
    assert fields[ids.TOTAL_BYTES].value == known.total_byte_size
    assert fields[ids.GROUP_ROWS].value == known.num_rows
    assert fields[ids.GROUP_OFFSET].value == chunks[0].dictionary_page_offset
    assert fields[ids.COMPRESSED].value == sum(chunk.total_compressed_size for chunk in chunks)
    totals = [tuple(fields_at(group, number)[0][part].value for number in range(2)) for _, part in ids.TOTALS]
    assert [fields[total].value for total, _ in ids.TOTALS] == list(map(sum, totals))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, pa.bool_()),
        (1, pa.int32()),
        (1, pa.int64()),
        (1.0, pa.float32()),
        (1.0, pa.float64()),
        (1, pa.timestamp("ns")),  # as 12 bytes in a file (INT96)
        (Decimal("1.5"), pa.decimal128(38, 1)),
    ],
    ids=str,
)
def test_the_width_of_a_physical_type_is_that_of_arrow_and_at_least_a_byte(value, kind):
    file = parquet_of(pa.table({"a": pa.array([value], kind)}), use_deprecated_int96_timestamps=True)
    code = footer_of(file).row_groups[0][ids.COLUMNS].value.values[0][ids.CHUNK_META].value[ids.TYPE].value
    assert ids.WIDTHS[code] == -(-kind.bit_width // 8)
    assert ids.BYTE_ARRAY not in ids.WIDTHS


@pytest.mark.parametrize("use_dictionary", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_data_pages_are_told_by_their_type_and_places_in_a_dictionary_by_their_encoding(version, use_dictionary):
    file = parquet_of(ROWS, version=version, use_dictionary=use_dictionary)
    for chunk in footer_of(file).row_groups[0][ids.COLUMNS].value.values:
        pages = chunk[ids.CHUNK_META].value[ids.ENCODING_STATISTICS].value.values
        data = [one for one in pages if one[ids.PAGE_TYPE].value in ids.DATA_PAGE_TYPES]
        assert len(pages) - len(data) == use_dictionary
        assert [one[ids.PAGE_ENCODING].value in ids.PLACES for one in data] == [use_dictionary]
