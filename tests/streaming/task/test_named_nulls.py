"""A row that cannot be stored is named with the value that it lacks, and with no other."""

import re

import pyarrow as pa
import pytest
from engine import Engine, rows

from streaming.task.bad_rows import NO_KEY, explain_nulls, find_bad_rows
from table.errors import InvalidRecordError
from table.schema.avro_schema import RECORD_KEY

UPSERT = {"hoodie.datasource.write.operation": "upsert"}
ORDER = "the ordering field ts is null"


def failed(path, batch, **options):
    with pytest.raises(InvalidRecordError) as caught:
        Engine(path, {**UPSERT, **options}).write(0, batch)
    return str(caught.value)


def with_nulls(keys=(), times=()):
    """Five rows; the record key is null in those numbered in `keys`, the ordering value in those in `times`."""
    batch = rows(range(5))
    ids = [None if number in keys else f"k{number}" for number in range(5)]
    order = [None if number in times else 1 for number in range(5)]
    return batch.set_column(0, "id", pa.array(ids)).set_column(2, "ts", pa.array(order, pa.int64()))


@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_SIMPLE", "BUCKET"])
def test_the_reason_that_holds_is_named_and_no_other(tmp_path, index):
    option = {"hoodie.index.type": index}
    said = failed(str(tmp_path / "a"), with_nulls(keys=[1]), **option)
    assert NO_KEY in said
    assert ORDER not in said
    said = failed(str(tmp_path / "b"), with_nulls(times=[1]), **option)
    assert ORDER in said
    assert NO_KEY not in said
    said = failed(str(tmp_path / "c"), with_nulls(keys=[1], times=[1]), **option)
    assert f"{NO_KEY}; {ORDER}" in said


def test_rows_that_lack_different_values_have_a_reason_each(tmp_path):
    shown = {"hudistream.bad.rows.shown": "rows"}
    said = failed(str(tmp_path / "t"), with_nulls(keys=[0, 3], times=[2, 3]), **shown)
    assert "3 rows cannot be stored" in said
    reasons = re.findall(r"'ts': (1|None), .*?\} \((.*?)\)", said)
    assert sorted(reasons) == [("1", NO_KEY), ("None", ORDER), ("None", f"{NO_KEY}; {ORDER}")]


def test_each_bad_row_is_found_once():
    batch = pa.table(
        {RECORD_KEY: ["a", "", None, "d", "e"], "ts": [1, 2, None, None, 5], "v": [None, "v", "v", "v", "v"]}
    )
    required = explain_nulls(["v"], ["ts"])
    found = {part.reason: part.rows.nonzero()[0].tolist() for part in find_bad_rows(batch, required)}
    null_v = "column v is null where the schema allows none"
    assert found == {NO_KEY: [1], f"{NO_KEY}; {ORDER}": [2], ORDER: [3], null_v: [0]}
    exempt = pa.array([True, False, True, True, False]).to_numpy(zero_copy_only=False)
    assert [part.rows.tolist() for part in find_bad_rows(batch, required, exempt)] == [
        [False, True, False, False, False]
    ]
    assert list(find_bad_rows(batch.slice(4), required)) == []
    assert list(find_bad_rows(batch.slice(0, 0), required)) == []


def test_of_two_columns_that_must_not_be_null_the_null_one_is_named():
    batch = pa.table({RECORD_KEY: ["a", "b"], "x": [1, None], "y": [1, 2]})
    assert [part.reason for part in find_bad_rows(batch, explain_nulls(["x", "y"]))] == [
        "column x is null where the schema allows none"
    ]
