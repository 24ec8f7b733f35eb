"""Chunks with long values have bounds, and every reader finds their rows by them."""

import io
import os

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from engine import Engine, rows
from hypothesis import example, given
from hypothesis import strategies as st
from oracles import hudi_rs
from snapshots import live_files
from tiers import quick

import table.files.parquet.footer as footer_module
import table.files.parquet.row_group_writer as group_writer_module
import table.files.parquet.value_bounds as bounds_module
from table import read_table
from table.files.base.stored_file import StoredBaseFile
from table.files.parquet.chunk_statistics import has_inexact_bound, lacks_bounds
from table.files.parquet.footer import MAGIC, decode_footer, find_footer
from table.files.parquet.row_group_writer import RowGroupWriter
from table.files.parquet.row_groups import chunk_path, chunks_of
from table.files.parquet.thrift_compact import decode_struct
from table.files.parquet.value_bounds import (
    BOUND_BYTES,
    MOST_BOUND_BYTES,
    Extremes,
    as_bounds,
    find_extremes,
    long_extremes,
    lower_bound,
    upper_bound,
)
from table.options.groups import BaseFileSettings
from table.storage.local import LocalStorage

TOP = "\U0010ffff"
LONG = "n" + "x" * 5001  # beyond all short ones
UPSERT = {"hoodie.datasource.write.operation": "upsert", "hoodie.parquet.block.size": "20000"}

# long enough to be cut, short enough to be many
texts = st.builds(
    lambda head, size, tail: head * size + tail,
    st.text(st.sampled_from(["a", "z", "ä", "\ud7ff", "\ue000", "\uffff", "😀", TOP, "\x00", "\x7f"]), max_size=3),
    st.integers(1, 200),
    st.text(max_size=5),
)
blobs = st.builds(lambda head, size, tail: head * size + tail, st.binary(max_size=3), st.integers(1, 200), st.binary())


def check_bounds(value, is_text):
    lower, is_lower_exact = lower_bound(value, is_text=is_text)
    upper, is_upper_exact = upper_bound(value, is_text=is_text)
    assert lower <= value <= upper
    assert value.startswith(lower)
    assert len(lower) <= BOUND_BYTES
    assert (is_lower_exact, is_upper_exact) == (lower == value, upper == value)
    if len(value) <= BOUND_BYTES:
        assert lower == upper == value
    return lower, upper


@given(texts)
@example("a" * 255 + "é")
@example("a" * 254 + "😀")
@example("a" * 253 + "\ud7ff" + "b")
@example(TOP * 64 + "a")
@example(TOP * 500)
@example(TOP * 500 + "a" + TOP * 3)
@example("a" + TOP * 500)
def test_bounds_of_text_hold_in_byte_order_and_are_text(text):
    value = text.encode()
    for bound in check_bounds(value, is_text=True):
        bound.decode()
    # and whatever lies beyond a long value is not within
    if len(value) > BOUND_BYTES and not text.startswith(TOP):
        assert upper_bound(value, is_text=True)[0] <= (chr(ord(text[0]) + 1 + (text[0] == "\ud7ff") * 0x800)).encode()


@given(blobs)
@example(b"\xff" * 5000)
@example(b"\xff" * 5000 + b"\x00")
@example(b"a" + b"\xff" * 5000)
def test_bounds_of_bytes_hold(value):
    check_bounds(value, is_text=False)
    check_bounds(value, is_text=True)  # Spark does not look whether a string is UTF-8


@given(st.lists(st.one_of(texts, st.none()), min_size=1, max_size=20))
def test_bounds_of_a_column_hold_for_every_value(values):
    found = find_extremes([pa.table({"a": pa.array(values[:7], pa.string())}), pa.table({"a": values[7:]})])
    real = [value.encode() for value in values if value is not None]
    if not real:
        assert found == {}
        return
    [((lower, _), (upper, _))] = as_bounds(found).values()
    assert all(lower <= value <= upper for value in real)
    lower.decode()
    upper.decode()


def test_what_no_footer_could_hold_is_left_out():
    giant = b"\xff" * (MOST_BOUND_BYTES + 1)
    assert as_bounds({(b"a",): Extremes(b"", giant, is_text=False)}) == {}
    assert len(as_bounds({(b"a",): Extremes(giant, giant[:-2], is_text=False)})) == 1


