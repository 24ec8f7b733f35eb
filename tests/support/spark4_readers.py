"""What the stream readers of the format hudistream give, called as Spark calls them: no session is needed. Prints JSON.

python spark4_readers.py FOLDER
"""

import json
import sys

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable  # Spark 4.2

from hudistream import HudiTable, write_hudi
from pyspark_hudistream import DefaultSource
from pyspark_hudistream.stream_reader import StreamReader
from table import CleanSettings, HudiError

FEED = {"deletes": "true", "each_commit": "true"}
NARROW = pa.int32()
SHARED = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}


def reader_of(path, **options):
    """A reader as at the start, or restart, of a query."""
    source = DefaultSource({"path": path, "max_instants_per_batch": "1", **options})
    return source.streamReader(source.schema())


def rows_of(reader, start, end):
    read = [row for part in reader.partitions(start, end) for batch in reader.read(part) for row in batch.to_pylist()]
    return sorted(f"{row.get('_change_operation', '')}{row['id']}{row['v']}{row.get('w') or ''}" for row in read)


def follow(reader, start=None):
    """(the rows of each batch, the last offset)."""
    start, batches = start or reader.initialOffset(), []
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        batches.append(rows_of(reader, start, end))
        reader.commit(end)
        start = end
    return batches, start


def write(path, ids, v, kind=NARROW, **more):
    columns = {"id": ids, "v": pa.array([v] * len(ids), kind), **{name: [value] for name, value in more.items()}}
    return write_hudi(path, pa.table(columns)).instant_time


def begin(path, version, options=()):
    write_hudi(
        path, pa.table({"id": ["a", "b"], "v": pa.array([1, 1], pa.int32())}), key="id",
        options={"hoodie.write.table.version": version, **dict(options)},
    )  # fmt: skip


def columns_change(path, version, how, feed):
    """Batches after a restart, of commits from before and behind a change of columns, then all from the earliest on."""
    begin(path, version)
    _, place = follow(reader_of(path, **feed))
    write(path, ["a"], 2)
    write(path, ["b"], 3, **({"w": "x"} if how == "new" else {"kind": pa.int64()}))
    return follow(reader_of(path, **feed), place)[0], follow(reader_of(path, **feed))[0]


def first_commit_is_empty(path, feed):
    """Several writers begin a table by a commit without columns."""
    begin(path, "9", SHARED)
    return follow(reader_of(path, **feed))[0]


def cleaned(path, version):
    """A stream that is slower than cleaning."""
    begin(path, version)
    reader = reader_of(path)
    start = reader.initialOffset()
    for number, ids in enumerate((["a"], ["c"], ["b"]), 2):
        write(path, ids, number)
    assert HudiTable.open(path).clean(CleanSettings(commits_retained=1, grace_ms=0))
    return follow(reader, start)[0]


def undone(path, version, older):
    """What a change feed says after the newest commit, or the only one, was undone: as of Spark 4.0 and of 4.2."""
    begin(path, version)
    if older:
        write(path, ["c"], 2)
    asked = reader_of(path, **FEED)
    old = StreamReader(asked._asked, asked._schema)
    seen = old.latestOffset()
    _, place = follow(asked)
    table = HudiTable.open(path)
    table.roll_back(max(table.load_timeline().committed_times))
    if not older:
        write(path, ["d"], 4)
    said = []
    for reader, start in ((asked, place), (old, seen)):
        end = old.latestOffset() if older else reader_of(path).latestOffset(start, ReadAllAvailable())
        try:
            said.append(str(rows_of(reader, start, {**start, "instant": end["instant"]})))
        except HudiError as error:
            said.append(str(error))
    return said


def offset_of_an_older_spark(path):
    """Batches behind an offset that does not say where the stream began."""
    begin(path, "9")
    _, place = follow(reader_of(path))
    write(path, ["a"], 2)
    return follow(reader_of(path), {"instant": place["instant"]})[0]


def main(folder):
    found = {}
    for version in ("6", "9"):
        for how in ("new", "wider"):
            for name, feed in (("rows", {}), ("feed", FEED)):
                case = f"{version} {how} {name}"
                found[case] = columns_change(f"{folder}/{case}", version, how, feed)
        found[f"{version} cleaned"] = cleaned(f"{folder}/{version}-cleaned", version)
        for older in (True, False):
            found[f"{version} undone {older}"] = undone(f"{folder}/{version}-undone-{older}", version, older)
    found["empty"] = [first_commit_is_empty(f"{folder}/empty-{len(feed)}", feed) for feed in ({}, FEED)]
    found["offset"] = offset_of_an_older_spark(f"{folder}/offset")
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
