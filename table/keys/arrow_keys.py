"""Record keys and partition paths of Arrow rows, with the same text as the SQL of `keygen` (pure).

Both modules follow the same `KeyRules`, and the tests compare both with Hudi. There is no loop over rows, except for
floating point numbers, which become Java's text.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table.columns.cast import cast_column
from table.keys.arrow_times import format_times
from table.keys.keygen import DEFAULT_PARTITION, EMPTY_KEY, NULL_KEY, KeyRules, url_encode_text

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_LAST_PLAIN_SCALE = 6  # up to this scale Java writes decimals without an exponent


def compute_keys(rules: KeyRules, rows: pa.Table) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Record key and partition path of each row (strings).

    Args:
        rules: rules from `build_key_expressions`, which has checked the columns and their types.
        rows: rows with these columns.

    Returns:
        The keys: null or "" if a row has none. The paths: null if a row has no valid path.
    """
    return compute_record_keys(rules, rows), _partition_paths(rules, rows)


def compute_record_keys(rules: KeyRules, rows: pa.Table) -> pa.ChunkedArray:
    """Record key of each row (string): null or "" if a row has none."""
    texts = [_text_of(_column(name, rows)) for name in rules.record_key]
    if not rules.names_fields:
        return texts[0]
    parts, nothing = [], None
    for name, text in zip(rules.record_key, texts, strict=True):
        is_empty = pc.equal(pc.fill_null(text, ""), "")
        value = pc.fill_null(pc.if_else(pc.equal(text, ""), EMPTY_KEY, text), NULL_KEY)
        parts.append(pc.binary_join_element_wise(f"{name}:", value, ""))
        nothing = is_empty if nothing is None else pc.and_(nothing, is_empty)
    joined = pc.binary_join_element_wise(*parts, ",")
    return pc.if_else(nothing, pa.scalar(None, pa.string()), joined)


def _partition_paths(rules: KeyRules, rows: pa.Table) -> pa.ChunkedArray:
    parts = [_partition_part(rules, rows, number) for number in range(len(rules.partition))]
    if not parts:
        return pa.chunked_array([pa.repeat("", len(rows))])
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "/")


def _partition_part(rules: KeyRules, rows: pa.Table, number: int) -> pa.ChunkedArray:
    column = _column(rules.partition[number][0], rows)
    # there are far fewer values than rows: each value is formatted once
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    value = _spelled(rules, encoded.dictionary, number)
    return pa.chunked_array([value.take(encoded.indices)], pa.string())


def _spelled(rules: KeyRules, values: pa.Array, number: int) -> pa.Array:
    name, way = rules.partition[number]
    chunked = pa.chunked_array([values])
    if way is not None:
        text = format_times(way, chunked)
    else:
        text = _text_of(chunked)
        text = pc.if_else(pc.equal(pc.fill_null(text, ""), ""), DEFAULT_PARTITION, text)
    if rules.url_encode:
        escaped = [None if value is None else url_encode_text(value) for value in text.to_pylist()]
        text = pa.chunked_array([escaped], pa.string())
    if rules.hive_style:
        text = pc.binary_join_element_wise(f"{name}=", text, "")
    return text.combine_chunks()


def _column(name: str, rows: pa.Table) -> pa.ChunkedArray:
    """A column, or a field within structs, which is null where its struct is null. Nulls without a type become text."""
    if name in rows.column_names:
        column = rows.column(name)
    else:
        first, *rest = name.split(".")
        column = pc.struct_field(rows.column(first), rest)
    return cast_column(column, pa.string()) if pa.types.is_null(column.type) else column


def _text_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).cast(pa.string())
    if pa.types.is_binary(kind):
        return pa.chunked_array([_hex(chunk) for chunk in column.chunks], pa.string())
    if pa.types.is_date32(kind):
        texts = _spell_far_dates(column, column.cast(pa.string()))
        # Spark writes a sign before years of more than four digits
        return pc.replace_substring_regex(texts, r"^(\d{5,})", r"+\1")
    if pa.types.is_floating(kind):
        return cast_column(column, pa.string())
    texts = column.cast(pa.string())
    has_exponents = pa.types.is_decimal(kind) and not 0 <= kind.scale <= _LAST_PLAIN_SCALE
    # pyarrow 17 writes 1.E-7, newer ones and Java 1E-7
    return pc.replace_substring(texts, ".E", "E") if has_exponents else texts


def _spell_far_dates(dates: pa.ChunkedArray, texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """The texts of dates, also where pyarrow, which has 16 bits for the year, writes that a value is out of range."""
    is_far = pc.fill_null(pc.starts_with(texts, "<"), False)
    if not pc.any(is_far).as_py():
        return texts
    far = dates.filter(is_far).cast(pa.int32()).to_numpy().astype("datetime64[D]")
    spelled = pa.array(np.datetime_as_string(far), pa.string())
    return pa.chunked_array([pc.replace_with_mask(texts.combine_chunks(), is_far.combine_chunks(), spelled)])


def _hex(values: pa.BinaryArray) -> pa.Array:
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    data = values.buffers()[2]
    octets = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if data is not None else np.empty(0, np.uint8)
    digits = np.empty(2 * len(octets), np.uint8)
    digits[0::2], digits[1::2] = _HEX[octets >> 4], _HEX[octets & 15]
    texts = pa.LargeStringArray.from_buffers(
        len(values), pa.py_buffer((offsets.astype(np.int64) - offsets[0]) * 2), pa.py_buffer(digits)
    )
    return pc.if_else(values.is_valid(), texts.cast(pa.string()), pa.scalar(None, pa.string()))
