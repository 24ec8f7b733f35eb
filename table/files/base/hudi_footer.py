"""Hudi's entries in a base file's footer: bloom filter, key range, schema (pure; HoodieBloomFilterWriteSupport)."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table.errors import CorruptFileError
from table.files.bloom import bloom_filter
from table.files.bloom.bloom_filter import AnyBloomFilter
from table.files.bloom.encoded_filter import view_filter
from table.files.parquet.footer import Footer

BLOOM_KEY = "org.apache.hudi.bloomfilter"
BLOOM_TYPE_KEY = "hoodie_bloom_filter_type_code"
MIN_KEY, MAX_KEY = "hoodie_min_record_key", "hoodie_max_record_key"
AVRO_SCHEMA_KEY = "parquet.avro.schema"
# Spark refuses dates before 1582 and times before 1900 in files that do not say by which calendar they
# were written; this is how a file says "the proleptic Gregorian one" (DataSourceUtils.datetimeRebaseSpec)
CALENDAR = {"org.apache.spark.version": "3.0.0"}


def encode_entries(avro_schema: str, bloom: AnyBloomFilter | None, bounds: tuple[str, str] | None) -> dict[str, str]:
    """The entries of a footer.

    Args:
        avro_schema: JSON, with meta columns.
        bloom: filter of all record keys; None: rows do not hold their keys.
        bounds: least and greatest record key; None for a file without rows, or without keys.
    """
    entries = {**CALENDAR, AVRO_SCHEMA_KEY: avro_schema}
    if bloom is not None:
        entries[BLOOM_KEY] = bloom.encode()
        if bloom.type_code != bloom_filter.SIMPLE:
            entries[BLOOM_TYPE_KEY] = bloom.type_code
    if bounds is not None:
        entries[MIN_KEY], entries[MAX_KEY] = bounds
    return entries


def stored_bounds(footer: Footer) -> tuple[str, str] | None:
    """Least and greatest record key of a footer, or None if it has none."""
    low, high = text_of_footer(footer, MIN_KEY), text_of_footer(footer, MAX_KEY)
    return (low, high) if low is not None and high is not None else None


def text_of_footer(footer: Footer, name: str) -> str | None:
    """An entry of a footer; None if it is absent, or not text."""
    value = footer.entries.get(name)
    try:
        return str(value, "utf-8") if value is not None else None
    except UnicodeDecodeError:
        return None


def key_range(keys: pa.ChunkedArray) -> tuple[str, str]:
    """Least and greatest key as Java compares strings, that is by UTF-16 units.

    Arrow compares UTF-8 bytes, which agrees unless there are characters at or above U+E000.
    """
    bounds = pc.min_max(keys).as_py()
    if not any(has_high_characters(chunk) for chunk in keys.chunks):
        return bounds["min"], bounds["max"]
    distinct = keys.unique().to_pylist()
    return min(distinct, key=_utf16), max(distinct, key=_utf16)


def has_high_characters(chunk: pa.Array) -> bool:
    """Whether a string array may hold characters that UTF-8 and UTF-16 sort differently."""
    data = chunk.buffers()[2]
    return data is not None and bool((np.frombuffer(data, np.uint8) >= 0xEE).any())


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def filter_of_footer(footer: Footer, max_entries: int) -> AnyBloomFilter | None:
    """The bloom filter in a footer, or None if there is none, or it cannot be read.

    Args:
        footer: footer of a base file.
        max_entries: bound of a dynamic filter, for keys that are added later.
    """
    text, kind = footer.entries.get(BLOOM_KEY), text_of_footer(footer, BLOOM_TYPE_KEY)
    if text is None:
        return None
    try:
        if footer.is_sealed and kind in (None, bloom_filter.SIMPLE):
            return view_filter(text)  # the seal's checksum shows that the text is unchanged
        return bloom_filter.decode_filter(str(text, "utf-8"), kind, max_entries)
    except (CorruptFileError, UnicodeDecodeError):
        return None  # a damaged filter damages no rows: the writer builds a new one