NESTED = pa.struct([("text", pa.string()), ("n", pa.int64())])
COLUMNS = {
    "text": (pa.string(), ["b", LONG, None, "a"]),
    "raw": (pa.binary(), [b"b", b"\xff" * 5000, None, b"a"]),
    "only": (pa.string(), [LONG + "z", LONG, LONG + "y", None]),
    "kept": (pa.string(), ["x" * 4096, "a", None, "b"]),
    "between": (pa.string(), ["a", "b" * 9999, "c", "c"]),
    "list": (pa.list_(pa.string()), [["b", LONG], [], None, ["a", None]]),
    "part": (NESTED, [{"text": LONG, "n": 1}, None, {"text": "a", "n": None}, {"text": None, "n": 3}]),
    "map": (pa.map_(pa.string(), pa.string()), [[("k", LONG)], [], None, [("j", "a"), ("k", None)]]),
    "deep": (pa.list_(NESTED), [[{"text": LONG, "n": 1}], [{"text": "a", "n": 2}], None, []]),
    "repeated": (pa.dictionary(pa.int32(), pa.string()), ["a", LONG, None, "a"]),
    "null": (pa.string(), [None] * 4),
    "empty": (pa.string(), ["", "", None, ""]),
}


def encoded(table, parts=1):
    """A file of row groups by our writer: footer as pyarrow reads it, and as Thrift."""
    sink = io.BytesIO()
    sink.write(MAGIC)
    writer = RowGroupWriter(sink, table.schema, BaseFileSettings())
    writer.write(table, parts)
    return [group.decoded for group in writer.finish()[0]]


def statistics(group):
    """(lower, upper, inexact) of a row group's chunks."""
    found = {}
    for chunk in chunks_of(group):
        held = chunk[3].value[12].value
        name = b".".join(chunk_path(chunk)).decode()
        found[name] = tuple(held[n].value if n in held else None for n in (6, 5)), has_inexact_bound(chunk)
    return found


def test_every_chunk_with_strings_has_bounds():
    table = pa.table({name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()})
    table = pa.concat_tables([table.slice(3), table.slice(1, 2), table.slice(0, 1)])  # chunks cut from longer ones
    [group] = encoded(table)
    found, cut = statistics(group), LONG[: BOUND_BYTES - 1].encode() + b"y"
    assert found["text"] == ((b"a", cut), True)
    assert found["raw"] == ((b"a", b"\xff" * 5000), False)
    assert found["only"] == ((LONG[:BOUND_BYTES].encode(), cut), True)
    assert found["kept"] == ((b"a", b"x" * 4096), False)
    assert found["between"] == ((b"a", b"c"), False)
    for name in ("list.list.element", "part.text", "map.key_value.value", "deep.list.element.text", "repeated"):
        assert found[name] == ((b"a", cut), True), name
    assert found["map.key_value.key"] == ((b"j", b"k"), False)
    assert found["null"] == ((None, None), False)
    assert found["empty"] == ((b"", b""), False)
    assert not any(map(lacks_bounds, chunks_of(group)))


@pytest.mark.parametrize("parts", [1, 3, 7])
def test_each_row_group_has_its_own(parts):
    texts = [f"{n:05}" if n % 40 else f"{n:05}" + "é" * 5000 for n in range(200)]
    table = pa.table({"a": texts, "l": [[text, None] for text in texts], "n": range(200)})
    at = 0
    for group in encoded(pa.concat_tables([table.slice(0, 77), table.slice(77)]), parts):
        values = [text.encode() for text in texts[at : at + group[3].value]]
        at += len(values)
        found = statistics(group)
        for name in ("a", "l.list.element"):
            (lower, upper), _ = found[name]
            assert lower <= min(values) <= max(values) <= upper
            assert (lower[:5], upper[:5]) == (min(values)[:5], max(values)[:5])
    assert at == 200


