"""Runs the work of services on Spark's executors: numbered pieces, each of which writes files and returns their
stats.

A job beside the stream uses at most half of the cores, so that the next batch finds free cores. It runs in the thread
of the services, which belongs to no streaming query: stopping the query does not cancel it.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from streaming.plan.task_result import TaskResult, decode_result
from streaming.spark.carried import carried
from streaming.spark.worker_failure import failure_of
from streaming.task.failure import told_to_the_driver
from table.errors import TaskFailedError
from table.services.service import Piece, Spread, Stats


def spread_over(session: SparkSession, parallelism: int) -> Spread:
    """Makes a function that runs pieces of work on the executors of a session.

    Args:
        session: of the batch.
        parallelism: tasks that run at a time.

    Returns:
        The function. It raises a HudiError if a piece fails.
    """
    return partial(_run, session, max(1, parallelism // 2))


def _run(session: SparkSession, most: int, piece: Piece, count: int) -> Sequence[Stats]:
    numbers = session.range(0, count, 1, max(1, min(count, most)))
    try:
        rows = numbers.mapInArrow(carried(partial(_do_on_worker, piece)), "number bigint, result string").collect()
    except Exception as error:
        raise failure_of(error) or TaskFailedError(str(error).splitlines()[0]) from error
    results = {row.number: decode_result(row.result) for row in rows}
    return [results[number].stats for number in range(count)]


def _do_on_worker(piece: Piece, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            with told_to_the_driver():
                result = TaskResult(stats=piece(number)).encode()
            yield pa.RecordBatch.from_pydict({"number": [number], "result": [result]})
