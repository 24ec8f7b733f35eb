"""Which task a row goes to: a pure function of the row and the driver's plan (pure).

A *slot* is a part of a partition path that one task writes. The driver decides how many slots a path has, and packs
slots onto tasks by the work expected. A row goes to slot ``hash(record key) mod slots`` of its path. A slot goes to
the task in the plan. A slot of a path that is not in the plan goes to task ``hash(path, slot) mod tasks``. The route
must not depend on anything else: after a failure Spark computes parts of a stage again, and each row must take the
same route.
"""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from streaming.plan.bucket_assigner import AssignRules, find_small_files
from streaming.plan.write_profile import PathProfile, WriteProfile
from table.view.file_group import BaseFile

SLOT_BYTES = 16 * 1024 * 1024  # expected bytes per slot of a path
SMALL_BATCH_BYTES = 16 * 1024 * 1024
FILE_BYTES = 128 * 1024  # fixed cost of a file (marker, footer, filter, publishing), as bytes encoded in that time
COPIED_A_BYTE = 16  # bytes that are copied in the time in which one byte is encoded
HOT_SHARE = 1.5  # a path with more than this times a task's even share of the work gets several tasks
PLANNED_PATHS = 64  # with more paths, hashing spreads them evenly enough

_M32 = 0xFFFFFFFF


@dataclass(frozen=True)
class Routes:
    """Where rows go.

    Attributes:
        tasks: how many tasks write; 1 means that no exchange is needed.
        default_slots: slots of a path that is not in `planned`.
        planned: partition path -> the task of each of its slots.
    """

    tasks: int
    default_slots: int = 1
    planned: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def slots_of(self, partition_path: str) -> int:
        """How many slots share a path."""
        planned = self.planned.get(partition_path)
        return len(planned) if planned else self.default_slots


def plan_routes(profile: WriteProfile, rules: AssignRules, parallelism: int, default_slots: int = 1) -> Routes:
    """Slots and tasks for the next batch.

    Args:
        profile: rows expected per path, and its small files.
        rules: sizes.
        parallelism: the largest number of tasks.
        default_slots: slots of an unknown path.

    Returns:
        One task when little work is expected. Else at most as many tasks as slots: slots are assigned heaviest first,
        each to the task with the least work so far.
    """
    default_slots = min(default_slots, parallelism)
    if profile.batches == 0:
        return Routes(parallelism, default_slots)
    work: list[tuple[float, str, int]] = []
    hot = 0
    for path, known in profile.paths.items():
        if known.rows < 1:
            continue
        new_bytes = known.rows * rules.record_size_bytes
        slots = max(1, min(parallelism, int(new_bytes // SLOT_BYTES) + 1))
        small = find_small_files(known.files or (), rules)
        for slot in range(slots):
            carried = sum(file.size_bytes for file in small[slot : slot + 1])
            work.append((new_bytes / slots + carried / COPIED_A_BYTE + _file_work(known), path, slot))
        hot += slots
    expected = sum(load for load, _, _ in work)
    if expected < SMALL_BATCH_BYTES and all(slot == 0 for _, _, slot in work):
        return Routes(1, 1)
    tasks = max(1, min(parallelism, hot))
    return Routes(tasks, default_slots, _pack(work, tasks))


def plan_change_routes(
    profile: WriteProfile, rules: AssignRules, parallelism: int, *, spread: bool
) -> tuple[Routes, bool]:
    """Slots and tasks for a batch that changes records.

    One task writes all file groups of a slot. If a path has one slot, that task also looks up the keys. A path that has
    most of the work gets several slots. Then other tasks look up the keys, by their hash, and a second exchange moves
    each row to the slot that owns its file group.

    Args:
        profile: rows expected per path, and its files.
        rules: sizes.
        parallelism: the largest number of tasks.
        spread: whether other tasks look up the keys in any case (global indexes).

    Returns:
        The routes, and whether other tasks look up the keys.
    """
    if profile.batches == 0:
        return Routes(parallelism), spread
    work = {
        # small files may all have to be encoded again; most of a large file is copied
        path: known.rows * rules.record_size_bytes + _small_bytes(known.files or (), rules) + _file_work(known)
        for path, known in profile.paths.items()
        if known.rows >= 1
    }
    total = sum(work.values())
    if total < SMALL_BATCH_BYTES or parallelism == 1:
        return Routes(1), spread
    share = total / parallelism
    slots = {path: parallelism if load > HOT_SHARE * share else 1 for path, load in work.items()}
    parts = [(load / slots[path], path, slot) for path, load in work.items() for slot in range(slots[path])]
    return Routes(min(parallelism, len(parts)), 1, _pack(parts, min(parallelism, len(parts)))), (
        spread or any(count > 1 for count in slots.values())
    )


def _file_work(known: PathProfile) -> float:
    """The fixed cost of one file of a path, times the probability that the batch writes the path."""
    return FILE_BYTES * known.share


def _small_bytes(files: Iterable[BaseFile], rules: AssignRules) -> int:
    return sum(file.size_bytes for file in files if file.size_bytes < rules.small_file_limit_bytes)


def _pack(work: list[tuple[float, str, int]], tasks: int) -> dict[str, tuple[int, ...]]:
    """Longest first, each onto the least loaded task (LPT)."""
    heaviest: dict[str, float] = {}
    for load, path, _ in work:
        heaviest[path] = heaviest.get(path, 0.0) + load
    chosen = set(sorted(heaviest, key=lambda path: (-heaviest[path], path))[:PLANNED_PATHS])
    loads = [(0.0, task) for task in range(tasks)]
    assigned: dict[str, dict[int, int]] = {}
    for load, path, slot in sorted(work, key=lambda item: (-item[0], item[1], item[2])):
        if path in chosen:
            so_far, task = heapq.heappop(loads)
            heapq.heappush(loads, (so_far + load, task))
            assigned.setdefault(path, {})[slot] = task
    return {path: tuple(by_slot[slot] for slot in sorted(by_slot)) for path, by_slot in assigned.items()}


def hash_int(value: int, seed: int = 42) -> int:
    """Spark's hash of an int column (Murmur3_x86_32.hashInt), signed."""
    k = value & _M32
    k = k * 0xCC9E2D51 & _M32
    k = (k << 15 | k >> 17) & _M32
    k = k * 0x1B873593 & _M32
    h = seed ^ k
    h = (h << 13 | h >> 19) & _M32
    h = (h * 5 + 0xE6546B64) & _M32
    h ^= 4
    h ^= h >> 16
    h = h * 0x85EBCA6B & _M32
    h ^= h >> 13
    h = h * 0xC2B2AE35 & _M32
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def task_values(tasks: int) -> tuple[int, ...]:
    """For each task, an int that Spark's hash partitioning over `tasks` partitions sends to it.

    ``repartition(n, column)`` sends a row to ``pmod(hash(column), n)``, so a column with these values chooses the task.
    """
    found: dict[int, int] = {}
    value = 0
    while len(found) < tasks:
        found.setdefault(hash_int(value) % tasks, value)
        value += 1
    return tuple(found[task] for task in range(tasks))
