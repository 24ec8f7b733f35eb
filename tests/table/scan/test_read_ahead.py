"""Readers side by side: their pieces keep their order, nobody runs far ahead, and nobody runs on for nothing."""

import threading
import time

import pytest

from table.scan.read_ahead import read_ahead


def reader(number, count, log):
    def read():
        for piece in range(count):
            log.append((number, piece))
            yield number, piece

    return read


@pytest.mark.parametrize("at_once", [1, 2, 3, 9])
@pytest.mark.parametrize("counts", [(), (0,), (3,), (3, 0, 5), (20, 20, 20, 1)])
def test_pieces_come_in_the_order_of_the_readers(at_once, counts):
    readers = [reader(number, count, []) for number, count in enumerate(counts)]
    expected = [(number, piece) for number, count in enumerate(counts) for piece in range(count)]
    assert list(read_ahead(readers, at_once)) == expected


def test_nobody_runs_far_ahead():
    log = []
    pieces = read_ahead([reader(number, 100, log) for number in range(4)], 2)
    assert next(pieces) == (0, 0)
    time.sleep(0.3)
    assert {number for number, _ in log} == {0, 1}
    assert max(piece for _, piece in log) <= 6
    pieces.close()
    before = len(log)
    time.sleep(0.3)
    assert len(log) == before
    assert not any(thread.name.startswith("hudistream-slices") for thread in threading.enumerate())


def test_an_error_comes_in_its_turn():
    def fails():
        yield "x"
        raise ValueError("damaged")

    pieces = read_ahead([reader(0, 3, []), fails, reader(2, 3, [])], 3)
    assert [next(pieces) for _ in range(4)] == [(0, 0), (0, 1), (0, 2), "x"]
    with pytest.raises(ValueError, match="damaged"):
        next(pieces)
