"""A task looks first whether its node has this package, in the driver's version; it says so with the node's name."""

import builtins
import pickle
import socket
import subprocess
import sys
from functools import partial

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from streaming.spark import carried as module
from streaming.spark.carried import by_value, carried
from streaming.task.failure import read_failure
from table.errors import InvalidConfigError


def double(factor, batches):
    for batch in batches:
        yield pa.record_batch({"n": [factor * n for n in batch.column(0).to_pylist()]})


BATCH = pa.record_batch({"n": [1, 2]})


def test_the_function_does_its_work_on_a_node_that_has_all():
    sent = pickle.loads(cloudpickle.dumps(carried(partial(double, 3))))
    assert [batch.to_pydict() for batch in sent([BATCH])] == [{"n": [3, 6]}]


def failure_of(task):
    with pytest.raises(RuntimeError) as told:
        list(task([BATCH]))
    return read_failure(str(told.value), "20260101000000000", from_python=True)


def test_a_node_with_another_version_is_named(monkeypatch):
    monkeypatch.setattr(module, "VERSION", "999")
    failed = failure_of(carried(partial(double, 3)))
    assert isinstance(failed, InvalidConfigError)
    assert f"worker on {socket.gethostname()} has hudistream" in str(failed)
    assert "the driver has 999" in str(failed)


def test_a_node_without_the_package_is_named(monkeypatch):
    inner = builtins.__import__

    def bare(name, *given):
        if name.startswith("table"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return inner(name, *given)

    task = carried(partial(double, 3))
    monkeypatch.setattr(builtins, "__import__", bare)
    failed = failure_of(task)
    assert isinstance(failed, InvalidConfigError)
    assert f"worker on {socket.gethostname()} does not have the module 'table.version'" in str(failed)


def test_the_function_can_be_unpickled_where_the_package_is_not(tmp_path):
    """In a process that has pyspark and pyarrow, and whose path does not have this project."""
    (tmp_path / "sent").write_bytes(by_value(carried(partial(double, 3))))
    code = f"""
import importlib.abc, pickle, sys
class Without(importlib.abc.MetaPathFinder):
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("table", "streaming", "hudistream"):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Without())
task = pickle.loads(open({str(tmp_path / "sent")!r}, "rb").read())
try:
    list(task([]))
except RuntimeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert "does not have the module 'table'" in done.stdout, done
