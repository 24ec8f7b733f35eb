"""Bounds of floats against every reader: `python benchmarks/float_bounds.py [--readers ours,duckdb,…]`.

A chunk with a NaN can have no bounds, a NaN as its greatest value, the bounds of its numbers, an infinite upper bound,
or two infinite ones. For each form this program writes the same rows, one and several row groups to a file: without
statistics of columns, with the statistics that this project makes, and for statistics that Hudi makes of the
footers. Then all readers filter the tables. A cell says how many of the rows that a filter has to find are lost:
ordinary numbers, and after a slash NaN. Needs a Java runtime; Spark fetches Hudi's bundles.
"""

import argparse
import json
import logging
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from functools import reduce
from pathlib import Path

import pyarrow as pa
import structlog

NAN, INF = float("nan"), float("inf")
OLD_UPPER, OLD_LOWER = 1, 2  # fields of Parquet's statistics that readers use where the others are absent
FORMS = ("none", "nan", "numbers", "open", "wide")
STATISTICS = ("none", "nan", "numbers", "open")
# partition -> values of its one file; three rows to a row group where there are several
FILES = {
    "alike": [3.0, NAN, 3.0],
    "mixed": [3.0, NAN, 3.0, 5.0, 7.0, 5.0],
    "nan-first": [NAN, NAN, NAN, 1.0, 2.0, 1.0],
    "nulls": [None, NAN, 4.0],
    "zeros": [0.0, 0.0],
    "minus": [-0.0, -0.0],
    "nothing": [NAN, NAN],
    "plain": [1.0, 2.0],
}
SPARK_NAN = "double('NaN')"
FILTERS = (
    "f = 3.0D", "f <> 3.0D", "f > 2.5D", "f >= 7.0D", "f < 2.0D", "f <= 0.0D", "f = 0.0D", "f = -0.0D",
    "f in (0.0D, 1.0D)", "f not in (3.0D)", "f = NAN", "f in (NAN, 1.0D)", "f > 100.0D", "not (f < 4.0D)",
    "f is null", "f < NAN", "f is not null",
)  # fmt: skip
BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:"


def rows_by_name():
    values, number = {}, 0
    for name, column in FILES.items():
        for value in column:
            values[f"{number:02}"] = (name, value)
            number += 1
    return values


ROWS = rows_by_name()
NAMES = ("ordinary", "NaN")


