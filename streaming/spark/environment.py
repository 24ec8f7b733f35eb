"""The environment of a batch: the streaming query's id, the number of parallel tasks, and a check of the workers.

Loaded once per process, in one small job of the first batch.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from streaming.spark.workers import QUERY_ID_PROPERTY
from table.errors import InvalidConfigError
from table.options.write_options import WriteOptions
from table.version import VERSION

# setting -> default where it is not set; Spark checks the type of settings that it declares
_ASKED = {
    "spark.sql.shuffle.partitions": "200",
    "spark.executor.cores": "",
    "spark.executor.instances": "",
    "spark.dynamicAllocation.enabled": "",
    "spark.dynamicAllocation.maxExecutors": "",
}
_PROBED_ROWS = 4096  # more than the number of tasks that run at once


@dataclass(frozen=True)
class Environment:
    """Facts about the Spark application and the query.

    Attributes:
        query_id: the streaming query's, or None outside a stream.
        parallelism: the largest number of tasks that write a batch.
    """

    query_id: str | None
    parallelism: int


def check_session(spark: SparkSession) -> None:
    """Refuses settings under which a batch could be written twice.

    Raises:
        InvalidConfigError: when speculative execution is on.
    """
    if str(spark.conf.get("spark.speculation", "false")).lower() == "true":
        raise InvalidConfigError(
            "spark.speculation=true is refused: two attempts at one task would write the same rows at the same time; "
            "set spark.speculation=false for this application"
        )
    if str(spark.conf.get("spark.sql.parser.escapedStringLiterals", "false")).lower() == "true":
        raise InvalidConfigError(
            "spark.sql.parser.escapedStringLiterals=true is refused: keys and partition paths are made by Spark SQL "
            "and would be spelled differently; unset it for this session"
        )


def check_is_written_at_once(rows: object) -> None:
    """Refuses an object that is no Spark DataFrame, and a streaming DataFrame, which cannot be collected at once.

    Args:
        rows: the caller's object: should be a DataFrame of classic Spark or Spark Connect.

    Raises:
        InvalidConfigError: names the type and a remedy.
    """
    if not hasattr(rows, "sparkSession"):
        kind = f"{type(rows).__module__}.{type(rows).__qualname__}".removeprefix("builtins.")
        raise InvalidConfigError(
            f"HudiSink.write takes a Spark DataFrame, not a {kind}: make one of it, as with spark.createDataFrame(rows)"
        )
    if getattr(rows, "isStreaming", False):
        raise InvalidConfigError(
            "HudiSink.write takes a DataFrame that is not streaming: write a stream with "
            "df.writeStream.foreachBatch(sink).start()"
        )


def is_query_over(spark: SparkSession, query_id: str | None) -> bool:
    """Whether a streaming query of this application has ended. False for a write outside a stream."""
    return query_id is not None and query_id not in {query.id for query in spark.streams.active}


def load_environment(spark: SparkSession, options: WriteOptions) -> Environment:
    """Asks the workers, in one job of as many tasks as the application runs at once.

    Raises:
        InvalidConfigError: workers lack pyarrow or this package, or have another version of it. Names a host.
    """
    answers = _probe(spark)
    problem = find_unfit(answers, VERSION)
    if problem is not None:
        raise InvalidConfigError(problem)
    conf = {name: spark.conf.get(name, default) for name, default in _ASKED.items()}
    parallelism = choose_parallelism(conf, options.tasks.insert_parallelism, len(answers))
    return Environment(answers[0].get("query_id"), parallelism)


def choose_parallelism(conf: Mapping[str, Any], configured: int | None, slots: int) -> int:
    """The largest number of tasks that write a batch (pure).

    Args:
        conf: Spark's settings; missing ones are "".
        configured: ``hoodie.insert.shuffle.parallelism``.
        slots: the tasks into which Spark splits a range by default: on a cluster, the cores of the present executors.

    Returns:
        The configured number. Else the slots, or the cores to which the application may grow according to its settings,
        whichever is more, but at most ``spark.sql.shuffle.partitions``.
    """
    if configured:
        return configured
    partitions = max(1, int(conf.get("spark.sql.shuffle.partitions") or 200))
    cores = int(conf.get("spark.executor.cores") or 1)
    wanted = int(conf.get("spark.executor.instances") or 0) * cores
    if str(conf.get("spark.dynamicAllocation.enabled") or "").lower() == "true":
        most = conf.get("spark.dynamicAllocation.maxExecutors")
        wanted = max(wanted, int(most) * cores if most else partitions)
    return max(1, min(max(slots, wanted), partitions))


def find_unfit(answers: Sequence[Mapping[str, Any]], version: str) -> str | None:
    """A message about a worker that cannot write a batch, with a remedy; None: all workers can (pure).

    Args:
        answers: for each task of the probe: host, version of Python, and version of hudistream or the missing module.
        version: the version of hudistream on the driver.
    """
    for answer in answers:
        where = f"the Python {answer['python']} of Spark's worker on {answer['host']}"
        if "missing" in answer:
            return (
                f"{where} lacks the module {answer['missing']!r}: install hudistream[spark] on every node, send a "
                "packed environment along (spark-submit --archives), or point PYSPARK_PYTHON (spark.pyspark.python) to "
                "a Python that has it; nothing was written"
            )
        if answer["hudistream"] != version:
            return (
                f"{where} has hudistream {answer['hudistream']}, and the driver has {version}: install the same "
                "version on every node; nothing was written"
            )
    return None


def _probe(spark: SparkSession) -> list[dict[str, Any]]:
    try:
        rows = spark.range(_PROBED_ROWS).mapInArrow(_make_question(), "facts string").collect()
    except Exception as error:
        diagnosis = diagnose_worker(str(error))
        if diagnosis is None:
            raise
        raise InvalidConfigError(diagnosis) from error
    return [json.loads(row.facts) for row in rows]


def diagnose_worker(message: str) -> str | None:
    """A message about a module that a worker lacks, from its failure; None where the failure names none (pure)."""
    missing = re.search(r"(?:No module named|ModuleNotFoundError:)[^'\"]*['\"]([A-Za-z_]+)", message)
    if missing is None and "PyArrow" in message:
        name = "pyarrow"
    elif missing is None:
        return None
    else:
        name = missing[1]
    return (
        f"Spark's Python workers lack the module {name!r}: install hudistream[spark] there, or point PYSPARK_PYTHON "
        "(spark.pyspark.python) to a Python that has it; nothing was written"
    )


def _make_question() -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that the probe runs in each task. It is nested, so Spark pickles it by value, not by import."""
    query_id_property = QUERY_ID_PROPERTY

    def look_around(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import json  # noqa: PLC0415
        import platform  # noqa: PLC0415
        import socket  # noqa: PLC0415

        import pyarrow as pa  # noqa: PLC0415
        from pyspark import TaskContext  # noqa: PLC0415

        context = TaskContext.get()
        facts = {
            "host": socket.gethostname(),
            "python": platform.python_version(),
            "query_id": context.getLocalProperty(query_id_property) if context is not None else None,
        }
        try:
            import streaming.task.append  # noqa: F401, PLC0415
            from table.version import VERSION  # noqa: PLC0415

            facts["hudistream"] = VERSION
        except ImportError as error:
            facts["missing"] = error.name or str(error)
        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict({"facts": [json.dumps(facts)]})

    return look_around
