"""The sink without Spark: rows of an Arrow table reach the same tasks, in a loop."""

from contextlib import nullcontext
from dataclasses import replace

import pyarrow as pa

from streaming.batch.micro_batch import MicroBatchWriter
from streaming.batch.workers import Batch
from streaming.task.in_process import InProcessWorkers
from table.options.write_options import parse_options
from table.storage.local import LocalStorage
from table.view.store_listing import StorageListing

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "insert",
    # a thread beside the batch would make the order of storage calls a matter of luck
    "hoodie.clean.automatic": "false",
    "hudistream.clean.grace.ms": "0",
    "hoodie.archive.automatic": "false",
    "compaction.tasks": "1",
}
# a metadata table with statistics of columns, where the table allows it
STATISTICS = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())])


def rows(keys, partition=lambda number: f"p{number % 3}", ts=0, v="v"):
    """Rows with these numbers as keys."""
    numbers = list(keys)
    return pa.table(
        {
            "id": [f"k{number}" for number in numbers],
            "p": [partition(number) for number in numbers],
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "v": [v] * len(numbers),
        },
        schema=SCHEMA,
    )


def form_of(version, table_type):
    """Options of an upserted table of a version and type."""
    return {
        "hoodie.write.table.version": str(version),
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.operation": "upsert",
    }


def key_set(table):
    """The record keys of a table as a sorted list: doubles show."""
    return sorted(table.column("id").to_pylist())


class Engine:
    """A sink whose exchange is a loop in this process.

    Args:
        storage: the table's, faulty ones included.
        worker_storage: what the tasks get; None means the same.
        retry: how often a failed task is tried again, as Spark does.
    """

    def __init__(
        self, storage, options=None, worker_storage=None, query_id="q", retry=0, batch_rows=7, aside=None, validators=()
    ):
        if isinstance(storage, str):
            storage = LocalStorage(storage)
        parsed = parse_options({**OPTIONS, **(options or {})}).options
        self.writer = MicroBatchWriter(storage, parsed, "t", validators, aside)
        self.worker_storage, self.query_id, self.retry, self.batch_rows = worker_storage, query_id, retry, batch_rows
        self.partition_field = next(iter(parsed.keys.partition_fields or ()), "")
        self.plans = []
        self.attempts = 0

    def write(self, batch_id, table, parallelism=2, schema=None):
        """Writes one batch."""
        return self.writer.write(Batch(self.workers(table, parallelism, schema), batch_id, self.query_id))

    def workers(self, table, parallelism=2, schema=None):
        """What distributes a batch."""
        return _Workers(self, table, parallelism, schema)

    def route(self, plan, table):
        """The batches of each task."""
        return self.workers(table).route(None, plan)

    @property
    def profiles(self):
        """What the writer knows of the table, for the operation of its options."""
        return self.writer._profiles.of(self.writer._options)

    def distribute(self, plan, table):
        """Has a batch written; tests that interfere put something else in its place."""
        if self.worker_storage is not None:
            context = replace(plan.context, storage=self.worker_storage)
            plan = replace(plan, context=context, listing=StorageListing(self.worker_storage))
        self.plans.append(plan)
        workers = self.workers(table)
        workers._started = self.attempts
        try:
            return InProcessWorkers.write(workers, None, plan)
        finally:
            self.attempts = workers._started


class _Workers(InProcessWorkers):
    """Rows whose key is the column id, and whose partition path is the first partition field, if they have it."""

    def __init__(self, engine, table, parallelism, schema):
        named = engine.partition_field in table.column_names
        paths = table.column(engine.partition_field) if named else pa.chunked_array([[""] * len(table)], pa.string())
        ids = table.column("id") if "id" in table.column_names else pa.chunked_array([pa.nulls(len(table))])
        keys = ids.cast(pa.string())
        attempts = engine.retry + 1
        super().__init__(table, parallelism=parallelism, attempts=attempts, batch_rows=engine.batch_rows)
        self._engine, self._schema, self._keys, self._paths = engine, schema or table.schema, keys, paths

    @property
    def schema(self):
        return self._schema

    def _make_keys(self, keys, rows, start):
        return self._keys.slice(start, len(rows)), self._paths.slice(start, len(rows))

    def write(self, keys, plan):
        return self._engine.distribute(plan, self._rows)


def undo_nothing(writer):
    """The process of the writer dies where its batch fails: nothing is rolled back, and no heart beats."""
    writer._planner._under_way = lambda *_: nullcontext()


def leave_a_dead_batch(engine, batch_id, table):
    """The writer dies when its tasks are done and nothing is decided: what they wrote stays, and nothing undoes it."""
    inner = engine.distribute

    def dies(plan, given):
        inner(plan, given)
        raise KeyboardInterrupt

    engine.distribute = dies
    undo_nothing(engine.writer)
    try:
        engine.write(batch_id, table)
    except KeyboardInterrupt:
        engine.writer.stop()
        return
    raise AssertionError("the batch came to its end")
