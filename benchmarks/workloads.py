"""The workloads: deterministic rows, one Parquet file a micro-batch, so that figures compare between runs and peers.

===========  =======  ========================================================================
name         batches  rows a batch
===========  =======  ========================================================================
A            20       100,000
A2           60       2,000
B-inserts    20       5 of 100,000, 15 of 50,000
one-row      40       1
B            20       5 of 100,000, then 15 of 50,000, half of them updates
B-skewed     12       2 of 200,000 over 64 partitions, then 10,000 updates, 9 of 10 in one partition
big-spread   11       5 of 2,000,000, then 6 of 10,000 updates anywhere
big-recent   11       5 of 2,000,000, then 6 of 10,000 updates of the last 100,000 keys
===========  =======  ========================================================================

Keys are new unless updates are named, and spread over 8 partitions; a key never changes its partition.
"""

import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

KEY, ORDERING, PARTITION = "event_id", "ts", "dt"
PARTITIONS = [f"2026-01-{day:02d}" for day in range(1, 9)]
DDL = (
    "event_id string, ts bigint, dt string, user_id bigint, rev int, quantity int, device_id int, amount double, "
    "score double, event_type string, page string, referrer string"
)
# (new keys, updates) a batch
SIZES = {
    "A": [(100_000, 0)] * 20,
    "A2": [(2_000, 0)] * 60,
    "B-inserts": [(100_000, 0)] * 5 + [(50_000, 0)] * 15,
    "one-row": [(1, 0)] * 40,
    "B": [(100_000, 0)] * 5 + [(25_000, 25_000)] * 15,
    "B-skewed": [(200_000, 0)] * 2 + [(0, 10_000)] * 10,
    "big-spread": [(2_000_000, 0)] * 5 + [(0, 10_000)] * 6,
    "big-recent": [(2_000_000, 0)] * 5 + [(0, 10_000)] * 6,
}
FIRST_DAY_US = 1_767_225_600_000_000


def partitions_of(workload, ids):
    if workload == "B-skewed":
        return np.array([f"p{number:02d}" for number in range(64)])[ids % 64]
    return np.array(PARTITIONS)[ids % len(PARTITIONS)]


def choose_updates(workload, rng, known, count):
    if workload == "B-skewed":
        hot = count * 9 // 10
        cold = rng.choice(known, count, replace=False)
        return np.concatenate(
            [rng.choice(known // 64, min(hot, known // 64), replace=False) * 64, cold[cold % 64 != 0][: count - hot]]
        )
    if workload == "big-recent":
        return known - 1 - rng.choice(min(known, 100_000), count, replace=False)
    return rng.choice(known, count, replace=False)


def generate(workload, folder, batches=None, seed=42):
    """Writes the files of a workload; returns the number of keys, and the sum of ``rev`` over their newest rows."""
    sizes = SIZES[workload][:batches]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    rng = np.random.default_rng(seed)
    kinds = np.array(["view", "click", "cart", "buy", "search", "login"])
    first = 0
    newest = np.zeros(0, np.int64)
    for number, (new, updates) in enumerate(sizes):
        ids = np.arange(first, first + new)
        if updates:
            ids = np.concatenate([ids, choose_updates(workload, rng, first, updates)])
        first += new
        newest = np.concatenate([newest, np.zeros(new, np.int64)])
        newest[ids] = number
        rng.shuffle(ids)
        size = len(ids)
        referrers = rng.integers(0, 20_000, size)
        table = pa.table(
            {
                "event_id": keys_of(ids),
                "ts": FIRST_DAY_US + number * 60_000_000 + rng.integers(0, 60_000_000, size),
                "dt": partitions_of(workload, ids),
                "user_id": rng.integers(0, 1_000_000, size),
                "rev": np.full(size, number, np.int32),
                "quantity": rng.integers(1, 100, size).astype(np.int32),
                "device_id": rng.integers(0, 50_000, size).astype(np.int32),
                "amount": np.round(rng.gamma(2.0, 30.0, size), 2),
                "score": rng.normal(size=size),
                "event_type": kinds[rng.choice(6, size, p=[0.5, 0.25, 0.1, 0.05, 0.07, 0.03])],
                "page": [f"/catalog/{page // 97}/item-{page}" for page in rng.zipf(1.3, size) % 5000],
                "referrer": pa.array(
                    [f"https://ref{r}.example.com/q={r * 7919}" for r in referrers],
                    pa.string(),
                    mask=rng.random(size) < 0.3,
                ),
            }
        )
        file = os.path.join(folder, f"batch-{number:05d}.parquet")
        pq.write_table(table, file, row_group_size=max(1, size // 4))
        os.utime(file, (1e9 + number, 1e9 + number))  # the file source goes by modification time
    return first, int(newest.sum())


def keys_of(ids):
    """UUID-like keys: as random as real ones, the same in every run."""
    mixed = np.stack([_mix(ids.astype(np.uint64)), _mix(ids.astype(np.uint64) + np.uint64(1 << 40))], 1)
    digits = mixed.astype(">u8").tobytes().hex()
    return [
        "-".join((digits[i : i + 8], digits[i + 8 : i + 12], digits[i + 12 : i + 16], digits[i + 16 : i + 20],
                  digits[i + 20 : i + 32]))
        for i in range(0, len(digits), 32)
    ]  # fmt: skip


def _mix(x):
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
