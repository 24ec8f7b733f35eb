"""The sink without Spark: rows of an Arrow table reach the same tasks, in a loop."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from streaming.batch.micro_batch import MicroBatchWriter
from streaming.plan.routes import Routes, hash_int
from streaming.task.append import write_rows
from streaming.task.regroup import SLOT_COLUMN
from streaming.task.tag import tag_rows, tasks_of
from streaming.task.upsert import write_changes
from table.columns.conform import conform
from table.options.write_options import parse_options
from table.records.merge import ARRIVAL_COLUMN
from table.schema.avro_schema import PARTITION_PATH, RECORD_KEY
from table.storage.local import LocalStorage

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    # a thread beside the batch would make the order of storage calls a matter of luck
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())])


INTERNAL = ("_hoodie_record_key", "_hoodie_partition_path", "_hudistream_")


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


def key_set(table):
    """The record keys of a table as a sorted list: doubles show."""
    return sorted(table.column("id").to_pylist())


def texts(column):
    """Values that tasks are chosen by; bytes that are no text are as good as others for that."""
    values = column.cast(pa.string()).cast(pa.binary()).to_pylist()
    return [None if value is None else value.decode("utf-8", "replace") for value in values]


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
        self.plans = []
        self._attempt = 0

    def write(self, batch_id, table, parallelism=2, schema=None):
        """Writes one batch."""
        return self.writer.write(
            batch_id,
            schema or table.schema,
            self.query_id,
            parallelism,
            lambda keys, plan: self._distribute(plan, table),
            ask_paths=lambda keys: pc.unique(table.column("p")).to_pylist(),
        )

    def _distribute(self, plan, table):
        if self.worker_storage is not None:
            plan = replace(plan, context=replace(plan.context, storage=self.worker_storage))
        self.plans.append(plan)
        results = []
        routed = self._route(plan.routes, table, plan)
        if plan.changes is not None and plan.changes.apart:
            routed = self._tag(plan, routed)
        for task, batches in enumerate(routed):
            if batches:
                results.append(self._run(plan, task, batches))
        return [result for result in results if result.stats or result.bad_rows or result.listed]

    def _tag(self, plan, routed):
        """The second exchange."""
        tasks = [[] for _ in range(plan.routes.tasks)]
        for batches in routed:
            for rows in tag_rows(plan, batches or []):
                assert rows.schema == plan.tagged_schema
                target = pa.array(tasks_of(plan, rows))
                for task in range(plan.routes.tasks):
                    tasks[task] += rows.filter(pc.equal(target, task)).combine_chunks().to_batches(self.batch_rows)
        return tasks

    def _run(self, plan, task, batches):
        for left in range(self.retry, -1, -1):
            self._attempt += 1
            try:
                write = write_rows if plan.changes is None else write_changes
                return write(plan, f"{task}-0-{self._attempt}", batches)
            except Exception:
                if not left:
                    raise

    def _route(self, routes: Routes, table, plan):
        keys = texts(table.column("id"))
        paths = texts(table.column("p")) if "p" in table.column_names else [""] * len(keys)
        slots = [
            hash_int(sum(map(ord, key or ""))) % routes.slots_of(path) for key, path in zip(keys, paths, strict=True)
        ]
        tasks = []
        for path, slot in zip(paths, slots, strict=True):
            if plan.changes is not None and plan.changes.is_global:
                tasks.append(sum(map(ord, keys[len(tasks)] or "")) % routes.tasks)
                continue
            planned = routes.planned.get(path)
            tasks.append(planned[slot] if planned else sum(map(ord, path), slot) % routes.tasks)
        table = table.append_column(RECORD_KEY, table.column("id").cast(pa.string()))
        of_rows = table.column("p") if "p" in table.column_names else pa.array(paths, pa.string())
        table = table.append_column(PARTITION_PATH, of_rows)
        table = table.append_column(SLOT_COLUMN, pa.array(slots, pa.int32()))
        if plan.changes is not None:
            table = table.append_column(ARRIVAL_COLUMN, pa.array(range(len(table)), pa.int64()))
        if plan.needs_keys_only:
            table = table.select([name for name in table.column_names if name.startswith(INTERNAL)])
        table = conform(table, plan.arriving_schema)
        for task in range(routes.tasks):
            mine = table.filter(pc.equal(pa.array(tasks, pa.int64()), task))
            if plan.changes is not None:
                yield mine.combine_chunks().to_batches(self.batch_rows) if len(mine) else []
                continue
            order = [(PARTITION_PATH, "ascending"), (SLOT_COLUMN, "ascending")]
            if plan.context.combine_before_insert:
                order += [(RECORD_KEY, "ascending"), ("ts", "ascending")]
            yield mine.sort_by(order).combine_chunks().to_batches(self.batch_rows) if len(mine) else []
