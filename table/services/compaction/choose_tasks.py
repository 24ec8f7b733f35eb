"""How many slices are compacted at a time if no option says it: by the cores and the memory that are at hand."""

import os
from pathlib import Path

SLICE_BYTES = 1 << 30  # more than the compaction of one slice takes, whatever its size
_MEMORY, _LIMITED = "/proc/meminfo", "/sys/fs/cgroup"


def choose_tasks(cores: int, memory_bytes: int | None, *, beside_batches: bool) -> int:
    """A number of slices (pure).

    Args:
        cores: that the process may use.
        memory_bytes: that it may still take; None: not known.
        beside_batches: whether the next batches are to find cores and memory, too: half of both is theirs.
    """
    share = 2 if beside_batches else 1
    fitting = cores if memory_bytes is None else memory_bytes // SLICE_BYTES
    return max(1, min(cores, fitting) // share)


def cores_at_hand() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def memory_at_hand(memory: str = _MEMORY, limited: str = _LIMITED) -> int | None:
    """Bytes of memory that this process may still take, by the machine and its container; None where neither says.

    Args:
        memory: Linux' account of the machine.
        limited: the folder of its control group (version 2).
    """
    free_kib, most = _number(memory, "MemAvailable:"), _number(f"{limited}/memory.max")
    bounds = [] if free_kib is None else [free_kib * 1024]
    if most is not None:
        bounds.append(max(0, most - (_number(f"{limited}/memory.stat", "anon") or 0)))
    return min(bounds, default=None)


def _number(path: str, key: str = "") -> int | None:
    """The number of a key in a file; None where there is none, as where a bound is called ``max``."""
    try:
        words = Path(path).read_text().split()
    except OSError:
        return None
    at = words.index(key) + 1 if key in words else 0 if not key else len(words)
    return int(words[at]) if at < len(words) and words[at].isdigit() else None
