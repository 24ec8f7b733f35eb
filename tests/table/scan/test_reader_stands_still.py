"""A reader stands still before each call of the store in turn, while writers commit, clean and archive beside it."""

from contextlib import contextmanager
from unittest import mock

import pyarrow as pa
import pytest

from hudistream import ArrowSink, HudiTable
from table.errors import HudiError, StorageError
from table.storage.local import LocalStorage

CALLS = ("read", "list_dir", "list_names", "exists", "open_input", "put", "_delete")
KEEPS_LITTLE = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.async.enabled": "false",
    "hudistream.clean.grace.ms": "0",
    "hoodie.parquet.small.file.limit": "0",
}
MOR = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "1",
}
TABLES = {
    "copy-on-write, version 6": {"hoodie.write.table.version": "6"},
    "copy-on-write, version 9": {"hoodie.write.table.version": "9"},
    "with a metadata table": {"hoodie.write.table.version": "8", "hoodie.metadata.enable": "true"},
    "merge-on-read, version 6": {"hoodie.write.table.version": "6", **MOR},
    "merge-on-read, version 9": {"hoodie.write.table.version": "9", **MOR},
    "cleaned by versions": {
        "hoodie.write.table.version": "9",
        "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.clean.fileversions.retained": "1",
    },
}


def rows(batch):
    return pa.table(
        {
            "id": [f"k{number}" for number in range(6)],
            "p": [f"p{number % 3}" for number in range(6)],
            "ts": [batch] * 6,
            "v": [batch] * 6,
        }
    )


class Standstill:
    """Calls `act` before the call of a number, once."""

    def __init__(self, at, act):
        self._at, self._act, self.count, self._is_acting = at, act, 0, False

    def before(self, call):
        def counted(*args, **kwargs):
            if not self._is_acting:
                self.count += 1
                if self.count == self._at:
                    self._is_acting = True
                    self._act()
                    self._is_acting = False
            return call(*args, **kwargs)

        return counted


@contextmanager
def standing_still(at, act):
    still = Standstill(at, act)
    with mock.patch.multiple(LocalStorage, **{name: still.before(getattr(LocalStorage, name)) for name in CALLS}):
        yield still


def read_beside(folder, options, commits, read):
    """(call, what `read` gave) for each call that a reader may stand still before. Batch b makes every `v` b."""
    at, is_over = 0, False
    while not is_over:
        at += 1
        path = str(folder / f"t{at}")
        with ArrowSink(path, {**KEEPS_LITTLE, **options}, key="id", partition_by="p", order_by="ts") as sink:
            for number in range(4):
                sink.write(rows(number), number)

            def act(sink=sink):
                for number in range(4, 4 + commits):
                    sink.write(rows(number), number)

            with standing_still(at, act) as still:
                yield at, read(HudiTable.open(path))
            is_over = still.count < at


def scan(table):
    return table.scan(["id", "v"]).to_arrow().to_pylist()


def scan_one_partition(table):
    return table.scan(["id", "v"], where=[("p", "=", "p1")]).to_arrow().to_pylist()


def look_up(table):
    return table.lookup(["k0", "k1", "k5"]).select(["id", "v"]).to_pylist()


READERS = {"scan": (scan, 6), "one partition": (scan_one_partition, 2), "lookup": (look_up, 3)}
CASES = [
    pytest.param(table, reader, commits, marks=[] if is_quick else [pytest.mark.slow])
    for table in TABLES
    for reader in READERS
    for commits in (1, 3, 6)
    for is_quick in [(table, reader, commits) in (
        ("copy-on-write, version 6", "one partition", 6),
    )]
]  # fmt: skip


@pytest.mark.parametrize(("table", "reader", "commits"), CASES)
def test_a_reader_that_stands_still_sees_one_snapshot_whole(tmp_path, table, reader, commits):
    ask, count = READERS[reader]
    wrong, refused = [], []

    def read(table):
        try:
            return ask(table)
        except StorageError as error:
            return str(error)

    for at, found in read_beside(tmp_path, TABLES[table], commits, read):
        if isinstance(found, str):
            refused.append(found)
        elif len({row["id"] for row in found}) != count or len(found) != count or len({row["v"] for row in found}) != 1:
            wrong.append((at, found))
    assert not wrong
    assert all("deleted while it was read" in text for text in refused)
    assert not refused or ask is look_up  # it reads footers before anything is pinned


@pytest.mark.parametrize(
    "table",
    [name for name in TABLES if name != "cleaned by versions"],
)
@pytest.mark.slow
def test_a_feed_that_stands_still_is_right_or_says_why_not(tmp_path, table):
    """Each commit updates every row, and a compaction none: the feed shows one update a key, or is refused."""

    def read(table):
        try:
            since = sorted(table.load_timeline().visible_times.values())[-3]
            return table.changes(since, before=True).to_arrow().to_pylist()
        except HudiError as error:
            return str(error)

    options = {**TABLES[table], "hoodie.clean.commits.retained": "5", "hoodie.keep.min.commits": "6",
               "hoodie.keep.max.commits": "7"}  # fmt: skip
    seen = []
    for at, found in read_beside(tmp_path, options, 6, read):
        seen.append(found)
        if not isinstance(found, str):
            assert {row["_change_operation"] for row in found} == {"u"}, (at, found)
            assert sorted(row["id"] for row in found) == [f"k{number}" for number in range(6)], (at, found)
    assert any(not isinstance(found, str) for found in seen)