def test_columns_without_long_values_are_not_searched(monkeypatch):
    searched = []
    find = bounds_module.find_extremes
    monkeypatch.setattr(
        bounds_module, "find_extremes", lambda batches: searched.extend(batches[0].column_names) or find(batches)
    )
    short = pa.table({"a": ["x"] * 9, "n": range(9), "l": [["y"]] * 9, "m": pa.array(["k"] * 9).dictionary_encode()})
    assert long_extremes(short, 4) == [{}, {}, {}]
    assert searched == []
    # elements of other rows do not count
    lists = pa.chunked_array([pa.array([["a"], [LONG], ["b"]]).slice(2)])
    assert long_extremes(pa.table({"l": lists}), 1) == [{}]
    mixed = short.append_column("long", pa.array([LONG] * 9))
    assert [set(group) for group in long_extremes(mixed, 5)] == [{(b"long",)}] * 2
    assert searched == ["long"] * 2


def file_groups(file):
    raw = open(file, "rb").read()
    footer = decode_footer(raw[find_footer(raw[-8:], len(raw)) : -8])
    return [decode_struct(group.raw) for group in footer.groups]


def check_file(file):
    """What the footer says, by our codec and by pyarrow, holds for the rows of each row group."""
    metadata, data = pq.read_metadata(file), pq.ParquetFile(file)
    for number, group in enumerate(file_groups(file)):
        assert not any(map(lacks_bounds, chunks_of(group)))
        values = [v.encode() for v in data.read_row_group(number, columns=["v"]).column("v").to_pylist() if v]
        at = [chunk_path(chunk) for chunk in chunks_of(group)].index((b"v",))
        held = metadata.row_group(number).column(at).statistics
        assert held.has_min_max
        assert held.min_raw <= min(values)
        assert held.max_raw >= max(values)
    return [has_inexact_bound(chunks_of(group)[at]) for group in file_groups(file)]


@pytest.fixture
def older(monkeypatch):
    """older(): from here on the writer is the one that gave no bounds; older(False): today's again."""

    def switch(on=True):
        monkeypatch.undo()
        if on:
            monkeypatch.setattr(
                group_writer_module, "long_extremes", lambda rows, size: [{} for _ in range(0, len(rows), size)]
            )
            monkeypatch.setattr(footer_module, "BOUNDS_KEY", "something else")

    return switch


def some_rows(first, count, ts=0, long=(), v="n"):
    made = rows(range(first, first + count), partition=lambda _: "p", ts=ts)
    values = [LONG + str(n) if n % 100 in long else f"{v}{n}" for n in range(first, first + count)]
    return made.set_column(3, "v", pa.array(values))


def test_files_with_long_values_are_topped_up_and_patched_with_their_bounds(tmp_path):
    path = str(tmp_path / "t")
    Engine(path, UPSERT).write(0, some_rows(0, 1000, long=(7,)), parallelism=1)
    [file] = live_files(path)
    assert any(check_file(file))
    Engine(path, {**UPSERT, "hoodie.datasource.write.operation": "insert"}).write(1, some_rows(1000, 500, long=(9,)))
    summary = Engine(path, UPSERT).write(2, some_rows(300, 5, 1, v="changed"), parallelism=1)
    assert summary.reencoded == {}
    [file] = live_files(path)
    check_file(file)
    Engine(path, UPSERT).write(3, some_rows(307, 1, 2, v="changed"), parallelism=1)
    [file] = live_files(path)
    check_file(file)
    assert len(read_table(path)) == 1500


