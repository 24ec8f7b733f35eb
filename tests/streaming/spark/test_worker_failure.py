"""Spark's own words about a worker that lacks a module are turned into a remedy that names the host."""

import pytest

from streaming.spark.worker_failure import diagnose_worker, failure_of
from streaming.task.failure import encode_failure
from table.errors import InvalidConfigError, InvalidRecordError, TaskFailedError

ABORTED = (
    "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3 in stage "
    "3.0 (TID 11) (node-7 executor 2): org.apache.spark.api.python.PythonException: "
    "Traceback (most recent call last):\n"
)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("ModuleNotFoundError: No module named 'pyarrow'", "a worker of Spark does not have the module 'pyarrow'"),
        ("ModuleNotFoundError: No module named 'streaming.task.append'", "does not have the module 'streaming'"),
        (
            f"{ABORTED}ModuleNotFoundError: No module named 'pyarrow'",
            "of Spark on node-7 does not have the module 'pyarrow'",
        ),
        ("PyArrow >= 4.0.0 must be installed", "does not have the module 'pyarrow'"),
    ],
)
def test_a_module_that_is_missing_is_named(message, said):
    assert said in diagnose_worker(message)
    assert "spark-submit --archives" in diagnose_worker(message)


def test_other_failures_are_not_diagnosed():
    assert diagnose_worker("out of memory") is None
    assert diagnose_worker(f"{ABORTED}ModuleNotFoundError: No module named 'module_of_the_user'") is None


def test_a_missing_module_is_no_failure_of_the_task():
    failed = failure_of(RuntimeError(f"{ABORTED}ModuleNotFoundError: No module named 'pyarrow'"), "20260101000000000")
    assert type(failed) is InvalidConfigError
    assert failed.instant_time == "20260101000000000"


def test_the_error_of_a_task_is_kept():
    failed = failure_of(RuntimeError(ABORTED + encode_failure(InvalidRecordError("bad: No module named 'x'"))))
    assert type(failed) is InvalidRecordError
    assert type(failure_of(RuntimeError(f"{ABORTED}MemoryError"))) is TaskFailedError
    assert failure_of(RuntimeError("cancelled")) is None
