"""The environment of a batch: the streaming query's id, the number of parallel tasks, and a check of the workers.

Loaded once per process, in one small job of the first batch.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streaming.spark.carried import DIFFERS, MISSING, ArrowTask, by_value
from streaming.spark.worker_failure import diagnose_worker
from streaming.spark.workers import JOB_GROUP_PROPERTY, QUERY_ID_PROPERTY
from table import clock
from table.config.table_config import PROPERTIES_FILE
from table.errors import InvalidConfigError
from table.log import get_logger
from table.options.write_options import WriteOptions
from table.storage.interface import Storage
from table.version import VERSION

log = get_logger("hudistream.sink")
# setting -> default where it is not set; Spark checks the type of settings that it declares
_ASKED = {
    "spark.sql.shuffle.partitions": "200",
    "spark.executor.cores": "",
    "spark.executor.instances": "",
    "spark.dynamicAllocation.enabled": "",
    "spark.dynamicAllocation.maxExecutors": "",
}
_MARK = "hudistream.run"
_CLOCK_TOLERANCE_S = 60.0
_PROBED_ROWS = 4096  # more than the number of tasks that run at once


@dataclass(frozen=True)
class Environment:
    """Facts about the Spark application and the query.

    Attributes:
        query_id: the id of the streaming query; None outside a stream.
        parallelism: the largest number of tasks that write a batch.
        job_group: the job group of the workers' tasks: the run of the query, unless code of the caller set another.
    """

    query_id: str | None
    parallelism: int
    job_group: str | None = field(default=None, compare=False)


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


# query -> the session that named it as active, at its first batch here; None: it was started in a session of the user's
_SEEN_BY: dict[str, SparkSession | None] = {}


def note_active(spark: SparkSession, query_id: str | None) -> None:
    """Remembers who names a query of this process as active, for `is_query_over`.

    Spark clones the session for each query, and a clone knows no query. So the application's own session is asked.
    Under Spark Connect no session is asked: each query has a process of its own there.

    Args:
        spark: the session of a batch of the query.
        query_id: the query, which has a batch under way; None: a write outside a stream.
    """
    if query_id is None or is_connect(spark):
        return
    known = _SEEN_BY.get(query_id)
    if known is None or not _names(known, query_id):  # its application may have stopped Spark, and started it again
        own = SparkSession.builder.getOrCreate()
        _SEEN_BY[query_id] = own if _names(own, query_id) else None


def is_seen_active(query_id: str | None) -> bool:
    """Whether a query was named as active before, so that it is known when it is no more."""
    return query_id is not None and _SEEN_BY.get(query_id) is not None


def is_query_over(query_id: str | None) -> bool:
    """Whether a streaming query of this process has ended, as far as it is known for sure.

    False for a write outside a stream, and for a query that was never named as active.
    """
    session = None if query_id is None else _SEEN_BY.get(query_id)
    return session is not None and query_id is not None and not _names(session, query_id)


def _names(session: SparkSession, query_id: str) -> bool:
    try:
        UUID(query_id)
    except ValueError:  # of no query of Spark, which refuses to look for it
        return False
    return session.streams.get(query_id) is not None


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def mark_of_run(spark: SparkSession) -> str | None:
    """A mark that the frames of one run of a query share, and that those of another run have not.

    Spark clones the session for each run, so the mark is a setting of the session. None: it is the application's own
    session, which outlives the runs, or one of Spark Connect, where each run has a Python process of its own.
    """
    if is_connect(spark) or spark is SparkSession.builder.getOrCreate():
        return None
    mark = spark.conf.get(_MARK, None)
    if mark is None:
        mark = clock.fresh_uuid()
        spark.conf.set(_MARK, mark)
    return mark


def find_only_query(spark: SparkSession) -> str | None:
    """The query of a batch whose tasks do not know it: the sink was called in a thread of the caller's own.

    The tasks have the query's id from a property of the thread that runs ``foreachBatch``. A thread of a pool does not
    have that property, unless it is a `pyspark.InheritableThread`.

    Args:
        spark: the session of the batch (classic). A query has a session of its own.

    Returns:
        The only active query; None outside a stream.

    Raises:
        InvalidConfigError: several queries are active, and a batch of one could be taken for that of another.
    """
    own = SparkSession.builder.getOrCreate()
    if spark is own:
        return None
    active = [query.id for query in own.streams.active]
    if len(active) > 1:
        raise InvalidConfigError(
            "the sink was called in a thread of the caller's own, to which Spark does not tell the streaming query: "
            f"{len(active)} are active. Use pyspark.InheritableThread, call the sink in the thread that runs "
            "foreachBatch, or set hudistream.checkpoint.location to the query's checkpointLocation; nothing was written"
        )
    return active[0] if active else None


def load_environment(spark: SparkSession, options: WriteOptions, storage: Storage) -> Environment:
    """Asks the workers, in one job of as many tasks as the application runs at once.

    Args:
        spark: the session, classic or Connect.
        options: the options of the sink.
        storage: the table's storage. Each worker looks for the table there.

    Raises:
        InvalidConfigError: workers have no pyarrow or not this package, have another version of it, cannot reach the
            store, or do not see the table that the driver sees. The error names a host.
        StorageError: the driver cannot reach the store.
    """
    is_there, asked_s = storage.exists(PROPERTIES_FILE), clock.now_ms() / 1000
    answers = _probe(spark, storage)
    problem = find_unfit(answers, VERSION, storage.base_uri if is_there else None)
    if problem is not None:
        raise InvalidConfigError(problem)
    for host, off_s in clocks_off(answers, asked_s, clock.now_ms() / 1000).items():
        log.warning(
            "clock_of_a_worker_is_off",
            host=host,
            seconds=off_s,
            reason="stores refuse requests whose time is off by 15 minutes; the table is timed by the driver's clock",
        )
    conf = {name: spark.conf.get(name, default) for name, default in _ASKED.items()}
    parallelism = choose_parallelism(conf, options.tasks.insert_parallelism, len(answers))
    return Environment(answers[0].get("query_id"), parallelism, answers[0].get("job_group"))


def choose_parallelism(conf: Mapping[str, Any], configured: int | None, slots: int) -> int:
    """The largest number of tasks that write a batch (pure).

    Args:
        conf: Spark's settings; missing ones are "".
        configured: ``hoodie.insert.shuffle.parallelism``.
        slots: the tasks into which Spark splits a range by default: on a cluster, the cores of the present executors.

    Returns:
        The configured number, if there is one. Else the greater of two numbers, but at most
        ``spark.sql.shuffle.partitions``: the slots, and the cores to which the settings let the application grow.
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


