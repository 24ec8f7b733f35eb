"""Turns the error of a Spark job into an error of hudistream (pure)."""

import re

from pyspark.errors import PythonException

from streaming.spark.carried import MISSING_SOMEWHERE
from streaming.task.failure import read_failure
from table.errors import HudiError, InvalidConfigError, TaskFailedError

_MODULE = re.compile(r"(?:No module named|ModuleNotFoundError:)[^'\"]*['\"]([A-Za-z_][\w.]*)")
_OURS = ("hudistream", "streaming", "table")
_NEEDED = frozenset((*_OURS, "pyarrow", "fastavro", "fsspec", "structlog", "numpy", "s3fs", "gcsfs", "adlfs"))
_HOST = re.compile(r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \(([^\s()]+) executor")


def failure_of(error: Exception, instant_time: str = "") -> HudiError | None:
    """The error that made a Spark job fail.

    Args:
        error: Spark's error.
        instant_time: the commit whose job failed.

    Returns:
        The error as a task raised it. An `InvalidConfigError` if a module is missing on a worker. A `TaskFailedError`
        if a task failed for another reason. None if no task failed: the job was cancelled, or it could not be planned.
    """
    text = str(error)
    failed = read_failure(text, instant_time, from_python=isinstance(error, PythonException))
    if isinstance(failed, TaskFailedError):
        diagnosis = diagnose_worker(text)
        if diagnosis is not None:
            unfit = InvalidConfigError(diagnosis)
            unfit.instant_time = failed.instant_time
            return unfit
    return failed


def diagnose_worker(message: str) -> str | None:
    """A message about a module that is missing on a worker, made from Spark's message; None if that names no module.

    Args:
        message: the message of the exception with which a job failed.
    """
    missing = _MODULE.search(message)
    if "PyArrow" not in message and (missing is None or missing[1].partition(".")[0] not in _NEEDED):
        return None  # a module that a function of the user's imports is their own
    module = "pyarrow" if missing is None else missing[1].partition(".")[0]
    host = _HOST.search(message)
    return MISSING_SOMEWHERE.format(module=module, where="" if host is None else f" on {host[1]}")
