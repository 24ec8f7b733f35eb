"""What fails in a task reaches the caller as our error, with the instant, the partition path and the file group."""

import glob
import os
import pickle

import pytest
from engine import Engine, key_set, rows
from snapshots import list_snapshot_files
from tiers import quick

from streaming.task.failure import MARK, WorkerError, encode_failure, read_failure, told_to_the_driver
from table import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptFileError,
    HudiError,
    StorageError,
    TaskFailedError,
    read_table,
)
from table.failures import failing_at
from table.files.names import parse_base_file
from table.hudi_table import HudiTable
from table.storage.local import LocalStorage

UPSERT = {"hoodie.datasource.write.operation": "upsert"}
GLOBAL = {**UPSERT, "hoodie.index.type": "GLOBAL_BLOOM"}


def one_path(_number):
    return "a path"


class Breaks(LocalStorage):
    """A store whose named call fails."""

    def __init__(self, path, call, error):
        super().__init__(path)
        self._broken, self._error = call, error

    def __getattribute__(self, name):
        if name.startswith("_") or name != self._broken:
            return super().__getattribute__(name)

        def fail(*_args, **_kwargs):
            raise self._error

        return fail


WAYS = [
    ("open_input", {}, True),
    ("open_output", UPSERT, True),
    ("open_input", UPSERT, True),
    ("open_input", GLOBAL, True),
    ("list_dir", UPSERT, False),
]


@pytest.mark.parametrize(
    ("make", "message", "kind"),
    [(StorageError, "no such bucket", StorageError), (OSError, "disk on fire", TaskFailedError)],
)
@pytest.mark.parametrize(("call", "options", "knows_file"), WAYS)
def test_a_task_says_where_it_failed(tmp_path, call, options, knows_file, make, message, kind):
    path, raised = str(tmp_path / "t"), make(message)
    Engine(path).write(0, rows(range(5), one_path))
    (file,) = list_snapshot_files(HudiTable.open(path))
    engine = Engine(path, options, worker_storage=Breaks(path, call, raised))
    with pytest.raises(kind) as failed:
        engine.write(1, rows(range(5), one_path, ts=1))
    error = failed.value
    (plan,) = engine.plans
    place = (plan.context.instant_time, "a path", file.file_id if knows_file else None)
    again = pickle.loads(pickle.dumps(error))
    for told in (error, again):
        assert type(told) is kind
        assert (told.instant_time, told.partition_path, told.file_group) == place
        assert str(told).startswith(f"{message} (" if kind is make else f"{make.__name__}: {message} (")
        for name in ("'a path'", plan.context.instant_time, *(place[2:] if knows_file else ())):
            assert name in str(told)
    assert error is raised or error.__cause__ is raised
    assert key_set(read_table(path)) == key_set(rows(range(5)))


def test_the_file_group_of_an_earlier_path_is_not_told_of_a_later_one():
    with (
        pytest.raises(StorageError) as failed,
        failing_at(instant_time="1", partition_path="b", file_group="f"),
        failing_at(partition_path="a"),
    ):
        raise StorageError("why")
    assert str(failed.value) == "why (instant 1, partition path 'a')"


def carried(error):
    with pytest.raises(WorkerError) as raised, told_to_the_driver():
        raise error
    frames = 'Traceback (most recent call last):\n  File "worker.py", line 1, in main\n'
    return f"Job aborted due to stage failure: {frames}streaming.WorkerError: {raised.value}\n\n\tat org.apache.X\n"


def test_an_error_survives_sparks_text():
    error = StorageError('two\nlines and "quotes" \\ of ü')
    error.instant_time, error.partition_path, error.file_group = "20260101", "a\nb=ü", "f-0"
    found = read_failure(carried(error), "other", from_python=True)
    assert type(found) is StorageError
    assert (str(found), vars(found)) == (str(error), vars(error))
    # whatever a partition path may be called
    error.partition_path = MARK + "{}"
    assert vars(read_failure(carried(error), "other", from_python=False)) == vars(error)


def test_an_error_that_is_none_of_ours_becomes_one():
    found = read_failure(carried(ZeroDivisionError("by zero")), "20260101", from_python=True)
    assert (type(found), str(found)) == (TaskFailedError, "ZeroDivisionError: by zero (instant 20260101)")


def test_a_task_never_leaves_the_outcome_of_a_commit_in_doubt():
    found = read_failure(carried(CommitOutcomeUnknownError("a marker, perhaps")), "1", from_python=True)
    assert type(found) is TaskFailedError


