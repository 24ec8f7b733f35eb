"""The daemon of Spark's Python workers with a clock in each task; `profile_batches.py` starts it.

Each task appends a line to a file of its process in the folder that HUDISTREAM_PROFILE names: when it began, wall and
processor seconds in all, and those of its parts.
"""

import json
import os
import time
from pathlib import Path

# part -> the calls whose time it is; time within another part is that part's
PARTS = {
    "grouping rows": [("streaming.task.append", "group_by_slot"), ("streaming.task.upsert", "group_by_slot")],
    "looking for keys": [
        ("streaming.task.locate_keys.Locator", "locate"),
        ("streaming.task.locate_keys.Locator", "resolve"),
    ],
    "merging": [("streaming.task.upsert", "merge_bucket")],
    "meta columns": [("table.write.bucket_file.BucketFile", "stamp")],
    "encoding": [("table.files.base.writer.BaseFileWriter", "_flush")],
    "filters and key ranges": [("table.files.base.file_keys.FileKeys", "summarize")],
    "opening, copying, publishing": [
        ("table.files.base.writer.BaseFileWriter", "_opened"),
        ("table.files.base.writer.BaseFileWriter", "_finish"),
        ("table.write.bucket_file.BucketFile", "__init__"),
    ],
    "checking copied files": [("table.files.base.writer", "find_doubt")],
}
WAITING, REST = "waiting for rows", "the rest"


class Clock:
    """Wall and processor seconds by part, those of parts within left out."""

    def __init__(self):
        self.reset()

    def reset(self):
        """Begins anew."""
        self.spent = {}
        self.within = [[0.0, 0.0]]

    def run(self, part, call, *arguments, **named):
        """Calls, and counts the time for that part."""
        started = time.perf_counter(), time.process_time()
        self.within.append([0.0, 0.0])
        try:
            return call(*arguments, **named)
        finally:
            whole = [time.perf_counter() - started[0], time.process_time() - started[1]]
            inner = self.within.pop()
            kept = self.spent.setdefault(part, [0.0, 0.0])
            for which in (0, 1):
                kept[which] += whole[which] - inner[which]
                self.within[-1][which] += whole[which]

    def each(self, part, values):
        """The same values; the time until each of them comes is that part's."""
        end = object()
        source = iter(values)
        while (value := self.run(part, next, source, end)) is not end:
            yield value


CLOCK = Clock()


def find(path):
    """The module or class of that name."""
    import importlib

    module, _, name = path.rpartition(".")
    try:
        return importlib.import_module(path)
    except ImportError:
        return getattr(importlib.import_module(module), name)


def timed(part, call):
    """The same call or generator, its time counted."""
    import inspect

    def run(*arguments, **named):
        if inspect.isgeneratorfunction(call):
            return CLOCK.each(part, call(*arguments, **named))
        return CLOCK.run(part, call, *arguments, **named)

    return run


def patch():
    """Puts the clock around every part, and around the tasks."""
    from streaming.spark import workers

    for part, calls in PARTS.items():
        for place, name in calls:
            owner = find(place)
            setattr(owner, name, timed(part, getattr(owner, name)))
    run_task = workers.run_task

    def run(plan, token, batches):
        CLOCK.reset()
        began = time.time()
        try:
            return CLOCK.run(REST, run_task, plan, token, CLOCK.each(WAITING, batches))
        finally:
            line = json.dumps({"began": began, "ended": time.time(), "parts": CLOCK.spent})
            with Path(os.environ["HUDISTREAM_PROFILE"], f"{os.getpid()}.jsonl").open("a") as file:
                file.write(line + "\n")

    workers.run_task = run


if __name__ == "__main__":
    from pyspark.daemon import manager

    patch()
    manager()
