"""Streams of the format hudistream in a Spark 4: what batches they give. Called by spark4_source.py."""

from engine import Engine, rows

from hudistream import HudiTable
from table import CleanSettings, InvalidConfigError
from table.timeline.pins import load_live_pins

UPSERT = {"hoodie.datasource.write.operation": "upsert"}


class Follower:
    """Streams over one table.

    Args:
        spark: the session.
        path: the table; it is written here.
        checkpoints: a folder.
    """

    def __init__(self, spark, path, checkpoints):
        self.spark, self.path, self.checkpoints = spark, path, checkpoints

    def commit(self, number, keys):
        """Upserts keys; returns the instant."""
        return Engine(self.path, UPSERT).write(None, rows(keys, ts=number, v=f"v{number}")).instant_time

    def follow(self, name, **options):
        """Batches that a stream gives until it has read what is there: sorted ids and values."""
        batches = []

        def keep(frame, _):
            batches.append(sorted(f"{row.id}{row.v}" for row in frame.collect()))

        stream = self.spark.readStream.format("hudistream").options(**options).load(self.path)
        query = stream.writeStream.foreachBatch(keep).option("checkpointLocation", f"{self.checkpoints}/{name}")
        query.trigger(availableNow=True).start().awaitTermination()
        return batches

    def refused(self, **options):
        """What a stream is refused with."""
        try:
            self.follow("refused", **options)
        except Exception as error:
            return str(error)
        return "nothing"


def follow_table(spark, path, checkpoints):
    """The table gets three commits, and streams follow it; then it gets two more."""
    table = Follower(spark, path, checkpoints)
    first = table.commit(0, range(4))
    table.commit(1, range(2))
    table.commit(2, range(2, 3))
    found = {
        "one": [table.follow("one", max_instants_per_batch="1")],
        "late": [table.follow("late", starting_offset="latest")],
        "from": [table.follow("from", starting_offset=first, where='[["p", "=", "p1"]]', columns="id,v")],
        "bytes": [table.follow("bytes", max_bytes_per_batch="1")],
    }
    table.commit(3, range(1))
    table.commit(4, range(9, 10))
    found["all"] = [table.follow("all"), table.follow("all")]
    found["one"] += [table.follow("one", max_instants_per_batch="1"), table.follow("one", max_instants_per_batch="1")]
    found["late"].append(table.follow("late", starting_offset="latest"))
    found["refused"] = table.refused(as_of=first)
    found["pins"] = len(load_live_pins(HudiTable.open(path).storage))
    return found


def follow_cleaned_changes(path):
    """What a stream of changes says whose start was cleaned; no session is needed."""
    from pyspark_hudistream import DefaultSource

    table = Follower(None, path, None)
    for number in range(4):
        table.commit(number, range(4))
    assert HudiTable.open(path).clean(CleanSettings(commits_retained=1, grace_ms=0))
    times = sorted(HudiTable.open(path).load_timeline().committed_times)
    source = DefaultSource({"path": path, "deletes": "true"})
    reader = source.streamReader(source.schema())
    whole = reader.partitions(
        {"instant": "0" * 17, "began_after": "0" * 17}, {"instant": times[3], "began_after": "0" * 17}
    )
    try:
        reader.partitions(*({"instant": time, "began_after": times[0]} for time in (times[0], times[3])))
        said = "nothing"
    except InvalidConfigError as error:
        said = str(error)
    rows_of = [row for part in whole for batch in reader.read(part) for row in batch.to_pylist()]
    return [len(rows_of), said, times[3]]


def follow_cleaned_table(path):
    """What a reader gives, commit by commit, of a table whose older files were cleaned; no session is needed."""
    from pyspark.sql.streaming.datasource import ReadMaxFiles  # Spark 4.2

    from pyspark_hudistream import DefaultSource

    table = Follower(None, path, None)
    for number, keys in enumerate([range(4), range(2), range(2, 3), range(1)]):
        table.commit(number, keys)
    assert HudiTable.open(path).clean(CleanSettings(commits_retained=1, grace_ms=0))
    source = DefaultSource({"path": path, "max_instants_per_batch": "1"})
    reader = source.streamReader(source.schema())
    start, batches = reader.initialOffset(), []
    while (end := reader.latestOffset(start, ReadMaxFiles(1))) != start:
        rows = [
            row for part in reader.partitions(start, end) for batch in reader.read(part) for row in batch.to_pylist()
        ]
        batches.append(sorted(row["id"] + row["v"] for row in rows))
        reader.commit(end)
        start = end
    return batches
