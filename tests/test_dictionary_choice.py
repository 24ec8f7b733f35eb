import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from table.files.base_file_writer import BaseFileWriter
from table.files.dictionary_choice import estimate_distinct, values_repeat
from table.local_storage import LocalStorage
from table.schema import schema_json, with_meta_columns
from table.settings import BaseFileSettings
from table.write.meta_columns import stamp_new_rows

ROWS = 100_000
rng = np.random.default_rng(7)


def column(values, arrow=None):
    return pa.chunked_array([pa.array(values, arrow)])


def texts(kinds, size):
    return [f"{number:0{size}d}" for number in rng.integers(0, kinds, ROWS)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (column(np.arange(ROWS)), False),
        (column(rng.normal(size=ROWS)), False),
        (column(rng.integers(0, 10_000_000, ROWS)), False),
        (column(rng.integers(0, 100, ROWS)), True),
        (column(rng.integers(0, 20_000, ROWS)), True),
        (column(rng.integers(0, 80_000, ROWS).astype(np.int32)), False),
        (column(texts(5_000, 10)), True),
        (column(texts(20_000, 50)), True),
        (column(texts(10**12, 36)), False),
        (column([Decimal(number) for number in range(ROWS)], pa.decimal128(20, 0)), False),
        (column([datetime.date(2026, 1, 1 + number % 9) for number in range(ROWS)]), True),
        (column([b"%d" % number for number in range(ROWS)]), False),
        (column(np.arange(ROWS) % 2 == 0), True),
        (column([None] * ROWS, pa.int64()), True),
        (column([number if number % 100 == 0 else None for number in range(ROWS)]), False),
        (column(np.arange(4_000)), True),
        (column([[1, 2]] * ROWS), True),
        (pa.chunked_array([pa.array(["a"] * ROWS).dictionary_encode()]), True),
    ],
)
def test_a_dictionary_is_for_values_that_repeat(values, expected):
    assert values_repeat(values) is expected


def test_row_groups_have_a_dictionary_each():
    values = column(rng.integers(0, 20_000, ROWS))
    assert values_repeat(values, 1)
    assert not values_repeat(values, 20)  # 5,000 rows with 4,400 values each


def test_values_that_are_frequent_somewhere_are_found_everywhere():
    assert values_repeat(column(np.concatenate([np.arange(10_000), np.zeros(ROWS - 10_000, np.int64)])))


@pytest.mark.parametrize("distinct", [1, 10, 1_000, 20_000, 200_000])
def test_the_number_of_values_is_estimated_by_a_sample(distinct):
    values = rng.integers(0, distinct, ROWS)
    estimated = estimate_distinct(4_096, len(np.unique(values[:4_096])), ROWS)
    assert estimated == pytest.approx(len(np.unique(values)), rel=0.15)


@pytest.mark.parametrize("wanted", [True, False])
def test_files_are_written_accordingly(tmp_path, wanted):
    storage = LocalStorage(str(tmp_path))
    schema = pa.schema([("k", pa.string()), ("v", pa.int64()), ("kind", pa.string())])
    keys = [f"{number:x}" for number in rng.integers(0, 2**62, 10_000)]
    rows = pa.table({"k": keys, "v": rng.integers(0, 2**62, 10_000), "kind": ["a", "b"] * 5_000}, schema=schema)
    settings = BaseFileSettings(dictionary=wanted)
    json_schema = schema_json(with_meta_columns(schema), "t")
    writer = BaseFileWriter(storage, "f.parquet", with_meta_columns(schema), json_schema, settings)
    keyed = rows.append_column("_hoodie_record_key", rows["k"])
    writer.write(stamp_new_rows(keyed, schema, "20260101000000000", "", "f.parquet", 0, 0))
    writer.close()
    group = pq.read_metadata(tmp_path / "f.parquet").row_group(0)
    chunks = (group.column(number) for number in range(group.num_columns))
    with_dictionary = {chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page}
    repeated = {"_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_file_name"}
    assert with_dictionary == repeated | ({"kind"} if wanted else set())
    assert pq.read_table(tmp_path / "f.parquet").select(schema.names).equals(rows)
