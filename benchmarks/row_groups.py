"""Row groups and pages by what reads and changes cost: `python benchmarks/row_groups.py [--rounds 3] [--rows 1000000]`.

One file of rows in order of time, with keys in no order, is written with row groups (``hoodie.parquet.block.size``,
Arrow bytes) and pages of several sizes. Then it is read as people do, and 1,000 of its rows are updated: neighbours, or
rows anywhere. All figures are processor seconds of one process, so that other work on the machine counts little; rounds
take turns. Writes ``benchmarks/results/row-groups.json`` and the page ``benchmarks/row_groups.md``.
"""

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from run import machine

HERE = Path(__file__).parent
MB = 1 << 20
# name -> Arrow MB of a row group, and what the Parquet writer is told besides
FORMS = {
    "4 MB": (4, {}),
    "8 MB": (8, {}),
    "16 MB": (16, {}),
    "32 MB (default)": (32, {}),
    "64 MB": (64, {}),
    "128 MB": (128, {}),
    "32 MB, pages of 64 KB": (32, {"data_page_size": 64 << 10}),
    "32 MB, pages of 256 KB": (32, {"data_page_size": 256 << 10}),
    "128 MB, pages of 64 KB": (128, {"data_page_size": 64 << 10}),
}
STEPS = ("write", "all", "two columns", "1 % by time", "DuckDB, 1 % by time", "100 keys", "neighbours", "anywhere")


def made(rows):
    """Rows in order of time."""
    random = np.random.default_rng(3)
    numbers = np.arange(rows)
    columns = {"id": pa.array([f"{key:016x}" for key in random.permutation(rows) * 2_654_435_761])}
    columns |= {"ts": numbers, "kind": pa.array([f"kind-{n}" for n in range(20)]).take(pa.array(numbers % 20))}
    columns |= {f"c{n}": pa.array([f"{v:x}" for v in random.integers(0, 1 << 60, rows)]) for n in range(2)}
    return pa.table({**columns, **{f"n{n}": random.random(rows) for n in range(4)}})


def timed(call):
    started = time.process_time()
    call()
    return time.process_time() - started


def child(form, rows):
    """In the child: processor seconds of each step, bytes and row groups of the file."""
    import duckdb
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    from hudistream import ArrowSink, HudiTable
    from table.files.parquet import row_group_writer

    group_mb, told = FORMS[form]
    if told:
        row_group_writer.pq.ParquetWriter = functools.partial(pq.ParquetWriter, **told)
    options = {
        "hoodie.parquet.block.size": str(group_mb * MB),
        "hoodie.parquet.max.file.size": str(1 << 30),
        "hoodie.clean.automatic": "false",
    }
    given = made(rows)
    with tempfile.TemporaryDirectory() as place:

        def write(taken, operation):
            ArrowSink(place, options, key="id", order_by="ts", operation=operation).write(taken)

        found = {"write": timed(lambda: write(given, "bulk_insert"))}
        table = HudiTable.open(place)
        [name] = table.files()["path"].to_pylist()
        file = os.path.join(place, name)
        footer = pq.read_metadata(file)
        size = {"bytes": os.path.getsize(file), "groups": footer.num_row_groups}
        low, high = rows // 2, rows // 2 + rows // 100
        found["all"] = timed(lambda: table.scan(meta_columns=True).to_arrow())
        found["two columns"] = timed(lambda: table.scan(["kind", "n0"]).to_arrow())
        wanted = (ds.field("ts") >= low) & (ds.field("ts") < high)
        found["1 % by time"] = timed(lambda: table.scan(["id", "n0"], where=wanted).to_arrow())
        asked = f"SELECT count(*), sum(n0), max(id) FROM '{file}' WHERE ts >= {low} AND ts < {high}"
        duckdb.sql("SELECT 1").fetchall()
        found["DuckDB, 1 % by time"] = timed(lambda: duckdb.sql(asked).fetchall())
        keys = given["id"][:: rows // 100].to_pylist()
        found["100 keys"] = timed(lambda: table.lookup(keys))
        random = np.random.default_rng(5)
        for step, chosen in (
            ("neighbours", np.arange(low, low + 1000)),
            ("anywhere", np.sort(random.choice(rows, 1000, replace=False))),
        ):
            taken = given.take(pa.array(chosen))
            ts = taken.schema.get_field_index("ts")
            taken = taken.set_column(ts, "ts", pa.array(chosen + rows)).set_column(3, "c0", taken["c1"])
            found[step] = timed(functools.partial(write, taken, "upsert"))
    print(json.dumps({**found, **size}))


def page(result):
    facts = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
    lines = ["# Row groups and pages", "", *__doc__.split("\n\n")[1].splitlines(), ""]
    lines += [f"{result['rows']:,} rows, {result['rounds']} rounds, medians, {facts}.", ""]
    lines += ["| | groups | MB | " + " | ".join(STEPS) + " |", "|---|" + "---:|" * (len(STEPS) + 2)]
    for form, one in result["forms"].items():
        figures = " | ".join(f"{one[step]:.2f}" for step in STEPS)
        lines.append(f"| {form} | {one['groups']} | {one['bytes'] / 1e6:.1f} | {figures} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--child")
    given = parser.parse_args()
    if given.child:
        return child(given.child, given.rows)
    readings = {form: [] for form in FORMS}
    for _ in range(given.rounds):
        for form, told in readings.items():
            command = [sys.executable, __file__, "--child", form, "--rows", str(given.rows)]
            environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            if done.returncode:
                sys.exit(f"{form}: {done.stderr[-2000:]}")
            told.append(json.loads(done.stdout.strip().splitlines()[-1]))
            print(form, told[-1], flush=True)
    forms = {
        form: {name: statistics.median(one[name] for one in told) for name in told[0]}
        for form, told in readings.items()
    }
    result = {"machine": machine(), "rows": given.rows, "rounds": given.rounds, "forms": forms}
    (HERE / "results" / "row-groups.json").write_text(json.dumps(result, indent=1) + "\n")
    (HERE / "row_groups.md").write_text(page(result))
    print(page(result))
    return None


if __name__ == "__main__":
    main()
