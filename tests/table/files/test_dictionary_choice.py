import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from table.files.base.writer import BaseFileWriter
from table.files.parquet.dictionary_choice import _spread, columns_with_dictionary, estimate_distinct
from table.options.groups import BaseFileSettings
from table.schema.avro_schema import schema_json, with_meta_columns
from table.storage.local import LocalStorage
from table.write.meta_columns import stamp_new_rows

ROWS = 100_000


def numbers(*shape, below):
    return np.random.default_rng(7).integers(0, below, shape)


def normal(*shape):
    return np.random.default_rng(7).normal(size=shape)


def column(values, arrow=None):
    return pa.chunked_array([pa.array(values, arrow)])


def texts(kinds, size):
    return [f"{number:0{size}d}" for number in numbers(ROWS, below=kinds)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (column(np.arange(ROWS)), False),
        (column(normal(ROWS)), False),
        (column(numbers(ROWS, below=10_000_000)), False),
        (column(numbers(ROWS, below=100)), True),
        (column(numbers(ROWS, below=20_000)), True),
        (column(numbers(ROWS, below=80_000).astype(np.int32)), False),
        (column(texts(5_000, 10)), True),
        (column(texts(20_000, 50)), True),
        (column(texts(10**12, 36)), False),
        (column(texts(60_000, 200)), False),  # more than a dictionary may take
        # equal values that lie together
        (column(np.arange(ROWS) // 100), True),
        (column(np.arange(ROWS) // 10), True),
        (column([f"{number // 20:036}" for number in range(ROWS)]), True),
        (column(np.arange(ROWS) % 50), True),
        (column(np.arange(ROWS) % 50_000), False),
        (column([Decimal(number) for number in range(ROWS)], pa.decimal128(20, 0)), False),
        (column([datetime.date(2026, 1, 1 + number % 9) for number in range(ROWS)]), True),
        (column([b"%d" % number for number in range(ROWS)]), False),
        (column(np.arange(ROWS) % 2 == 0), True),
        (column([None] * ROWS, pa.int64()), True),
        (column([number if number % 100 == 0 else None for number in range(ROWS)]), True),
        (column(np.arange(9_999)), True),
        (pa.chunked_array([pa.array(["a"] * ROWS).dictionary_encode()]), True),
    ],
)
def test_a_dictionary_is_for_values_that_repeat(values, expected):
    assert columns_with_dictionary(pa.table([values], ["v"])) == (["v"] if expected else [])


def test_row_groups_have_a_dictionary_each():
    values = column(numbers(ROWS, below=20_000))
    assert columns_with_dictionary(pa.table([values], ["v"]), 1) == ["v"]
    assert columns_with_dictionary(pa.table([values], ["v"]), 10) == []  # 10,000 rows with 7,900 values each


def test_values_that_are_frequent_somewhere_are_found_everywhere():
    values = column(np.concatenate([np.arange(10_000), np.zeros(ROWS - 10_000, np.int64)]))
    assert columns_with_dictionary(pa.table([values], ["v"])) == ["v"]


def nested(count):
    every = range(count)
    return pa.table(
        {
            "tags": pa.array([["a", None, "b"] if number % 2 else None for number in every]),
            "vector": pa.array(list(normal(count, 8)), pa.list_(pa.float64())),
            "place": pa.array([{"city": f"c{number % 7}", "geo": {"lat": number / 7}} for number in every]),
            "counts": pa.array([[(f"k{number % 3}", number)] for number in every], pa.map_(pa.string(), pa.int64())),
            "spots": pa.array(
                [[{"x": 1, "id": f"{number + count * at:030}"} for at in range(number % 3)] for number in every]
            ),
        }
    )


@pytest.mark.parametrize("first", [0, 5])
def test_parts_of_nested_columns_are_looked_at_one_by_one(first):
    rows = nested(20_000).slice(first)
    found = columns_with_dictionary(rows)
    assert found == ["tags.list.element", "place.city", "counts.key_value.key", "spots.list.element.x"]
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, use_dictionary=found)
    group = pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    assert [chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page] == found


def test_few_lists_of_many_values_are_many_values():
    rows = pa.table({"vector": pa.array(list(normal(100, 768)), pa.list_(pa.float64()))})
    assert columns_with_dictionary(rows) == []
    assert columns_with_dictionary(rows.slice(0, 2)) == ["vector.list.element"]
    assert columns_with_dictionary(rows.slice(0, 0)) == ["vector.list.element"]


@pytest.mark.parametrize("count", [0, 1, 1_024, 1_025, 1_500, 10_000, 123_457])
def test_no_row_is_looked_at_twice(count):
    positions = _spread(count).to_numpy()
    assert len(set(positions.tolist())) == len(positions) == min(count, 1_024)
    assert ((positions >= 0) & (positions < count)).all()


@pytest.mark.parametrize("distinct", [1, 10, 1_000, 20_000, 200_000])
def test_the_number_of_values_is_estimated_by_a_sample(distinct):
    values = numbers(ROWS, below=distinct)
    estimated = estimate_distinct(1_024, len(np.unique(values[:1_024])), ROWS)
    assert estimated == pytest.approx(len(np.unique(values)), rel=0.4)


@pytest.mark.parametrize("wanted", [True, False])
def test_files_are_written_accordingly(tmp_path, wanted):
    storage = LocalStorage(str(tmp_path))
    schema = pa.schema([("k", pa.string()), ("v", pa.int64()), ("kind", pa.string())])
    keys = [f"{number:x}" for number in numbers(10_000, below=2**62)]
    rows = pa.table({"k": keys, "v": numbers(10_000, below=2**62), "kind": ["a", "b"] * 5_000}, schema=schema)
    settings = BaseFileSettings(dictionary=wanted)
    json_schema = schema_json(with_meta_columns(schema), "t")
    writer = BaseFileWriter(storage, "f.parquet", with_meta_columns(schema), json_schema, settings)
    keyed = rows.append_column("_hoodie_record_key", rows["k"])
    writer.write(stamp_new_rows(keyed, schema, "20260101000000000", "", "f.parquet", (0, 0)))
    writer.close()
    group = pq.read_metadata(tmp_path / "f.parquet").row_group(0)
    chunks = (group.column(number) for number in range(group.num_columns))
    with_dictionary = {chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page}
    repeated = {"_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_file_name"}
    assert with_dictionary == repeated | ({"kind"} if wanted else set())
    assert pq.read_table(tmp_path / "f.parquet").select(schema.names).equals(rows)