@pytest.mark.parametrize("way", ["copied", "patched", "merged", "deleted"])
def test_bounds_that_an_older_file_lacks_are_found_when_it_is_copied(tmp_path, older, monkeypatch, way):
    path = str(tmp_path / "t")
    older()
    Engine(path, UPSERT).write(0, some_rows(0, 1000, long=(7,)), parallelism=1)
    [file] = live_files(path)
    lacking = sum(lacks_bounds(chunk) for group in file_groups(file) for chunk in chunks_of(group))
    assert 2 < lacking <= len(file_groups(file))
    older(False)
    decoded = []
    read = StoredBaseFile.read_batches
    monkeypatch.setattr(
        StoredBaseFile,
        "read_batches",
        lambda stored, schema, *rest: decoded.append((schema.names, *rest[:1])) or read(stored, schema, *rest),
    )
    operation = {"copied": "insert", "deleted": "delete"}.get(way, "upsert")
    batch = {
        "copied": some_rows(1000, 5),
        "patched": some_rows(0, 1000, 1).set_column(3, "v", some_rows(0, 1000, long=(7,)).column("v")),
        "merged": pa.concat_tables([some_rows(3, 1, 1), some_rows(1000, 1)]),
        "deleted": some_rows(3, 1, 1),
    }[way]
    options = {**UPSERT, "hoodie.datasource.write.operation": operation}
    summary = Engine(path, options).write(1, batch, parallelism=1)
    assert summary.reencoded == {}
    assert summary.bytes_copied
    [file] = live_files(path)
    assert any(check_file(file))
    looked = [groups for names, groups in decoded if names == ["v"]]
    assert 0 < len(looked) <= lacking
    # the file says so: nobody looks again
    decoded.clear()
    Engine(path, {**UPSERT, "hoodie.datasource.write.operation": "insert"}).write(2, some_rows(2000, 5), parallelism=1)
    assert [names for names, _ in decoded if names == ["v"]] == []
    check_file(*live_files(path))
    expected = {"copied": 1005, "patched": 1000, "merged": 1001, "deleted": 999}[way] + 5
    assert read_table(path).column("v").null_count == 0
    assert len(read_table(path)) == expected


def test_an_older_writer_takes_the_mark_away(tmp_path, older):
    path = str(tmp_path / "t")
    insert = {"hoodie.parquet.block.size": "20000"}
    Engine(path, insert).write(0, some_rows(0, 1000, long=(7,)), parallelism=1)
    with StoredBaseFile(LocalStorage(path), os.path.relpath(*live_files(path), path)) as stored:
        assert stored.footer.has_all_bounds
    older()
    Engine(path, insert).write(1, some_rows(1000, 1000, long=(7,)), parallelism=1)
    older(False)
    with StoredBaseFile(LocalStorage(path), os.path.relpath(*live_files(path), path)) as stored:
        assert not stored.footer.has_all_bounds
    Engine(path, insert).write(2, some_rows(2000, 5), parallelism=1)
    check_file(*live_files(path))


def test_a_bound_that_was_cut_says_nothing_of_the_width_of_rows(tmp_path, older):
    sizes = []
    for name in ("old", "new"):
        older(name == "old")
        path = str(tmp_path / name)
        Engine(path, {}).write(0, some_rows(0, 1000, long=(7,)), parallelism=1)
        with StoredBaseFile(LocalStorage(path), os.path.relpath(*live_files(path), path)) as stored:
            sizes.append(stored.row_bytes)
    assert sizes[0] == sizes[1]


CONDITIONS = {
    "v = 'n2'": lambda v: v == "n2",
    f"v = '{LONG}7'": lambda v: v == LONG + "7",
    f"v > '{LONG}'": lambda v: v > LONG,
    f"v < '{LONG}'": lambda v: v < LONG,
    f"v >= '{LONG}7z'": lambda v: v >= LONG + "7z",
    f"v <> '{LONG}7'": lambda v: v != LONG + "7",
    f"v = '{LONG[:BOUND_BYTES]}'": lambda v: False,
    f"v IN ('n3', '{LONG}107')": lambda v: v in ("n3", LONG + "107"),
}


def long_table(path):
    """Several row groups, copied ones and new ones, with long values in some."""
    Engine(path, UPSERT).write(0, some_rows(0, 300, long=(7,)), parallelism=1)
    Engine(path, {**UPSERT, "hoodie.datasource.write.operation": "insert"}).write(
        1, some_rows(300, 300, long=(9,)), parallelism=1
    )
    return read_table(path).column("v").to_pylist()


