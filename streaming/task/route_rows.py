"""Computes the slot and the task of rows, where Spark SQL does not compute them (pure)."""

from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streaming.plan.columns import SLOT_COLUMN
from streaming.plan.routes import Routes
from table.schema.avro_schema import PARTITION_PATH

Positions = npt.NDArray[np.int64]


def encode_paths(paths: pa.ChunkedArray) -> pa.DictionaryArray:
    """Partition paths as a dictionary; "" where there is none."""
    return pc.fill_null(paths, "").combine_chunks().dictionary_encode()


def slots_of(routes: Routes, paths: pa.ChunkedArray, numbers: Positions) -> Positions:
    """For each row its slot.

    Args:
        routes: slots of each partition path.
        paths: of the rows (string).
        numbers: for each row a number that chooses the slot of its path: a hash of the key, or the bucket.
    """
    encoded = encode_paths(paths)
    several = np.array([routes.slots_of(path) for path in encoded.dictionary.to_pylist()], np.int64)
    slots: Positions = numbers % several[encoded.indices.to_numpy()]
    return slots


def tasks_of(routes: Routes, rows: pa.Table) -> Positions:
    """For each row, with its partition path and slot, the task that writes its slot."""
    paths = encode_paths(rows.column(PARTITION_PATH))
    slots = rows.column(SLOT_COLUMN).to_numpy().astype(np.int64)
    several = int(slots.max(initial=0)) + 1
    groups, inverse = np.unique(paths.indices.to_numpy() * several + slots, return_inverse=True)
    tasks = [_task_of(routes, paths.dictionary[group // several].as_py(), group % several) for group in groups.tolist()]
    return np.array(tasks, np.int64)[inverse]


def _task_of(routes: Routes, path: str, slot: int) -> int:
    planned = routes.planned.get(path)
    return planned[slot] if planned else crc32(f"{path}\0{slot}".encode()) % routes.tasks
