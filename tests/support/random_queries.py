"""Random queries by every engine that reads a table from Python, for some seconds; then the process ends as any other.

    python tests/support/random_queries.py SECONDS [SEED] [ENGINE …]

Each query is asked of all engines, and their answers must be equal. The last line is the number of queries. A process
that prints no line for a minute waits for ever.
"""

import random
import sys
import tempfile
import time

import polars as pl
import pyarrow as pa

from hudistream import ArrowSink, HudiTable, scan_hudi

SMALL_FILES = {"hoodie.parquet.small.file.limit": "0"}
QUERIES = [  # SQL, and tuples where a scan has them
    ("n is null", None),
    ("not (n = 1)", [("n", "!=", 1)]),
    ("n = 1 or s = 'é'", [[("n", "=", 1)], [("s", "=", "é")]]),
    ("(not (s is null)) or n = 0", None),
    ("f > 0.1", [("f", ">", 0.1)]),
    ("s in ('a', 'é')", [("s", "in", ["a", "é"])]),
    ("p = 'x'", [("p", "=", "x")]),
    ("p = 'nowhere'", [("p", "=", "nowhere")]),
    ("n between 0 and 1", [("n", ">=", 0), ("n", "<=", 1)]),
]


def batch(number):
    return pa.table(
        {
            "id": [f"{number}", f"{number}x"],
            "p": ["x", "é"],
            "n": pa.array([number, None], pa.int64()),
            "f": [0.5, float(number)],
            "s": pa.array(["é", None]),
        }
    )


def make_table(path, storage_options=None):
    with ArrowSink(path, SMALL_FILES, key="id", partition_by="p", storage_options=storage_options) as sink:
        for number in range(4):
            sink.write(batch(number))
    return HudiTable.open(path, storage_options)


class Engines:
    """Each method gives the ids that a condition is true for, and may ask for the first rows besides."""

    def __init__(self, table, path):
        self._table, self._path = table, path
        self._view = table.to_duckdb()

    def duckdb(self, sql, _terms, cut):
        if cut:
            self._view.execute(f"select id from t where {sql} limit 3").fetchone()
        assert self._view.execute(f"select count(*) from t where {sql}").fetchone() is not None
        return [row[0] for row in self._view.execute(f"select id from t where {sql}").fetchall()]

    def polars(self, sql, _terms, cut):
        frame = scan_hudi(self._path).filter(pl.sql_expr(sql))
        if cut:
            frame.head(3).collect()
        return frame.select("id").collect()["id"].to_list()

    def scan(self, _sql, terms, cut):
        if terms is None:
            return None
        if cut:
            self._table.scan(["id"], terms, limit=1).to_arrow()
            next(iter(self._table.scan(["id"], terms).to_batches()), None)
        return self._table.scan(["id"], terms).to_arrow()["id"].to_pylist()


def run_queries(seconds, seed, names):
    """Asks random queries. Returns how many were asked."""
    chosen, end, asked = random.Random(seed), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/t"
            engines = Engines(make_table(path), path)
            for _ in range(40):
                sql, terms = chosen.choice(QUERIES)
                cut = chosen.random() < 0.5
                answers = [getattr(engines, name)(sql, terms, cut) for name in names]
                assert len({tuple(sorted(answer)) for answer in answers if answer is not None}) == 1, (sql, answers)
                asked += 1
                if time.monotonic() >= end:
                    break
        print(asked, flush=True)
    return asked


def main(seconds, seed="1", *names):
    print(run_queries(float(seconds), int(seed), names or ("duckdb", "polars", "scan")))


if __name__ == "__main__":
    import logging

    logging.disable(logging.CRITICAL)
    main(*sys.argv[1:])
