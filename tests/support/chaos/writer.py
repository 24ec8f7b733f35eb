"""A stream: numbered batches, each with an intent and an acknowledgement in the journal."""

import contextlib
import random
import sys
import time

import pyarrow as pa

from chaos.draw import WRITERS, batch, first_rows, options, partition_of
from chaos.journal import Journal, Progress
from chaos.process import begin, is_over, tell_error
from hudistream import ArrowSink, CommitConflictError


def to_rows(ts, value, keys):
    """The rows of a batch. `keys`: key -> whether it is deleted."""
    names = list(keys)
    return pa.table(
        {
            "id": names,
            "p": [partition_of(key) for key in names],
            "ts": pa.array([ts] * len(names), pa.int64()),
            "v": [value] * len(names),
            "_hoodie_is_deleted": pa.array(list(keys.values()), pa.bool_()),
        }
    )


def make_sink(drawn, writer):
    """A sink as the world wants it."""
    return ArrowSink(
        drawn.path,
        options(drawn, writer),
        drawn.storage,
        key="id",
        partition_by="p",
        order_by="ts",
        operation="upsert",
        workers=1,
    )


def write_first(drawn):
    """Creates the table with the keys that both writers share."""
    sink = make_sink(drawn, "first")
    sink.write(to_rows(0, "first", dict.fromkeys(first_rows(), False)), 0)
    sink.stop()


class Stream:
    """Writes one batch after another."""

    def __init__(self, drawn, writer):
        self._drawn, self._writer = drawn, writer
        self._journal = Journal(drawn.journals, writer)
        self._sink = make_sink(drawn, writer)
        self._last_error = None

    def write(self):
        """Writes the next batch, or the one that was begun; until it is acknowledged."""
        drawn, writer = self._drawn, self._writer
        progress = Progress(drawn.journals, writer)
        number = progress.acknowledged
        if progress.begun == number:
            # an order of all batches: no two have one value
            newest = progress.ordering[-1] if number else 0
            ts = max(time.time_ns() // 1000 * 2, newest // 2 * 2 + 2) + WRITERS.index(writer)
            self._journal.tell("intent", batch=number, ts=ts)
        else:
            ts = progress.ordering[number]
        operation, keys = batch(drawn, writer, number)
        rows = to_rows(ts, f"{writer}{number}", keys)
        while True:
            try:
                done = self._sink.write(rows, number, operation)
            except Exception as error:
                self._tell(error)
                time.sleep(0.1)
            else:
                self._journal.tell("acknowledged", batch=number, skipped=bool(getattr(done, "skipped", False)))
                return

    def _tell(self, error):
        said = (type(error).__name__, str(error)[:60])
        if said != self._last_error:  # a writer that waits says so once
            tell_error(self._journal, "batch", error)
        self._last_error = said
        if not isinstance(error, CommitConflictError):
            with contextlib.suppress(Exception):
                self._sink.stop()
            self._sink = make_sink(self._drawn, self._writer)

    def rest(self):
        """Lets go of the table, so that the other one gets it."""
        self._sink.stop()
        self._sink = make_sink(self._drawn, self._writer)

    def stop(self):
        """Ends the sink."""
        self._sink.stop()


def main():
    drawn, writer = begin()
    if writer == "first":
        return write_first(drawn)
    stream, luck = Stream(drawn, writer), random.Random()
    if len(sys.argv) > 3:  # the last batch, and what was begun before it
        for _ in range(2):
            stream.write()
        return stream.stop()
    while not is_over(drawn):
        stream.write()
        if not drawn.several and luck.random() < 0.2:
            stream.rest()
            time.sleep(luck.uniform(0.1, 0.6))
        time.sleep(luck.choice([0, 0, 0.05]))
    return stream.stop()


if __name__ == "__main__":
    main()