def wanted():
    """Filter -> rows that Spark, DuckDB and Polars find in memory, by DuckDB."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("create table t (id varchar, f double)")
    connection.executemany("insert into t values (?, ?)", [(key, value) for key, (_, value) in ROWS.items()])
    return {text: ids(connection.execute(f"select id from t where {duck(text)}").fetchall()) for text in FILTERS}


def ids(found):
    return sorted(row[0] for row in found)


def duck(text):
    return text.replace("NAN", "'nan'::double").replace("D,", ",").replace("D)", ")").removesuffix("D")


def lost(want, found):
    """Rows that a reader has to find and does not, by kind; and what it finds beside them."""
    gone = set(want) - set(found)
    kinds = [sum((ROWS[key][1] != ROWS[key][1]) is is_nan for key in gone) for is_nan in (False, True)]
    return [*kinds, len(set(found) - set(want))]


def with_form(group, form):
    """A row group whose chunk of f has the bounds of a form, where it has a NaN: `counted` says which."""
    from table.files.parquet.field_ids import CHUNK_META, COLUMNS, LOWER, LOWER_EXACT, STATISTICS, UPPER, UPPER_EXACT
    from table.files.parquet.row_groups import chunk_path, chunks_of, field_value
    from table.files.parquet.thrift_compact import BINARY, LIST, STRUCT, Field, Items

    def formed(chunk):
        if chunk_path(chunk) != (b"f",):
            return chunk
        meta = dict(field_value(chunk, CHUNK_META))
        held = dict(meta[STATISTICS].value)
        had = LOWER in held
        least = held[LOWER].value if had else None
        for number in (OLD_UPPER, OLD_LOWER, LOWER, UPPER, LOWER_EXACT, UPPER_EXACT):
            held.pop(number, None)
        if form != "none":
            lower = least if had else struct.pack("<d", NAN)
            upper = {"nan": NAN, "open": INF, "wide": INF}[form]
            if not had and form in ("open", "wide"):
                return {**chunk, CHUNK_META: Field(STRUCT, {**meta, STATISTICS: Field(STRUCT, held)})}
            if form == "wide":
                lower = struct.pack("<d", -INF)
            held[UPPER], held[LOWER] = Field(BINARY, struct.pack("<d", upper)), Field(BINARY, lower)
        return {**chunk, CHUNK_META: Field(STRUCT, {**meta, STATISTICS: Field(STRUCT, dict(sorted(held.items())))})}

    return {**group, COLUMNS: Field(LIST, Items(STRUCT, [formed(chunk) for chunk in chunks_of(group)]))}


def write(path, form, statistics, group_rows):
    """Writes the table. `statistics`: form of those that this project makes; None: none."""
    import pyarrow.compute as pc

    from hudistream import ArrowSink
    from table.files import column_ranges
    from table.files.base import stored_file, summary  # noqa: F401
    from table.files.parquet import row_group_writer as writer

    originals = (
        writer._Encoder.write,
        writer._Encoder.finish,
        writer.RowGroupWriter.write,
        column_ranges._range_of_chunk,
    )
    has_nan = []

    def write_rows(self, rows):
        originals[0](self, rows)
        self.__dict__.setdefault("nans", []).append(
            "f" in rows.column_names and bool(pc.any(pc.is_nan(rows.column("f"))).as_py())
        )

    def finish(self):
        groups = originals[1](self)
        marks = self.__dict__.get("nans", [])
        return [
            group.with_struct(with_form(group.decoded, form)) if mark and form != "numbers" else group
            for group, mark in zip(groups, marks, strict=True)
        ]

    def write_groups(self, rows, parts=1):
        originals[2](self, rows, max(1, -(-len(rows) // group_rows)))

    def told(chunk, kind):
        found = originals[3](chunk, kind)
        if chunk.path_in_schema != "f" or found is None or not has_nan[-1]:
            return found
        least = found.least
        by_form = {"none": (None, None), "nan": (least, NAN), "numbers": (least, found.greatest), "open": (least, INF)}
        return column_ranges.ColumnRange(*by_form[statistics], *list_of(found)[2:])

    options = {"hoodie.parquet.small.file.limit": "0", "hoodie.write.table.version": "8", "hoodie.table.name": "t"}
    on = str(statistics is not None).lower()
    options |= {"hoodie.metadata.enable": on, "hoodie.metadata.index.column.stats.enable": on}
    writer._Encoder.write, writer._Encoder.finish, writer.RowGroupWriter.write = write_rows, finish, write_groups
    try:
        with ArrowSink(path, options, key="id", partition_by="p", operation="insert", workers=1) as sink:
            for number, name in enumerate(FILES):
                values = [(key, value) for key, (file, value) in ROWS.items() if file == name]
                has_nan.append(any(value is not None and value != value for _, value in values))  # noqa: PLR0124
                if statistics is not None:
                    column_ranges._range_of_chunk = told
                columns = {"id": [key for key, _ in values], "p": [name] * len(values)}
                sink.write(pa.table({**columns, "f": pa.array([value for _, value in values], pa.float64())}), number)
    finally:
        writer._Encoder.write, writer._Encoder.finish, writer.RowGroupWriter.write = originals[:3]
        column_ranges._range_of_chunk = originals[3]


def list_of(found):
    from dataclasses import astuple

    return list(astuple(found))


def in_python(path, readers):
    """What readers without a JVM find: reader -> filter -> rows."""
    import duckdb
    import polars as pl

    from table.scan.polars_source import scan_hudi

    files = sorted(str(file) for file in Path(path).rglob("*.parquet") if ".hoodie" not in str(file))
    answers = {}

    def ask(name, call):
        if name in readers:
            answers[name] = {text: call(text) for text in FILTERS}

    ask("duckdb", lambda text: ids(duckdb.sql(f"select id from read_parquet({files}) where {duck(text)}").fetchall()))
    ask("polars", lambda text: ids(pl.scan_parquet(files).filter(polars(text)).select("id").collect().rows()))
    ask("scan_hudi", lambda text: ids(scan_hudi(path).filter(polars(text)).select("id").collect().rows()))
    return answers


def polars(text):
    import polars as pl

    f, nan = pl.col("f"), float("nan")
    return {
        "f = 3.0D": f == 3.0, "f <> 3.0D": f != 3.0, "f > 2.5D": f > 2.5, "f >= 7.0D": f >= 7.0, "f < 2.0D": f < 2.0,
        "f <= 0.0D": f <= 0.0, "f = 0.0D": f == 0.0, "f = -0.0D": f == -0.0, "f in (0.0D, 1.0D)": f.is_in([0.0, 1.0]),
        "f not in (3.0D)": ~f.is_in([3.0]), "f = NAN": f == nan, "f in (NAN, 1.0D)": f.is_in([nan, 1.0]),
        "f > 100.0D": f > 100.0, "not (f < 4.0D)": ~(f < 4.0), "f is null": f.is_null(), "f < NAN": f < nan,
        "f is not null": f.is_not_null(),
    }[text]  # fmt: skip


def in_rust(path):
    """What hudi-rs finds by the one comparison at a time that it takes."""
    import hudi

    builder = hudi.HudiTableBuilder.from_base_uri(path)
    found = {}
    for text in FILTERS:
        name, operator, *value = text.replace("D", "").split()
        if len(value) != 1 or operator not in ("=", "<>", ">", ">=", "<", "<=") or value == ["NAN"]:
            continue
        options = hudi.HudiReadOptions().with_filters([(name, operator.replace("<>", "!="), value[0])])
        batches = builder.build().read(options)
        found[text] = sorted(key for batch in batches for key in pa.record_batch(batch).column("id").to_pylist())
    return found


def in_spark(version, folder):
    """In a process of its own: Hudi and Spark over all tables of a folder."""
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as F

    builder = SparkSession.builder.master("local[2]").config("spark.jars.packages", BUNDLE + version)
    for key, value in {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    answers = {}

    def ask(rows):
        parts = [rows.where(text.replace("NAN", SPARK_NAN)).select(F.lit(text), "id") for text in FILTERS]
        found = {text: [] for text in FILTERS}
        for text, key in reduce(DataFrame.union, parts).collect():
            found[text].append(key)
        return found

    for path in sorted(Path(folder).iterdir()):
        statistics = path.name.split("_")[1]
        if statistics == "hudi":
            # Hudi's own write makes the statistics of all files, from their footers
            other = spark.createDataFrame([("99", "other", 50.0)], "id string, p string, f double")
            options = {
                "hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id",
                "hoodie.datasource.write.partitionpath.field": "p", "hoodie.datasource.write.operation": "insert",
                "hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true",
            }  # fmt: skip
            other.coalesce(1).write.format("hudi").options(**options).mode("append").save(str(path))
        answers[path.name] = {}
        if version == "1.0.2" and statistics == "no":
            files = [str(file) for file in path.rglob("*.parquet") if ".hoodie" not in str(file)]
            answers[path.name]["spark"] = ask(spark.read.parquet(*files))
        for skipping in ("false", "true"):
            if skipping == "true" and statistics == "no":
                continue
            reader = spark.read.format("hudi").option("hoodie.metadata.enable", skipping)
            rows = reader.option("hoodie.enable.data.skipping", skipping).load(str(path)).where("p <> 'other'")
            answers[path.name][f"Hudi {version}, skipping {skipping}"] = ask(rows)
        print(path.name, file=sys.stderr, flush=True)
    return answers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--readers", default="duckdb,polars,scan_hudi,rust,1.0.2,1.2.0")
    parser.add_argument("--forms", default=",".join(FORMS))
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    if given.child:
        print("ANSWERS" + json.dumps(in_spark(*given.child)))
        return
    readers = given.readers.split(",")
    folder = tempfile.mkdtemp()
    want, cells = wanted(), {}
    for group_rows in (1000, 3):
        for form in given.forms.split(","):
            write(f"{folder}/{form}_no_{group_rows}", form, None, group_rows)
            shutil.copytree(f"{folder}/{form}_no_{group_rows}", f"{folder}/{form}_hudi_{group_rows}")
        for statistics in STATISTICS if given.forms == ",".join(FORMS) else ():
            write(f"{folder}/open_{statistics}_{group_rows}", "open", statistics, group_rows)
            write(f"{folder}/numbers_{statistics}_{group_rows}", "numbers", statistics, group_rows)
    for path in sorted(Path(folder).iterdir()):
        if "_no_" in path.name:
            answers = in_python(str(path), readers)
            if "rust" in readers:
                answers["hudi-rs"] = in_rust(str(path))
            cells[path.name] = answers
    for version in ("1.0.2", "1.2.0"):
        if version not in readers:
            continue
        copy = f"{tempfile.mkdtemp()}/{version}"
        shutil.copytree(folder, copy)
        run = subprocess.run(
            [sys.executable, __file__, "--child", version, copy], stdout=subprocess.PIPE, text=True, check=True
        )
        for name, answers in json.loads(run.stdout.split("ANSWERS")[1]).items():
            cells.setdefault(name, {}).update(answers)
        shutil.rmtree(os.path.dirname(copy))
    for reader in sorted({reader for answers in cells.values() for reader in answers}):
        for name, answers in sorted(cells.items()):
            if reader in answers:
                losses = {text: lost(want[text], found) for text, found in answers[reader].items()}
                sums = [sum(column) for column in zip(*losses.values(), strict=True)]
                print(f"{reader:30} {name:20} {sums}", {text: loss for text, loss in losses.items() if any(loss)})
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
