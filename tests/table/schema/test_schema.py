import json
import os

import pyarrow as pa
import pytest

from table.errors import CorruptFileError
from table.schema.avro_schema import (
    META_COLUMNS,
    decimal_bytes,
    from_avro,
    schema_json,
    to_avro,
    with_meta_columns,
    without_meta_columns,
)

EVERY_TYPE = pa.schema(
    [
        ("a", pa.bool_()), ("b", pa.int32()), ("c", pa.int64()), ("d", pa.float32()), ("e", pa.float64()),
        ("f", pa.decimal128(10, 2)), ("g", pa.date32()), ("h", pa.timestamp("us", "UTC")), ("i", pa.string()),
        ("j", pa.binary()), pa.field("k", pa.int64(), nullable=False), ("l", pa.decimal128(38, 18)),
    ]
)  # fmt: skip


def test_every_type_round_trips_through_avro():
    assert from_avro(schema_json(EVERY_TYPE, "t")).equals(EVERY_TYPE)


def test_the_avro_form_is_hudis(golden):
    path, _ = golden("cow_insert_partitioned")
    newest = sorted(name for name in os.listdir(f"{path}/.hoodie") if name.endswith(".commit"))[-1]
    with open(f"{path}/.hoodie/{newest}") as file:
        stored = json.load(file)["extraMetadata"]["schema"]
    assert schema_json(from_avro(stored), "cow_insert_partitioned") == stored


def test_meta_columns_are_hudis_in_the_footer(golden):
    import pyarrow.parquet as pq

    path, expected = golden("cow_insert_partitioned")
    footer = pq.read_metadata(f"{path}/{expected['live_base_files'][0]}").metadata[b"parquet.avro.schema"].decode()
    schema = from_avro(footer)
    assert tuple(schema.names[:5]) == META_COLUMNS
    table_schema = without_meta_columns(schema)
    assert to_avro(with_meta_columns(table_schema), "cow_insert_partitioned") == json.loads(footer)


@pytest.mark.parametrize(("precision", "size"), [(1, 1), (2, 1), (3, 2), (5, 3), (10, 5), (18, 8), (20, 9), (38, 16)])
def test_decimals_take_the_least_bytes(precision, size):
    assert decimal_bytes(precision) == size


def test_a_name_that_avro_refuses_in_the_tables_name_becomes_an_underscore():
    assert to_avro(EVERY_TYPE, "my-table.1")["name"] == "my_table_1_record"
    assert to_avro(EVERY_TYPE, "9")["namespace"] == "hoodie._9"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"type":"record","fields":[{"name":"a","type":"what"}]}',
                                  '{"type":"record","fields":[{"name":"a","type":["int","string"]}]}'])  # fmt: skip
def test_what_is_no_schema_is_said_to_be_none(text):
    with pytest.raises(CorruptFileError):
        from_avro(text)