@pytest.mark.parametrize(
    ("text", "from_python", "said"),
    [
        ("Job 5 cancelled because the query was stopped", False, None),
        ("[UNRESOLVED_COLUMN] no such column", False, None),
        (
            "Job aborted due to stage failure: Python worker exited unexpectedly (crashed)\n\tat org",
            False,
            "Job aborted due to stage failure: Python worker exited unexpectedly (crashed) (instant 7)",
        ),
        (
            (
                "\n  An exception was thrown from the Python worker.\nTraceback (most recent call last):\n  File 1\n"
                "KeyError: 'a'\n\nDuring handling of the above:\n\nTraceback (most recent call last):\n  File 2\n"
                "ValueError: not a number\n"
            ),
            True,
            "ValueError: not a number (instant 7)",
        ),
        # cut off by a server that passes on no more than so many characters
        (carried(StorageError("x" * 40))[:170], True, None),
    ],
)
def test_what_spark_says_without_a_word_of_ours(text, from_python, said):
    found = read_failure(text, "7", from_python=from_python)
    if said is None and not from_python:
        assert found is None
    else:
        assert (type(found), found.instant_time) == (TaskFailedError, "7")
        assert said is None or str(found) == said


def test_the_text_of_an_error_is_one_that_people_can_read():
    assert encode_failure(StorageError("why")).startswith("why " + MARK)


@pytest.mark.spark
@pytest.mark.parametrize("options", quick(1, [GLOBAL, {}, UPSERT, {"hoodie.combine.before.insert": "true"}]), ids=str)
def test_what_fails_on_a_spark_worker_is_our_error_with_its_place(spark, tmp_path, options):
    from pyspark.errors import PythonException
    from stream import OPTIONS, frame

    from streaming import HudiSink

    path = str(tmp_path / "t")
    HudiSink(path, OPTIONS)(frame(spark, 0, 30), 0)
    (broken,) = glob.glob(os.path.join(path, "p1", "*.parquet"))
    with open(broken, "rb") as file:
        whole = file.read()
    with open(broken, "wb") as file:
        file.write(whole[:-4] + b"oops")
    sink = HudiSink(path, {**OPTIONS, **options})
    with pytest.raises(HudiError) as failed:
        sink(frame(spark, 0, 30), 1)
    error = failed.value
    assert isinstance(error, CorruptFileError | TaskFailedError)
    assert isinstance(error.__cause__, PythonException)
    assert (error.partition_path, error.file_group) == ("p1", parse_base_file(os.path.basename(broken)).file_id)
    assert error.instant_time > parse_base_file(os.path.basename(broken)).instant_time
    for word in (error.instant_time, "'p1'", error.file_group):
        assert word in str(error)
    assert MARK not in str(error)
    with open(broken, "wb") as file:
        file.write(whole)
    assert HudiTable.open(path).load_timeline().pending == ()
    sink(frame(spark, 0, 30), 1)


@pytest.mark.spark
def test_what_fails_before_the_tasks_of_the_sink_names_the_instant(spark, tmp_path):
    from pyspark.errors import PythonException
    from pyspark.sql import functions as F
    from stream import OPTIONS, frame

    from streaming import HudiSink

    def refuse(value):
        raise ValueError("not today")

    path = str(tmp_path / "t")
    refused = frame(spark, 0, 3).withColumn("ts", F.udf(refuse, "bigint")("ts"))
    with pytest.raises(TaskFailedError, match=r"^ValueError: not today \(instant \d{17}\)(\n|$)") as failed:
        HudiSink(path, OPTIONS)(refused, 0)
    assert isinstance(failed.value.__cause__, PythonException)
    # what cannot be planned is no failure of a task
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException):
        HudiSink(path, OPTIONS)(frame(spark, 0, 3).select("id", "p", F.col("nope").alias("ts")), 0)


def test_an_error_of_the_jvm_is_told_without_the_words_around_it():
    text = (
        "An error occurred while calling o160.collectToPython.\n: org.apache.spark.SparkException: Job aborted due to "
        "stage failure: Task 1 in stage 1.0 failed 1 times, most recent failure: Lost task 1.0 in stage 1.0 (TID 2) "
        "(executor driver): java.util.IllegalFormatConversionException: d != java.lang.Double\n\tat java.base/x\n"
    )
    found = read_failure(text, "7", from_python=False)
    assert str(found) == (
        "Lost task 1.0 in stage 1.0 (TID 2) (executor driver): java.util.IllegalFormatConversionException: "
        "d != java.lang.Double (instant 7)"
    )


def test_a_file_that_is_gone_is_a_conflict_and_the_batch_can_be_planned_anew():
    with pytest.raises(CommitConflictError, match="does not exist any more") as found, failing_at(partition_path="p"):
        raise FileNotFoundError("p/f.parquet")
    assert found.value.partition_path == "p"
