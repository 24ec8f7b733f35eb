"""Wraps the functions of tasks: each first checks whether its node has this package.

The first batch asks all workers that are there (`streaming.spark.environment`). A node that joins later, or one whose
slots were busy then, is checked by the tasks themselves. A function of this package is pickled by its name, so a node
without the package fails before the function can say anything. Therefore the function travels as bytes, within one that
Spark pickles by value.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark import cloudpickle

from streaming.task.failure import MARK, PLACE
from table.version import VERSION

_REMEDY = (
    "install the hudistream of the driver on every node, send a packed environment along (spark-submit --archives), or "
    "point PYSPARK_PYTHON (spark.pyspark.python) to a Python that has it; nothing became visible"
)
MISSING = "the Python {python} of Spark's worker on {host} does not have the module {module!r}: " + _REMEDY
MISSING_SOMEWHERE = "the Python of a worker of Spark{where} does not have the module {module!r}: " + _REMEDY
DIFFERS = (
    "the Python {python} of Spark's worker on {host} has hudistream {found}, and the driver has {version}: install the "
    "same version on every node; nothing became visible"
)

ArrowTask = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def carried(task: ArrowTask) -> ArrowTask:
    """The function that `mapInArrow` gets.

    Args:
        task: a function of this package, or a partial of one.

    Returns:
        A function that does what `task` does. If a module of this package is missing on the node, or has another
        version of it, the function raises an error instead. `streaming.task.failure.read_failure` reads that error on
        the driver.
    """
    sent, version, mark, places = by_value(task), VERSION, MARK, PLACE
    missing, differs = MISSING, DIFFERS

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Spark pickles this function by value: it takes no import along, and each package costs a walk over all modules
        import json  # noqa: PLC0415
        import platform  # noqa: PLC0415
        import socket  # noqa: PLC0415

        node = {"python": platform.python_version(), "host": socket.gethostname()}
        problem = ""
        try:
            from table.version import VERSION as found  # noqa: N811, PLC0415 the node's

            work = pickle.loads(sent)  # noqa: S301 of the driver
            if found != version:
                problem = differs.format(found=found, version=version, **node)
        except ImportError as error:
            problem = missing.format(module=error.name or str(error), **node)
        if problem:
            facts = {"class": "InvalidConfigError", "message": problem, **dict.fromkeys(places)}
            raise RuntimeError(f"{problem} {mark}{json.dumps(facts)}")
        yield from work(batches)

    return run


def by_value(thing: object) -> bytes:
    """The bytes that Spark would send for a function or a value: nested functions whole, others by their names."""
    sent: bytes = cloudpickle.dumps(thing)  # type: ignore[attr-defined,no-untyped-call]
    return sent
