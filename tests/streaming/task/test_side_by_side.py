"""Files of one task that are written at the same time: in order, within bounds, and never after a failure."""

import threading
import time

import pytest

from streaming.task.side_by_side import MOST_FILES, SideBySide


class Store:
    """Counts what is under way."""

    def __init__(self):
        self.now = self.most = self.held = self.most_held = 0
        self.lock = threading.Lock()
        self.done = []

    def work(self, number, size, seconds=0.01, error=None):
        def write():
            with self.lock:
                self.now += 1
                self.held += size
                self.most, self.most_held = max(self.most, self.now), max(self.most_held, self.held)
            time.sleep(seconds)
            with self.lock:
                self.now -= 1
                self.held -= size
                self.done.append(number)
            if error is not None:
                raise error
            return number

        return write


def test_small_files_are_written_together_and_reported_in_their_order():
    store, reported = Store(), []
    files = SideBySide(16, 10_000, reported.append)
    for number in range(20):
        files.write(10, store.work(number, 10, seconds=0.02 - number / 1000))
    files.wait()
    assert reported == list(range(20))
    assert 2 <= store.most <= MOST_FILES


def test_a_disk_is_written_one_by_one_in_the_thread_of_the_task():
    threads, reported = set(), []
    files = SideBySide(1, 10_000, reported.append)
    for number in range(5):
        files.write(10, lambda number=number: threads.add(threading.current_thread()) or number)
    assert reported == list(range(5))
    assert threads == {threading.current_thread()}


def test_a_large_file_waits_for_the_others_and_is_alone():
    store, reported = Store(), []
    files = SideBySide(16, 100, reported.append)
    for number, size in enumerate((10, 10, 500, 10)):
        files.write(size, store.work(number, size))
    files.wait()
    assert reported == [0, 1, 2, 3]
    assert store.most_held == 500


def test_what_is_held_stays_within_the_bound():
    store = Store()
    files = SideBySide(16, 100, lambda _: None)
    for number in range(12):
        files.write(40, store.work(number, 40))
    files.wait()
    assert store.most_held == 80


@pytest.mark.parametrize("number", [0, 5, 11])
def test_after_a_failure_nothing_is_written_any_more(number):
    store, reported = Store(), []
    files = SideBySide(16, 10_000, reported.append)

    def run():
        for each in range(12):
            files.write(10, store.work(each, 10, error=OSError("down") if each == number else None))
        files.wait()

    with pytest.raises(OSError, match="down"):
        run()
    files.abandon()
    done = list(store.done)
    time.sleep(0.05)
    assert store.done == done
    assert store.now == 0
    assert number not in reported
    assert reported == list(range(len(reported)))
