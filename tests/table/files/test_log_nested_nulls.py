"""Nulls within lists, maps and structs whose schema allows none, and unions of one type: no value is made up."""

import io

import fastavro
import pyarrow as pa
import pytest

from table.files.log.avro_encoders import RowEncoder
from table.schema.avro_schema import to_avro

LIST = pa.list_(pa.field("element", pa.string(), nullable=False))
MAP = pa.map_(pa.string(), pa.field("value", pa.float64(), nullable=False))
STRUCT = pa.struct([pa.field("n", pa.int64(), nullable=False)])
DECIMALS = pa.list_(pa.field("element", pa.decimal128(9, 2), nullable=False))


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (LIST, ["a"], ["a", None]),
        (MAP, [("k", 1.0)], [("k", None)]),
        (STRUCT, {"n": 1}, {"n": None}),
        (DECIMALS, [1], [None]),
        (pa.list_(pa.field("element", STRUCT)), [None, {"n": 1}], [{"n": None}]),
    ],
    ids=str,
)
def test_a_null_that_the_schema_does_not_allow_is_refused_and_becomes_no_value(kind, good, bad):
    schema = to_avro(pa.schema([("c", kind)]), "t")
    encoder = RowEncoder(schema)
    assert len(encoder.encode(pa.table({"c": pa.array([good, None], kind)})))
    with pytest.raises(ValueError, match="has nulls, which its schema does not allow"):
        encoder.encode(pa.table({"c": pa.array([good, bad], kind)}))


@pytest.mark.parametrize(("union", "branch"), [(["string"], b"\x00"), (["null", "string"], b"\x02")], ids=str)
def test_a_value_of_a_union_of_one_type_has_its_branch_in_front(union, branch):
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": union}]}
    record = RowEncoder(schema).encode(pa.table({"a": ["x"]})).tobytes()[4:]
    assert record == branch + b"\x02x"
    assert fastavro.schemaless_reader(io.BytesIO(record), schema) == {"a": "x"}
