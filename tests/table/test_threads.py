"""Threads at the end of a process."""

import subprocess
import sys

import pytest

from table import threads

PROGRAM = """
import concurrent.futures.thread
import time
from table import threads

def work():
    while not concurrent.futures.thread._shutdown:  # the interpreter waits for its threads from here on
        time.sleep(0.01)
    with threads.make_pool(2, "late") as pool:
        futures = [pool.submit(divmod, 7, 2)]
        print(list(pool.map(str, range(3))), futures[0].result())
        print(repr(pool.submit(divmod, 1, 0).exception()))

threads.start_thread(work, "service")
other = threads.make_pool(1, "other")
other.submit(time.sleep, OTHERS)
"""


@pytest.mark.parametrize("others", [0, 0.5])
def test_a_thread_that_the_interpreter_waits_for_still_has_pools(others):
    """Also while it waits for what other pools do."""
    program = PROGRAM.replace("OTHERS", str(others))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[:1] == ["['0', '1', '2'] (3, 1)"], done.stderr
    assert "ZeroDivisionError" in done.stdout


def test_calls_that_are_made_together_are_made_while_the_interpreter_ends_too():
    program = PROGRAM.replace("OTHERS", "0").replace(
        "print(repr(pool", "print(threads.run_together([lambda: 1, lambda: 2]))\n        print(repr(pool"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[1:2] == ["[1, 2]"], done.stderr


def test_a_pool_that_was_open_before_the_interpreter_ends_takes_work_afterwards():
    """Its own worker has noticed the end, and marked it as closed."""
    program = """
import time
from table import threads

def work():
    with threads.make_pool(2, "early") as pool:
        print(pool.submit(divmod, 7, 2).result())
        while not pool._shutdown:
            time.sleep(0.01)
        print(pool.submit(divmod, 9, 2).result())

threads.start_thread(work, "service")
time.sleep(0.3)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.splitlines() == ["(3, 1)", "(4, 1)"], done.stderr


def test_a_closed_pool_takes_nothing():
    pool = threads.make_pool(1, "closed")
    pool.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(print)
