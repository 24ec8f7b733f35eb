"""Readers beside a writer that replaces every file with each batch, and a cleaner that keeps the newest alone.

Each batch moves money between accounts, so the total is the same in every snapshot: a mixture of two would show.
"""

import random
import threading

import pyarrow as pa
import pytest
from engine import Engine
from tiers import quick

from hudistream import HudiTable
from table import CleanSettings, scan_hudi

ACCOUNTS, BATCHES = 60, 16
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
TABLES = {
    "COPY_ON_WRITE": {},
    "MERGE_ON_READ": {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "3",
        "hoodie.datasource.compaction.async.enable": "false",
    },
}


def moved(balances, batch, rng):
    """Every account, after some transfers across partitions."""
    for _ in range(ACCOUNTS):
        giver, taker = rng.sample(range(ACCOUNTS), 2)
        balances[giver] -= 1
        balances[taker] += 1
    numbers = range(ACCOUNTS)
    return pa.table(
        {
            "id": [f"k{n}" for n in numbers],
            "p": [f"p{n % 4}" for n in numbers],
            "ts": [batch] * ACCOUNTS,
            "v": balances,
        },
        schema=SCHEMA,
    )


def slowly(table, pause):
    """A scan whose reader stops between its batches, while other batches are written and cleaned."""
    total = count = 0
    for batch in table.scan(["v"]).to_batches():
        total += sum(batch["v"].to_pylist())
        count += len(batch)
        pause()
    return total, count


def at_once(table, _pause):
    values = table.scan(["v"]).to_arrow()["v"].to_pylist()
    return sum(values), len(values)


def in_parts(table, pause):
    parts = table.scan(["v"]).splits()
    pause()
    values = [value for part in parts for value in part.to_arrow()["v"].to_pylist()]
    return sum(values), len(values)


def changes(table, pause):
    pause()
    values = table.changes(columns=["v"]).to_arrow()["v"].to_pylist()
    return sum(values), len(values)


def lazily(table, pause):
    frame = scan_hudi(table.scan(["v"]))
    pause()
    values = frame.collect()["v"].to_list()
    return sum(values), len(values)


@pytest.mark.parametrize("read", quick(1, [in_parts, changes, lazily, slowly, at_once]))
@pytest.mark.parametrize("kind", TABLES)
def test_a_reader_sees_one_snapshot_whoever_writes_and_cleans(tmp_path, kind, read):
    path, rng = str(tmp_path / "t"), random.Random(f"{kind} {read.__name__}")
    engine = Engine(path, {**TABLES[kind], "hoodie.datasource.write.operation": "upsert"})
    balances = [100] * ACCOUNTS
    engine.write(0, moved(balances, 0, rng))
    written, done, errors = threading.Semaphore(0), threading.Event(), []

    def write():
        try:
            for batch in range(1, BATCHES):
                engine.write(batch, moved(balances, batch, rng))
                HudiTable.open(path).clean(CleanSettings(commits_retained=1, grace_ms=0, readers_share=100))
                written.release()
        except Exception as error:
            errors.append(error)
        finally:
            done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = 0

    def wait_for_commits():
        for _ in range(4):
            written.acquire(timeout=0.3)

    while not done.is_set():
        total = read(HudiTable.open(path), wait_for_commits)
        assert total == (100 * ACCOUNTS, ACCOUNTS)
        seen += 1
    writer.join()
    engine.writer.stop()
    assert errors == []
    assert seen
