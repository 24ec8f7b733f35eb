"""Base files in every form that an option gives them, read by everybody else, and updated by Hudi."""

import datetime
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from engine import OPTIONS, Engine
from environments import SPARK_4, make_environment, run_program
from needs import require
from oracles import hudi_rs
from oracles.hudi import JVM, Hudi
from snapshots import live_files

from table import read_table
from table.schema.avro_schema import RECORD_KEY

UPSERT = {"hoodie.datasource.write.operation": "upsert", "hoodie.parquet.block.size": "3000000"}
SHARED = "hudistream.parquet.shared.key.chunk"
FORMS = {
    "default": {},
    "shared": {SHARED: "true"},
    "shared-snappy": {SHARED: "true", "hoodie.parquet.compression.codec": "snappy"},
}
SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("n", pa.int64()), ("few", pa.int32()),
     ("edge", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("seq", pa.string()),
     ("v", pa.string())]
)  # fmt: skip
FIRST_US = 1_767_225_600_000_000


def batch_of(first, count, ts=0):
    """Rows of two partitions; one in seven has nulls where there may be some."""
    rng, numbers = np.random.default_rng(first), np.arange(first, first + count)
    hidden = rng.random(count) < 1 / 7
    # as far from one to the next as is still stored as a difference
    edge = rng.integers(-(2**26), 2**26, count)
    columns = [
        [f"{number * 7919 % 100_003:08}-key-{number:012}" for number in numbers],
        [f"p{number % 2}" for number in numbers],
        np.full(count, ts),
        pa.array(rng.integers(-1_000_000, 1_000_000, count), mask=hidden),
        pa.array(rng.integers(0, 1_000_000, count).astype(np.int32), mask=hidden),
        edge,
        pa.array(FIRST_US + rng.integers(0, 10**8, count), mask=hidden),
        pa.array(rng.integers(-30_000, 30_000, count).astype(np.int32), mask=hidden),
        pa.array([f"20260101_{number:09}" for number in numbers], mask=hidden),
        [f"{ts}-{number % 50}" for number in numbers],
    ]
    arrays = [pa.array(column).cast(field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def merged(held, change):
    """Rows after an upsert."""
    return pa.concat_tables([held.filter(pc.invert(pc.is_in(held.column("id"), change.column("id")))), change])


def by_key(rows):
    return rows.select(SCHEMA.names).cast(SCHEMA).sort_by("id").combine_chunks()


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


def make_table(path, form):
    """A table: written, topped up, updated in place. Returns what it holds."""
    engine = Engine(path, {**UPSERT, **FORMS[form]}, batch_rows=100_000)
    held = batch_of(0, 60_000)
    engine.write(0, held, parallelism=1)
    for number, change in enumerate((batch_of(60_000, 2_000, 1), batch_of(100, 10, 2)), 1):
        engine.write(number, change, parallelism=1)
        held = merged(held, change)
    assert by_key(read_table(path)) == by_key(held)
    return held


@pytest.fixture
def table_path(tmp_path, form):
    path = str(tmp_path / form)
    return path, make_table(path, form)


@pytest.fixture
def table_paths(tmp_path):
    """A table of each form, all with the same rows."""
    paths = {form: str(tmp_path / form) for form in FORMS}
    return paths, [make_table(path, form) for form, path in paths.items()][0]


def encodings_of(path):
    """Column -> the encodings of its chunks, those of levels and dictionaries left out."""
    found = {}
    for metadata in map(pq.read_metadata, live_files(path)):
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            for chunk in map(group.column, range(group.num_columns)):
                found.setdefault(chunk.path_in_schema, set()).update(set(chunk.encodings) - {"RLE", "PLAIN"})
    return found


def test_the_form_is_the_one_that_was_asked_for(table_path, form):
    shares = []
    for file in live_files(table_path[0]):
        group = pq.read_metadata(file).row_group(0)
        chunks = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
        shares.append(chunks["id"].data_page_offset == chunks["_hoodie_record_key"].data_page_offset)
        assert chunks["v"].compression == ("SNAPPY" if "snappy" in form else "ZSTD")
    assert shares == [form != "default"] * len(shares)


def test_arrow_duckdb_polars_and_hudi_rs_read_every_form(table_path):
    path, held = table_path
    files, wanted = live_files(path), by_key(held)
    assert by_key(hudi_rs.read(path)) == wanted
    assert by_key(ds.dataset(files).to_table()) == wanted
    duckdb, polars = require("duckdb"), require("polars")
    names = ", ".join(f'"{name}"' for name in SCHEMA.names)
    with duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        assert by_key(session.sql(f"SELECT {names} FROM read_parquet({files!r})").to_arrow_table()) == wanted
    for scheme in ("", "file://"):  # from memory, and as from an object store
        rows = polars.scan_parquet([scheme + file for file in files])
        assert by_key(rows.collect().to_arrow()) == wanted
        low = wanted.filter(pc.less(wanted.column("n"), -500_000)).num_rows
        assert rows.filter(polars.col("n") < -500_000).collect().height == low


def as_shown(held):
    """Rows as the programs of tests/support show them: times and days as numbers."""
    shown = held.select([name for name in SCHEMA.names if name != "p"])
    for name, kind in (("at", pa.int64()), ("day", pa.int32())):
        shown = shown.set_column(shown.column_names.index(name), name, shown.column(name).cast(kind))
    return sorted(([RECORD_KEY, *row.values()] for row in shown.to_pylist()), key=lambda row: row[1])


def check_rows(seen, held):
    """What a program of tests/support says that it read."""
    wanted = as_shown(held)
    assert len(seen) == len(wanted)
    for mine, theirs in zip(wanted, sorted(seen, key=lambda row: row[1]), strict=True):
        assert [theirs[1], *mine[1:]] == theirs


@pytest.mark.slow
def test_datafusion_and_fastparquet_read_every_form(table_path, form):
    path, held = table_path
    python = make_environment(".venv-readers", "datafusion", "fastparquet")
    # fastparquet knows no differences of text
    readers = ["datafusion"] if "all" in FORMS[form].values() else ["datafusion", "fastparquet"]
    key = held.column("id")[777].as_py()
    found = json.loads(run_program(python, "other_readers.py", ",".join(readers), key, *live_files(path)))
    assert list(found) == readers
    for reader, seen in found.items():
        assert all(row[0] == row[1] for row in seen["rows"]), reader
        check_rows(seen["rows"], held)
        assert seen["by_column"] == seen["by_key"] == 1, reader


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("version", ["3.5", *SPARK_4])
def test_spark_reads_every_form_vectorised_and_by_row(table_paths, version):
    paths, held = table_paths
    python = make_environment(*SPARK_4[version]) if version in SPARK_4 else sys.executable
    key = held.column("id")[777].as_py()
    files = {form: live_files(path) for form, path in paths.items()}
    said = run_program(python, "spark_reads_files.py", key, *map(",".join, files.values()))
    found = json.loads(said.splitlines()[-1])
    assert found["version"].startswith(version)
    [value] = held.filter(pc.field("id") == key).column("v").to_pylist()
    low = held.filter(pc.field("n") < -500_000).num_rows
    for form, ways in zip(files, found["tables"], strict=True):
        for seen in ways.values():
            assert seen["splits"] > len(files[form])
            check_rows(seen["rows"], held)
            assert (seen["differ"], seen["low"]) == (0, low)
            assert seen["by_column"] == seen["by_key"] == seen["by_both"] == [value]


def by_hudi(rows):
    """Rows as real Hudi shows them."""
    return sorted([row[name] for name in ("id", "ts", "n", "few", "edge", "at", "day", "seq", "v")] for row in rows)


def as_hudi_shows(held):
    rows = held.to_pylist()
    for row in rows:
        at = row["at"]
        row["at"] = at and at.astimezone(datetime.timezone.utc).replace(tzinfo=None).isoformat(timespec="microseconds")
        row["day"] = row["day"] and row["day"].isoformat()
    return by_hudi(rows)


@pytest.mark.slow
@pytest.mark.hudi
@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.1.1", "1.2.0"])
def test_hudi_reads_every_form_and_upserts_into_it(table_paths, version):
    paths, first = table_paths
    real = Hudi(version)
    try:
        for form, path in paths.items():
            held = first
            assert by_hudi(real.read(path)) == as_hudi_shows(held), form
            key = held.column("id")[777].as_py()
            assert len(real.read(path, where=f"id = '{key}'")) == 1
            assert len(real.read(path, where=f"_hoodie_record_key = '{key}'")) == 1
            assert len(real.read(path, where="n < -500000")) == held.filter(pc.field("n") < -500_000).num_rows
            # it finds keys by our filters and ranges, and encodes the rows that it leaves alone
            change = held.take(pa.array(range(0, len(held), 50)))
            change = change.set_column(2, SCHEMA.field("ts"), pa.array([9] * len(change), pa.int64()))
            real.write(path, change, {**JVM, **OPTIONS, "hoodie.datasource.write.operation": "upsert"})
            held = merged(held, change)
            assert by_key(read_table(path)) == by_key(held), form
            # and we go on in what it wrote
            more = batch_of(70_000, 4_000, 10)
            Engine(path, {**UPSERT, **FORMS[form]}, batch_rows=100_000).write(9, more, parallelism=1)
            held = pa.concat_tables([held, more])
            assert by_hudi(real.read(path)) == as_hudi_shows(held), form
            assert by_key(read_table(path)) == by_key(held), form
    finally:
        real.stop()
