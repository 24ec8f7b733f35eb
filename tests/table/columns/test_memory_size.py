"""Memory of rows: a slice counts by its part, nested columns by their children."""

import pyarrow as pa
import pytest

from table.columns.memory_size import rows_bytes

COLUMNS = {
    "ints": pa.array(range(1000), pa.int64()),
    "texts": pa.array(["x" * 10] * 1000),
    "lists": pa.array([[1, 2]] * 1000, pa.list_(pa.int64())),
    "structs": pa.array([{"a": 1, "b": "y" * 10}] * 1000),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_slice_takes_its_part(name):
    rows = pa.table({name: COLUMNS[name]})
    whole = rows_bytes(rows)
    assert rows_bytes(rows.slice(100, 250)) == pytest.approx(whole / 4, rel=0.1)
    assert rows_bytes(rows.slice(0, 0)) <= 8


@pytest.mark.parametrize(("name", "bytes_each"), [("ints", 8), ("texts", 14), ("lists", 20), ("structs", 22)])
def test_values_and_offsets_count(name, bytes_each):
    assert rows_bytes(pa.table({name: COLUMNS[name]})) == pytest.approx(1000 * bytes_each, rel=0.1)
