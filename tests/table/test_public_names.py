"""What `from table import …` offers, and what a worker loads for its task."""

import subprocess
import sys

import pytest

import hudistream
import table
from table import user_table

KEPT_OUT = ["table.services", "table.inspect", "table.catalog", "hudistream.user_table", "table.cli", "streaming.batch"]


def test_every_name_is_there():
    assert {name: getattr(table, name).__name__ for name in table.__all__} == {name: name for name in table.__all__}
    assert set(table.__all__) <= set(dir(table))


def test_the_list_of_names_is_the_table_of_their_modules():
    assert sorted(table._MODULES) == sorted(table.__all__)


@pytest.mark.parametrize("name", ["HudiTable", "create_table"])
def test_what_moved_to_the_facade_is_given_until_the_next_release(name):
    assert name not in table.__all__
    for module in (table, user_table):
        with pytest.warns(DeprecationWarning, match=f"import {name} from hudistream"):
            assert getattr(module, name) is getattr(hudistream, name)
    with pytest.raises(AttributeError):
        user_table.HudiTables  # noqa: B018


def test_another_name_is_no_attribute():
    with pytest.raises(AttributeError, match="module 'table' has no attribute 'HoodieTable'"):
        table.HoodieTable  # noqa: B018


@pytest.mark.parametrize("task", ["streaming.task.run", "streaming.task.tag"])
@pytest.mark.usefixtures("tmp_path")  # a process: it does not only decide over values
def test_a_worker_loads_what_its_task_needs_alone(task):
    code = f"import sys, {task}; print([name for name in {KEPT_OUT} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
