"""How many slices are compacted at a time where nobody says it."""

import pytest

from table.services.compaction.choose_tasks import SLICE_BYTES, choose_tasks, memory_at_hand

GIB = 1 << 30


@pytest.mark.parametrize(
    ("cores", "memory_gib", "beside_batches", "tasks"),
    [
        (8, 64, False, 8),
        (8, 64, True, 4),
        (8, 3, False, 3),
        (8, 3, True, 1),
        (8, None, False, 8),
        (1, 64, True, 1),
        (4, 0, False, 1),
    ],
)
def test_cores_and_memory_decide(cores, memory_gib, beside_batches, tasks):
    memory = None if memory_gib is None else memory_gib * SLICE_BYTES
    assert choose_tasks(cores, memory, beside_batches=beside_batches) == tasks


@pytest.mark.parametrize(
    ("free_kib", "most", "anon", "expected"),
    [
        (4 << 20, "max", "1", 4 * GIB),
        (4 << 20, 3 * GIB, GIB, 2 * GIB),
        (1 << 20, 3 * GIB, GIB, GIB),
        (4 << 20, GIB, 2 * GIB, 0),
        (4 << 20, None, None, 4 * GIB),
        (None, 3 * GIB, GIB, 2 * GIB),
        (None, None, None, None),
    ],
)
def test_memory_is_what_machine_and_container_leave(tmp_path, free_kib, most, anon, expected):
    if free_kib is not None:
        (tmp_path / "meminfo").write_text(f"MemTotal:  99999999 kB\nMemAvailable:  {free_kib} kB\nBuffers: 1 kB\n")
    if most is not None:
        (tmp_path / "memory.max").write_text(f"{most}\n")
        (tmp_path / "memory.stat").write_text(f"anon {anon}\nfile 7\n")
    assert memory_at_hand(str(tmp_path / "meminfo"), str(tmp_path)) == expected
