"""What becomes of a batch that a foreachBatch gives to a sink in several calls; `test_parts_of_a_batch.py` runs it.

parts.py FOLDER classic|connect: prints a line for each case: its name, the rows of the table, and the error or "-".
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession
from stream import OPTIONS, run, source

from streaming import HudiSink
from table import InvalidRecordError, read_table

EVEN, ODD = "ts % 2 = 0", "ts % 2 = 1"
SHARED = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
_BATCHES, _ROWS = 2, 50


class Case:
    """One foreachBatch. Under Connect it is pickled, and lives in a process of its own."""

    def __init__(self, folder, checkpoint, **extra):
        self.path, self.options = f"{folder}/t", {**OPTIONS, "hudistream.checkpoint.location": checkpoint, **extra}
        self.first = HudiSink(self.path, self.options)
        self.second = self.first
        self.flag = f"{folder}/failed"

    def sink(self):
        return HudiSink(self.path, self.options)

    def __call__(self, df, number):
        self.first(df.where(EVEN), number)
        self.second(df.where(ODD), number)


class Equal(Case):
    def __call__(self, df, number):
        self.first(df.where(EVEN), number)
        self.first(df.where(EVEN), number)


class Same(Case):
    def __call__(self, df, number):
        kept = df.where("rand() >= 0")
        self.first(kept, number)
        self.first(kept, number)


class TwoSinks(Case):
    def __init__(self, folder, checkpoint, **extra):
        super().__init__(folder, checkpoint, **extra)
        self.second = self.sink()


class NamesOfTheirOwn(Case):
    """The way out that the error names."""

    def __init__(self, folder, checkpoint):
        super().__init__(folder, checkpoint, **SHARED)
        name = {"hoodie.datasource.write.streaming.checkpoint.identifier": "second"}
        self.second = HudiSink(self.path, {**self.options, **name})


class MadeForEachCall(Case):
    def __call__(self, df, number):
        self.sink()(df.where(EVEN), number)
        self.sink()(df.where(ODD), number)


class OtherSpelling(Case):
    def __init__(self, folder, checkpoint):
        super().__init__(folder, checkpoint)
        os.symlink(folder, f"{folder}-link")
        self.second = HudiSink(f"file://{folder}-link/t", self.options)


class InThreads(Case):
    def __call__(self, df, number):
        with ThreadPoolExecutor(2) as pool:
            for each in [pool.submit(self.first, df.where(part), number) for part in (EVEN, ODD)]:
                each.result()


class OfValues(Case):
    def __call__(self, df, number):
        for part in (EVEN, ODD):
            rows = [tuple(row) for row in df.where(part).collect()]
            self.first(df.sparkSession.createDataFrame(rows, df.schema), number)


class AfterAnError(Case):
    """The first attempt brings bad rows; nothing of it is visible, so that other rows may take its number."""

    def __call__(self, df, number):
        try:
            self.first(df.selectExpr("if(ts % 2 = 0, id, null) id", "p", "ts"), number)
        except InvalidRecordError:
            self.first(df.where(EVEN), number)


class StartedAgain(Case):
    """Spark does not hear that batch 1 is done, and brings it again in another run."""

    def write(self, df, number):
        self.first(df, number)

    def __call__(self, df, number):
        self.write(df, number)
        if number == 1 and not os.path.exists(self.flag):
            with open(self.flag, "w"):
                pass
            raise RuntimeError("stopped")


class StartedAgainInThreads(StartedAgain):
    def write(self, df, number):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self.first, df, number).result()


class StartedAgainWithValues(StartedAgain):
    def write(self, df, number):
        rows = [tuple(row) for row in df.collect()]
        outer = df.sparkSession if "connect" in type(df).__module__ else SparkSession.builder.getOrCreate()
        self.first(outer.createDataFrame(rows, df.schema), number)


class StartedAgainInAGroup(StartedAgain):
    def write(self, df, number):
        if "connect" not in type(df).__module__:
            SparkSession.builder.getOrCreate().sparkContext.setJobGroup(f"batch-{number}", "a part of the pipeline")
        self.first(df, number)


CASES = {
    "one sink": Case,
    "two sinks": TwoSinks,
    "two sinks of several writers": lambda *given: TwoSinks(*given, **SHARED),
    "a sink for each call": MadeForEachCall,
    "another spelling": OtherSpelling,
    "threads": InThreads,
    "values": OfValues,
    "driver": lambda *given: Case(*given, **{"hudistream.write.location": "driver"}),
    "names of their own": NamesOfTheirOwn,
    "equal": Equal,
    "same": Same,
    "after an error": AfterAnError,
    "again": StartedAgain,
    "again in threads": StartedAgainInThreads,
    "again with values": StartedAgainWithValues,
    "again in a group": StartedAgainInAGroup,
    "again on the driver": lambda *given: StartedAgain(*given, **{"hudistream.write.location": "driver"}),
}
REFUSED = (
    "one sink", "two sinks", "two sinks of several writers", "a sink for each call", "another spelling", "threads",
    "values", "driver",
)  # fmt: skip


def outcome(spark, folder, name):
    """The number of rows in the table, and the error of the last run or "-"."""
    home = f"{folder}/{name.replace(' ', '-')}"
    os.makedirs(home)
    checkpoint = f"{home}/c"
    case = CASES[name](home, checkpoint)
    error = "-"
    for _ in range(2 if name.startswith("again") else 1):
        try:
            error = str(run(source(spark, f"{folder}/in", _BATCHES, _ROWS), case, checkpoint).exception() or "-")
        except Exception as raised:
            error = str(raised)
    said = "other rows" if "comes a second time with other rows" in error else error.replace("\n", " ")[:600]
    return len(read_table(case.path)) if os.path.exists(case.path) else 0, said


if __name__ == "__main__":
    builder = SparkSession.builder.config("spark.sql.shuffle.partitions", "2").config("spark.ui.enabled", "false")
    builder = builder.remote("local[2]") if sys.argv[2] == "connect" else builder.master("local[2]")
    session = builder.getOrCreate()
    for case_name in CASES:
        if sys.argv[3:] and case_name not in sys.argv[3:]:
            continue
        print("CASE", case_name, *outcome(session, sys.argv[1], case_name), sep="|", flush=True)
    session.stop()