def find_unfit(answers: Sequence[Mapping[str, Any]], version: str, seen: str | None = None) -> str | None:
    """A message about a worker that cannot write a batch, with a remedy; None: all workers can (pure).

    Args:
        answers: for each task of the probe: host, version of Python, and version of hudistream or the missing module;
            ``sees``, whether the worker sees the table, or ``store``, the store's error.
        version: the version of hudistream on the driver.
        seen: the address of the table, if the driver sees it.
    """
    for answer in answers:
        node = {"python": answer["python"], "host": answer["host"]}
        if "missing" in answer:
            return MISSING.format(module=answer["missing"], **node)
        if answer["hudistream"] != version:
            return DIFFERS.format(found=answer["hudistream"], version=version, **node)
        if "store" in answer:
            return (
                f"Spark's worker on {answer['host']} cannot reach the table's store, and the driver can: "
                f"{answer['store']}; nothing was written"
            )
        if seen is not None and not answer.get("sees", True):
            return (
                f"Spark's worker on {answer['host']} does not see the table {seen!r}, and the driver does: the table "
                "of a cluster lies in a folder that all nodes share, or in an object store; nothing was written"
            )
    return None


def clocks_off(answers: Sequence[Mapping[str, Any]], asked_s: float, answered_s: float) -> dict[str, float]:
    """Seconds by which the clocks of hosts are ahead of the driver's, or slow if negative (pure).

    Args:
        answers: for each task: ``host`` and ``now``, its time in seconds since 1970.
        asked_s: the driver's time before the question.
        answered_s: its time after the last answer.

    Returns:
        Host -> seconds, of hosts whose clock is off by more than a minute.
    """
    off = {}
    for answer in answers:
        ahead = max(answer.get("now", asked_s) - answered_s, 0) or min(answer.get("now", asked_s) - asked_s, 0)
        if abs(ahead) > _CLOCK_TOLERANCE_S:
            off[answer["host"]] = round(ahead, 1)
    return off