def test_arrow_duckdb_and_hudi_rs_find_the_rows(tmp_path):
    path = str(tmp_path / "t")
    values = long_table(path)
    [file] = live_files(path)
    assert any(check_file(file))
    assert sorted(hudi_rs.read(path).column("v").to_pylist()) == sorted(values)
    for condition, holds in CONDITIONS.items():
        found = duckdb.sql(f"SELECT v FROM read_parquet('{file}') WHERE {condition}").fetchall()
        assert sorted(v for (v,) in found) == sorted(filter(holds, values)), condition[:30]
    [(least, greatest)] = duckdb.sql(f"SELECT min(v), max(v) FROM read_parquet('{file}')").fetchall()
    assert (least, greatest) == (min(values), max(values))
    v = pc.field("v")
    for expression, holds in [
        (v == LONG + "7", lambda v: v == LONG + "7"), (v > LONG, lambda v: v > LONG), (v == "n2", lambda v: v == "n2"),
        (v < LONG, lambda v: v < LONG), (v != LONG + "7", lambda v: v != LONG + "7"),
    ]:  # fmt: skip
        found = pq.read_table(file, filters=expression).column("v").to_pylist()
        assert sorted(found) == sorted(filter(holds, values))


@pytest.mark.spark
@pytest.mark.parametrize("vectorized", quick(1, ["true", "false"]))
def test_spark_finds_the_rows(spark, tmp_path, vectorized):
    path = str(tmp_path / "t")
    values = long_table(path)
    [file] = live_files(path)
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        for condition, holds in CONDITIONS.items():
            found = [row.v for row in spark.read.parquet(file).where(condition).select("v").collect()]
            assert sorted(found) == sorted(filter(holds, values)), condition[:30]
        row = spark.read.parquet(file).selectExpr("min(v)", "max(v)").first()
        assert tuple(row) == (min(values), max(values))
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


SKIPPING = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.enable.data.skipping": "true",
}
JVM = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "upsert",
    **SKIPPING,
}


def with_raw(table):
    return table.append_column("raw", pc.cast(table.column("v"), pa.binary()))


def check_hudi_skips_right(hudi, path):
    """A metadata table that Hudi makes from our footers loses no row under filters, and does skip files."""
    options = {"hoodie.parquet.block.size": "20000"}
    Engine(path, options).write(0, with_raw(some_rows(0, 300, long=(7,))), parallelism=1)
    Engine(path, options).write(1, with_raw(some_rows(300, 300, long=(9,))), parallelism=1)
    [ours] = live_files(path)
    assert len(file_groups(ours)) > 2
    theirs = with_raw(some_rows(9000, 5, v="o")).set_column(1, "p", pa.array(["q"] * 5))
    hudi.write(path, theirs, JVM)
    assert os.path.isdir(f"{path}/.hoodie/metadata/column_stats")
    values = read_table(path).column("v").to_pylist()
    assert len(values) == 605
    for condition, holds in CONDITIONS.items():
        found = [row["v"] for row in hudi.read(path, SKIPPING, ["v"], condition)]
        assert sorted(found) == sorted(filter(holds, values)), condition[:30]
    blob = (LONG + "7").encode()
    assert len(hudi.read(path, SKIPPING, ["id"], f"raw = X'{blob.hex()}'")) == 1
    assert len(hudi.read(path, SKIPPING, ["id"], "raw = X'6E32'")) == 1
    # what lies beyond the bound is skipped: without our file only what the other one holds is left to be read
    os.remove(ours)
    assert sorted(row["v"] for row in hudi.read(path, SKIPPING, ["v"], "v >= 'o'")) == [
        f"o{9000 + n}" for n in range(5)
    ]


@pytest.mark.hudi
@pytest.mark.slow  # Hudi skips files by our statistics in tests/agreement/test_lists_kept_agree.py
def test_hudis_column_statistics_are_right(hudi, tmp_path):
    check_hudi_skips_right(hudi, str(tmp_path / "t"))


@pytest.mark.hudi
@pytest.mark.slow
def test_column_statistics_of_a_later_hudi_are_right(tmp_path):
    from oracles.hudi import Hudi

    later = Hudi("1.2.0")
    try:
        check_hudi_skips_right(later, str(tmp_path / "t"))
    finally:
        later.stop()


@pytest.mark.hudi
@pytest.mark.slow
def test_without_bounds_hudi_loses_rows(hudi, tmp_path, older):
    """Why all this is done: when this fails, Hudi has become more careful."""
    older()
    with pytest.raises(AssertionError, match="v = 'n"):
        check_hudi_skips_right(hudi, str(tmp_path / "t"))
