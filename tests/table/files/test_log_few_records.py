"""Few rows encoded one after another are the bytes that their columns give, and the same rows are refused."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.files.log.avro_data import encode_avro_runs
from table.files.log.avro_encoders import RowEncoder
from table.files.log.few_records import FEW_ROWS, FewRecords, is_plain
from table.schema.avro_schema import schema_json

LONGS, TEXTS = st.integers(-(2**63), 2**63 - 1), st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
TYPES = {
    "text": (pa.string(), TEXTS),
    "raw": (pa.binary(), st.binary(max_size=9)),
    "flag": (pa.bool_(), st.booleans()),
    "small": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "large": (pa.int64(), LONGS),
    "half": (pa.float32(), st.floats(width=32)),
    "whole": (pa.float64(), st.floats()),
    "day": (pa.date32(), st.integers(-(2**31), 2**31 - 1)),
    "at": (pa.timestamp("us", "UTC"), LONGS),
}
NULLABLE = pa.schema([pa.field(name, arrow) for name, (arrow, _) in TYPES.items()])
REQUIRED = pa.schema([pa.field(name, arrow, nullable=False) for name, (arrow, _) in TYPES.items()])


def rows_of(values, schema):
    numbers = {pa.date32(): pa.int32(), pa.timestamp("us", "UTC"): pa.int64()}
    stored = pa.schema([pa.field(field.name, numbers.get(field.type, field.type)) for field in schema])
    # dates and times from all numbers: Python has no objects for most of them
    return pa.Table.from_pylist(values, stored).cast(pa.schema([field.with_nullable(True) for field in schema]))


def records(*, nulls):
    return st.lists(
        st.fixed_dictionaries({name: st.none() | value if nulls else value for name, (_, value) in TYPES.items()}),
        min_size=1,
        max_size=FEW_ROWS + 2,
    )


@given(records(nulls=True))
def test_nullable_columns_give_the_bytes_of_their_columns(values):
    rows, avro = rows_of(values, NULLABLE), schema_json(NULLABLE, "t")
    assert FewRecords(json.loads(avro)).encode(rows) == RowEncoder(json.loads(avro)).encode(rows).tobytes()


@given(records(nulls=False))
def test_required_columns_give_the_bytes_of_their_columns(values):
    rows, avro = rows_of(values, REQUIRED), schema_json(REQUIRED, "t")
    assert FewRecords(json.loads(avro)).encode(rows) == RowEncoder(json.loads(avro)).encode(rows).tobytes()


def test_columns_in_another_order_and_of_another_width_are_cast():
    avro = json.loads(schema_json(pa.schema([("a", pa.int64()), ("b", pa.string())]), "t"))
    rows = pa.table({"b": pa.array(["x"], pa.large_string()), "a": pa.array([7], pa.int32())})
    assert FewRecords(avro).encode(rows) == RowEncoder(avro).encode(rows).tobytes()


@pytest.mark.parametrize("encoder", [FewRecords, RowEncoder])
def test_a_null_that_the_schema_forbids_is_refused(encoder):
    avro = json.loads(schema_json(pa.schema([pa.field("a", pa.int64(), nullable=False)]), "t"))
    with pytest.raises(ValueError, match="the column 'a' has nulls"):
        encoder(avro).encode(pa.table({"a": pa.array([1, None], pa.int64())}))


@pytest.mark.parametrize(
    ("arrow", "is_one"),
    [
        (pa.string(), True),
        (pa.timestamp("us", "UTC"), True),
        (pa.decimal128(9, 2), False),
        (pa.list_(pa.int64()), False),
        (pa.map_(pa.string(), pa.int64()), False),
        (pa.struct([("a", pa.int64())]), False),
    ],
)
def test_nested_columns_and_decimals_are_not_plain(arrow, is_one):
    assert is_plain(json.loads(schema_json(pa.schema([("a", arrow)]), "t"))) is is_one


@pytest.mark.parametrize("count", [1, FEW_ROWS, FEW_ROWS + 1])
@pytest.mark.parametrize("arrow", [pa.int64(), pa.list_(pa.int64())])
def test_either_encoder_gives_one_run(count, arrow):
    schema = pa.schema([("a", arrow)])
    rows = pa.table({"a": pa.array([None] * count, arrow)})
    assert [records for records, _ in encode_avro_runs(schema_json(schema, "t"), rows)] == [count]


def test_no_rows_are_no_run():
    schema = pa.schema([("a", pa.int64())])
    assert list(encode_avro_runs(schema_json(schema, "t"), schema.empty_table())) == []
