"""Carries a task's error through Spark, which keeps only its text (pure).

The worker writes the error's class and place into that text, and the driver reads them back. Spark may add text before
and after it, but must not cut it off.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from table.errors import CommitOutcomeUnknownError, HudiError, TaskFailedError
from table.failures import describe

MARK = "hudistream-task-failure "
MOST_CHARACTERS = 500  # of a message that is not ours, such as Spark's

PLACE = ("instant_time", "partition_path", "file_group")
_TRACEBACK = "Traceback (most recent call last)"
_LAST_FAILURE = "most recent failure: "
_ABORTED = "Job aborted due to stage failure"


class WorkerError(Exception):
    """The error that a worker raises to Spark: its text can be read by `read_failure`."""


@contextmanager
def told_to_the_driver() -> Iterator[None]:
    """Makes errors of the block readable on the driver.

    Raises:
        WorkerError: in place of any error of the block.
    """
    try:
        yield
    except Exception as error:
        raise WorkerError(encode_failure(error)) from error


def encode_failure(error: Exception) -> str:
    """The error as a message for people, followed by one line of JSON in ASCII for `read_failure`."""
    message = error.args[0] if isinstance(error, HudiError) and error.args else describe(error)
    facts = {"class": type(error).__name__, "message": str(message)}
    place = {name: getattr(error, name, None) for name in PLACE}
    return f"{error} {MARK}{json.dumps({**facts, **place})}"


def read_failure(text: str, instant_time: str, *, from_python: bool) -> HudiError | None:
    """The error that made a Spark job fail (pure).

    Args:
        text: the text of Spark's exception.
        instant_time: the commit whose job failed.
        from_python: whether Spark says that a Python worker raised it.

    Returns:
        The error as the task raised it. A `TaskFailedError` where a task failed and its error is missing in the text or
        cut off. None where no task failed: the job was cancelled, or it could not be planned.
    """
    facts = _find_facts(text)
    if facts is None and not from_python and _ABORTED not in text:
        return None
    if facts is None:
        failed: HudiError = TaskFailedError(_gist(text))
    else:
        failed = _class_of(facts["class"])(facts["message"])
        for name in PLACE:
            setattr(failed, name, facts[name])
    failed.instant_time = failed.instant_time or instant_time
    return failed


def _find_facts(text: str) -> dict[str, str | None] | None:
    decoder, at = json.JSONDecoder(), text.find(MARK)
    while at >= 0:
        try:
            facts, _ = decoder.raw_decode(text, at + len(MARK))
        except ValueError:
            facts = None
        if isinstance(facts, dict) and {"class", "message", *PLACE} <= set(facts):
            return facts
        at = text.find(MARK, at + 1)
    return None


def _class_of(name: str | None) -> type[HudiError]:
    # a task does not commit, so its error must not say that the outcome of the commit is unknown
    known = {found.__name__: found for found in _descendants(HudiError) if found is not CommitOutcomeUnknownError}
    return known.get(name or "", TaskFailedError)


def _descendants(root: type[HudiError]) -> Iterator[type[HudiError]]:
    for child in root.__subclasses__():
        yield child
        yield from _descendants(child)


def _gist(text: str) -> str:
    """The line with the cause: the last line of Python's traceback, the line of the aborted job, or the first line."""
    _, traceback, rest = text.partition(_TRACEBACK)
    aborted = next((line for line in text.splitlines() if _ABORTED in line), None)
    if aborted is not None and not traceback:  # py4j adds its own text before it
        return aborted[aborted.index(_ABORTED) :].rpartition(_LAST_FAILURE)[2][:MOST_CHARACTERS]
    lines = (rest.split("\n\tat ", 1)[0] if traceback else text).splitlines()
    messages = [line.strip() for line in lines if line.strip() and not line[0].isspace() and _TRACEBACK not in line]
    return (messages[-1 if traceback else 0] if messages else text.strip())[:MOST_CHARACTERS]
