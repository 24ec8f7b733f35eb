"""Field ids and codes of Parquet's footers (pure; parquet.thrift of the format's project)."""

# field ids: RowGroup, ColumnChunk, ColumnMetaData
COLUMNS, TOTAL_BYTES, GROUP_ROWS, GROUP_OFFSET, COMPRESSED, ORDINAL = 1, 2, 3, 5, 6, 7
CHUNK_OFFSET, CHUNK_META = 2, 3
TYPE, PATH, NUM_VALUES, UNCOMPRESSED, CHUNK_BYTES = 1, 3, 5, 6, 7
DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, STATISTICS, ENCODING_STATISTICS = 9, 10, 11, 12, 13
TOTALS = ((TOTAL_BYTES, UNCOMPRESSED), (COMPRESSED, CHUNK_BYTES))
BYTE_ARRAY = 6
# field ids of Statistics
OLD_UPPER, OLD_LOWER, NULLS, UPPER, LOWER, UPPER_EXACT, LOWER_EXACT = 1, 2, 3, 5, 6, 7, 8
# physical type -> bytes of a value: booleans, numbers, and fixed arrays (mostly decimals)
WIDTHS = {0: 1, 1: 4, 2: 8, 3: 8, 4: 4, 5: 8, 7: 16}
# field ids of PageEncodingStats; DATA_PAGE and DATA_PAGE_V2; PLAIN_DICTIONARY and RLE_DICTIONARY
PAGE_TYPE, PAGE_ENCODING = 1, 2
DATA_PAGE_TYPES, PLACES = (0, 3), (2, 8)
PAGE_OFFSETS = (DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE)