def _probe(spark: SparkSession, storage: Storage) -> list[dict[str, Any]]:
    try:
        rows = spark.range(_PROBED_ROWS).mapInArrow(_make_question(storage), "facts string").collect()
    except Exception as error:
        diagnosis = diagnose_worker(str(error))
        if diagnosis is None:
            raise
        raise InvalidConfigError(_name_bare_worker(spark) or diagnosis) from error
    return [json.loads(row.facts) for row in rows]


def _name_bare_worker(spark: SparkSession) -> str | None:
    """The message about a worker without a module, asked without Arrow; None where each has all."""
    answered: list[int] = []

    def look_around(number: int) -> str | None:
        if answered:  # once for each task
            return None
        answered.append(number)
        import json  # noqa: PLC0415
        import platform  # noqa: PLC0415
        import socket  # noqa: PLC0415

        try:
            import streaming.task.append  # noqa: F401, PLC0415
        except ImportError as error:
            node = {"host": socket.gethostname(), "python": platform.python_version()}
            return json.dumps({**node, "missing": error.name or str(error)})
        return None

    ask = F.udf(look_around, "string", useArrow=False)
    try:
        rows = spark.range(_PROBED_ROWS).select(ask("id").alias("facts")).where("facts IS NOT NULL").collect()
    except PySparkException as error:
        log.debug("workers_cannot_be_asked", error=str(error))
        return None
    return find_unfit([json.loads(row.facts) for row in rows], VERSION)


def _make_question(storage: Storage) -> ArrowTask:
    """The function that answers once for each task. It is nested, so Spark pickles it by value.

    On a node without pyarrow Spark itself fails, and does not always name the node. Only then a plain UDF asks again
    (`_name_bare_worker`): for that job the JVM loads and compiles a way to Python that no batch takes, 1 s.
    """
    properties = {"query_id": QUERY_ID_PROPERTY, "job_group": JOB_GROUP_PROPERTY}
    sent, looked_for = by_value(storage), PROPERTIES_FILE

    def look_around(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in numbers:  # Spark ends a worker that has not read all that was sent, and starts another one
            pass
        import json  # noqa: PLC0415
        import pickle  # noqa: PLC0415
        import platform  # noqa: PLC0415
        import socket  # noqa: PLC0415

        import pyarrow as pa  # noqa: PLC0415
        from pyspark import TaskContext  # noqa: PLC0415

        context = TaskContext.get()
        facts: dict[str, object] = {
            "host": socket.gethostname(),
            "python": platform.python_version(),
            **{name: None if context is None else context.getLocalProperty(key) for name, key in properties.items()},
        }
        try:
            import streaming.task.append  # noqa: F401, PLC0415
            from table import clock  # noqa: PLC0415
            from table.errors import HudiError  # noqa: PLC0415
            from table.version import VERSION  # noqa: PLC0415

            facts["hudistream"] = VERSION
            facts["now"] = clock.now_ms() / 1000
            facts["sees"] = pickle.loads(sent).exists(looked_for)  # noqa: S301 of the driver
        except ImportError as error:
            facts["missing"] = error.name or str(error)
        except (HudiError, OSError) as error:
            facts["store"] = str(error)[:500]
        yield pa.RecordBatch.from_pydict({"facts": [json.dumps(facts)]})

    return look_around
