"""Slots and tasks of rows where Spark SQL does not compute them."""

from zlib import crc32

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from streaming.plan.columns import SLOT_COLUMN
from streaming.plan.routes import Routes
from streaming.task.route_rows import encode_paths, slots_of, tasks_of
from table.schema.avro_schema import PARTITION_PATH

PLANNED = Routes(4, default_slots=2, planned={"hot": (3, 0, 1), "cold": (2,)})
PATHS = st.lists(st.sampled_from(["hot", "cold", "new", "", None]), max_size=30)


def chunked(paths):
    half = len(paths) // 2
    return pa.chunked_array([pa.array(paths[:half], pa.string()), pa.array(paths[half:], pa.string())])


@given(PATHS, st.data())
def test_a_slot_is_chosen_by_the_number_among_those_of_the_path(paths, data):
    numbers = data.draw(st.lists(st.integers(0, 2**40), min_size=len(paths), max_size=len(paths)))
    found = slots_of(PLANNED, chunked(paths), np.array(numbers, np.int64))
    several = {"hot": 3, "cold": 1}
    assert found.tolist() == [number % several.get(path, 2) for path, number in zip(paths, numbers, strict=True)]


@given(PATHS, st.data())
def test_a_task_is_the_planned_one_or_follows_from_path_and_slot(paths, data):
    slots = [data.draw(st.integers(0, PLANNED.slots_of(path or "") - 1)) for path in paths]
    rows = pa.table({PARTITION_PATH: chunked(paths), SLOT_COLUMN: pa.array(slots, pa.int32())})
    expected = [
        PLANNED.planned[path][slot] if path in PLANNED.planned else crc32(f"{path or ''}\0{slot}".encode()) % 4
        for path, slot in zip(paths, slots, strict=True)
    ]
    assert tasks_of(PLANNED, rows).tolist() == expected


def test_rows_without_a_path_belong_to_the_root():
    assert encode_paths(chunked([None, "a", None])).to_pylist() == ["", "a", ""]
