"""Bounds of float chunks with a NaN: an infinite upper one, and a footer that says so."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine import Engine

import table.files.parquet.footer as footer_module
import table.files.parquet.row_group_writer as writer_module
from table.files.column_ranges import ColumnRange, covers
from table.files.parquet.footer import says_all_bounds
from table.files.parquet.nan_bounds import find_nan

NAN, INF = float("nan"), float("inf")
DOUBLE = pa.float64()
CASES = {
    "numbers": ([1.0, 2.0], (1.0, 2.0)),
    "one nan": ([3.0, NAN, 3.0], (3.0, INF)),
    "nan and null": ([None, NAN, 4.0], (4.0, INF)),
    "nan alone": ([NAN, NAN], None),
    "nulls alone": ([None, None], None),
    "infinities": ([INF, -INF], (-INF, INF)),
    "nan and infinity": ([INF, NAN], (-INF, INF)),
    "zeros": ([0.0, -0.0], (-0.0, 0.0)),
}


def bounds_in(path, name, group=0):
    metadata = pq.read_metadata(path)
    chunk = next(
        metadata.row_group(group).column(number)
        for number in range(metadata.num_columns)
        if metadata.schema.column(number).path == name
    )
    told = chunk.statistics
    return (told.min, told.max) if told.has_min_max else None


def rows_of(values, kind=DOUBLE, first=0):
    return pa.table(
        {
            "id": [f"k{first + n:03}" for n in range(len(values))],
            "p": ["a"] * len(values),
            "ts": pa.array([0] * len(values), pa.int64()),
            "f": pa.array(values, kind),
            "s": pa.array([{"g": value} for value in values], pa.struct([("g", kind)])),
            "l": pa.array([[value] for value in values], pa.list_(kind)),
        }
    )


@pytest.mark.parametrize(("values", "want"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_a_chunk_with_a_nan_has_an_infinite_upper_bound(tmp_path, values, want, kind):
    engine = Engine(str(tmp_path / "t"), batch_rows=100_000)
    engine.write(0, rows_of(values, kind), parallelism=1)
    [file] = tmp_path.glob("t/a/*.parquet")
    assert repr(bounds_in(file, "f")) == repr(want)
    assert repr(bounds_in(file, "s.g")) == repr(want)
    assert repr(bounds_in(file, "l.list.element")) == repr(want)
    assert says_all_bounds(pq.read_metadata(file))


def test_a_footer_that_was_written_again_proves_nothing(tmp_path):
    engine = Engine(str(tmp_path / "t"), batch_rows=100_000)
    engine.write(0, rows_of([3.0, NAN]), parallelism=1)
    [file] = tmp_path.glob("t/a/*.parquet")
    pq.write_table(pq.read_table(file, partitioning=None), file)
    assert b"hudistream.bounds" in pq.read_metadata(file).metadata  # the entries went along
    assert not says_all_bounds(pq.read_metadata(file))


def test_copied_chunks_of_an_older_version_get_their_bounds_once(tmp_path, monkeypatch):
    engine = Engine(str(tmp_path / "t"), batch_rows=100_000)
    with monkeypatch.context() as before:
        before.setattr(footer_module, "BOUNDS_COMPLETE", "complete")
        before.setattr(writer_module, "find_nan", lambda batches: frozenset())
        engine.write(0, rows_of([3.0, NAN, 3.0] * 30_000), parallelism=1)
    [old] = tmp_path.glob("t/a/*.parquet")
    assert bounds_in(old, "f") == (3.0, 3.0)
    assert not says_all_bounds(pq.read_metadata(old))
    engine.write(1, rows_of([5.0], first=200_000), parallelism=1)
    [new] = [file for file in tmp_path.glob("t/a/*.parquet") if file != old]
    assert pq.read_metadata(new).num_rows == 90_001
    assert bounds_in(new, "f") == (3.0, INF)
    assert says_all_bounds(pq.read_metadata(new))


def test_nan_below_a_null_is_none():
    hidden = pa.array([1.0, None]).buffers()[0], pa.py_buffer(pa.array([1.0, NAN]).buffers()[1])
    values = pa.Array.from_buffers(pa.float64(), 2, list(hidden))
    assert find_nan([pa.table({"f": values})]) == frozenset()
    assert find_nan([pa.table({"f": [INF, -INF]})]) == frozenset()
    assert find_nan([pa.table({"f": [INF, NAN]})]) == {(b"f",)}


@pytest.mark.parametrize(
    ("known", "found", "want"),
    [
        ((NAN, NAN), (INF, INF), (True, True)),  # told by an earlier version
        ((1.0, NAN), (1.0, INF), (True, True)),
        ((1.0, INF), (1.0, INF), (True, True)),
        ((1.0, 2.0), (1.0, INF), (True, False)),
        ((1.0, 2.0), (0.0, 2.0), (False, True)),
        ((0.0, 0.0), (-0.0, 0.0), (True, True)),
        ((None, None), (1.0, 1.0), (False, False)),
        ((1.0, 1.0), (None, None), (True, True)),
        (("a", "c"), ("b", "d"), (True, False)),
    ],
)
def test_a_range_covers_another_one(known, found, want):
    assert covers(ColumnRange(*known, 1, 0), ColumnRange(*found, 1, 0)) == want
