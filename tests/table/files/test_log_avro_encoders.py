"""Columns encoded as Avro: fastavro reads their rows back, and what the schema does not hold is refused."""

import io
import json
import math
import struct
from decimal import Decimal

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from table.files.log.avro_encoders import RowEncoder, make_encoder
from table.schema.avro_schema import from_avro, relaxed, to_avro


def record_of(**types):
    return {"type": "record", "name": "r", "fields": [{"name": name, "type": avro} for name, avro in types.items()]}


def read_by_fastavro(avro, encoded):
    """The records behind their lengths; each takes as many bytes as its length says."""
    schema, found, at = fastavro.parse_schema(avro), [], 0
    while at < len(encoded):
        (length,) = struct.unpack_from(">i", encoded, at)
        record = io.BytesIO(encoded[at + 4 : at + 4 + length])
        found.append(fastavro.schemaless_reader(record, schema, None))
        assert record.tell() == length
        at += 4 + length
    return found


def rows_of(avro, records):
    return pa.Table.from_pylist(records, relaxed(from_avro(json.dumps(avro))))


# unions as other writers may order them: the value before the null
OTHER = record_of(
    last=["int", "null"],
    plain="bytes",
    items=[{"type": "array", "items": ["long", "null"]}, "null"],
    inner=[{**record_of(text=["string", "null"], flag="boolean"), "name": "i"}, "null"],
    table={"type": "map", "values": ["double", "null"]},
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
RECORDS = st.fixed_dictionaries(
    {
        "last": st.none() | st.integers(-(2**31), 2**31 - 1),
        "plain": st.binary(max_size=70),
        "items": st.none() | st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=3),
        "inner": st.none() | st.fixed_dictionaries({"text": st.none() | TEXTS, "flag": st.booleans()}),
        "table": st.dictionaries(TEXTS, st.none() | st.floats(allow_nan=False), max_size=3),
    }
)


@given(st.lists(RECORDS, max_size=5))
@settings(deadline=None)
def test_fastavro_reads_rows_of_schemas_whose_unions_have_another_order(records):
    encoded = RowEncoder(OTHER).encode(rows_of(OTHER, records)).tobytes()
    assert read_by_fastavro(OTHER, encoded) == records


def test_fastavro_reads_lists_maps_and_texts_whose_lengths_take_several_bytes():
    avro = record_of(l={"type": "array", "items": "string"}, m={"type": "map", "values": "int"}, t="string")
    counts = [0, 1, 63, 64, 8191, 8192]
    records = [{"l": ["x" * 64] * n, "m": {str(key): key for key in range(n)}, "t": "y" * n} for n in counts]
    assert read_by_fastavro(avro, RowEncoder(avro).encode(rows_of(avro, records)).tobytes()) == records


@given(st.integers(1, 38).flatmap(lambda most: st.tuples(st.just(most), st.integers(0, most))), st.data())
@settings(deadline=None)
def test_fastavro_reads_decimals_of_every_precision(size, data):
    precision, scale = size
    unscaled = st.integers(1 - 10**precision, 10**precision - 1) | st.sampled_from([1 - 10**precision, -1, 0])
    values = [Decimal(f"{number}E-{scale}") for number in data.draw(st.lists(unscaled, max_size=4))]
    kind = pa.decimal128(precision, scale)
    [field] = to_avro(pa.schema([pa.field("d", kind, nullable=False)]), "t")["fields"]
    piece = make_encoder(field["type"]).piece(pa.array([Decimal(0), *values], kind).slice(1))
    out = np.zeros(piece.lengths.sum(), np.uint8)
    piece.write(out, np.cumsum(piece.lengths) - piece.lengths)
    stream = io.BytesIO(out.tobytes())
    assert [fastavro.schemaless_reader(stream, field["type"], None) for _ in values] == values


@pytest.mark.parametrize(("kind", "code"), [("float", "<f"), ("double", "<d")])
def test_floats_keep_their_bits(kind, code):
    avro, values = record_of(a=kind), [math.nan, -0.0, math.inf, -math.inf, 2.0**-126]
    encoded = RowEncoder(avro).encode(rows_of(avro, [{"a": value} for value in values])).tobytes()
    size = struct.calcsize(code)
    assert encoded == b"".join(struct.pack(">i", size) + struct.pack(code, value) for value in values)


@pytest.mark.parametrize(
    "avro",
    [
        {"type": "enum", "name": "e", "symbols": ["A"]},
        {"type": "fixed", "name": "f", "size": 3},
        {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1},
    ],
)
@pytest.mark.parametrize("inside", [lambda avro: avro, lambda avro: ["null", {"type": "array", "items": avro}]])
def test_types_that_tables_written_here_do_not_have_are_refused(avro, inside):
    with pytest.raises(ValueError, match="the type .* is not written"):
        make_encoder(inside(avro))


def test_columns_are_found_by_name_and_narrow_numbers_become_wide():
    avro = record_of(a="long", b="string")
    rows = pa.table({"more": [[1]], "b": ["x"], "a": pa.array([7], pa.int32())})
    assert read_by_fastavro(avro, RowEncoder(avro).encode(rows).tobytes()) == [{"a": 7, "b": "x"}]
    with pytest.raises(KeyError, match="a"):
        RowEncoder(avro).encode(rows.drop_columns("a"))


@pytest.mark.parametrize(
    ("kind", "values"), [("int", [2**31]), ("long", ["x"]), ("long", [1.5]), ("string", [b"\xff"]), ("boolean", ["?"])]
)
def test_values_of_another_type_are_refused(kind, values):
    with pytest.raises(pa.ArrowInvalid):
        RowEncoder(record_of(a=kind)).encode(pa.table({"a": values}))
