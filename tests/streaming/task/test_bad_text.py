"""Bytes in string columns that are not UTF-8 are bad rows, wherever they stand and whatever the operation."""

import datetime as dt
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine import SCHEMA, Engine, rows
from hypothesis import given, settings
from hypothesis import strategies as st
from stream import OPTIONS
from tiers import examples, quick

from streaming import HudiSink
from table import InvalidRecordError, read_table
from table.columns.text_bytes import find_bad_text, made_readable
from table.options.choices import IndexType
from table.storage.local import LocalStorage

BAD = b"x\xff\xfe"
QUARANTINE = {"hudistream.bad.rows": "quarantine"}
UPSERT = {"hoodie.datasource.write.operation": "upsert", "hoodie.bucket.index.num.buckets": "3"}
APART = {"hoodie.upsert.shuffle.parallelism": "4"}
WAYS = {
    "insert": {},
    "bulk_insert": {"hoodie.datasource.write.operation": "bulk_insert"},
    "bulk_insert, sorted": {
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.bulkinsert.sort.mode": "PARTITION_SORT",
    },
    "insert, combined": {"hoodie.combine.before.insert": "true"},
    "insert, without known keys": {"hoodie.datasource.write.insert.drop.duplicates": "true"},
    "insert into buckets": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"},
    "in lots": {**UPSERT, "hudistream.task.memory.bytes": "2000"},
    "in lots, global": {**UPSERT, "hudistream.task.memory.bytes": "2000", "hoodie.index.type": "GLOBAL_BLOOM"},
    "partial": {**UPSERT, "hoodie.datasource.write.payload.class": "PartialUpdateAvroPayload"},
    **{index: {**UPSERT, "hoodie.index.type": index} for index in IndexType},
}


def with_bytes(table, column, changes):
    """Rows with other bytes in a string column."""
    values = table.column(column).cast(pa.binary()).to_pylist()
    for row, value in changes.items():
        values[row] = value
    at = table.column_names.index(column)
    return table.set_column(at, table.schema.field(at), pa.array(values, pa.binary()).view(pa.string()))


def put_aside(path):
    names = [name for name in os.listdir(path) if name.endswith(".parquet")] if os.path.isdir(path) else []
    return [row for name in names for row in pq.read_table(os.path.join(path, name)).to_pylist()]


def contents(path):
    return sorted((row["id"], row["p"], row["v"]) for row in read_table(path).to_pylist())


@pytest.mark.parametrize("way", WAYS)
def test_rows_with_bad_bytes_go_aside_and_later_batches_are_fine(tmp_path, way):
    path, aside = str(tmp_path / "t"), str(tmp_path / "aside")
    engine = Engine(path, {**WAYS[way], **QUARANTINE}, aside=LocalStorage(aside))
    engine.write(0, rows(range(20)))
    batch = rows(range(20, 40), ts=1)
    for number, column in enumerate(["id", "p", "v"]):
        batch = with_bytes(batch, column, {number: BAD, 10 + number: b"\xc3", 19: "gut ü".encode()})
    summary = engine.write(1, batch)
    assert (summary.rows, summary.bad_rows) == (14, 6)
    for row in put_aside(aside):
        [column] = [name for name in ("id", "p", "v") if "\\x" in row[name]]
        assert row[column] in ("\\xc3", "x\\xff\\xfe")
        assert row["_hudistream_reason"].startswith(f"the text in column {column!r} is not UTF-8, such as X'")
        assert row["_hudistream_batch_id"] == 1
    assert len(put_aside(aside)) == 6
    engine.write(2, rows(range(15, 50), ts=2, v="new"))
    good = {f"k{n}" for n in (*range(20), *range(15, 50), *range(23, 30), *range(33, 39))} | {"gut ü"}
    assert {row[0] for row in contents(path)} == good


@pytest.mark.parametrize("way", ["insert", "BLOOM", "GLOBAL_SIMPLE", "BUCKET"])
@pytest.mark.parametrize("column", ["id", "p", "v"])
def test_without_a_quarantine_the_batch_fails_and_names_column_and_bytes(tmp_path, way, column):
    path = str(tmp_path / "t")
    Engine(path, WAYS[way]).write(0, rows(range(20)))
    before = contents(path)
    batch = with_bytes(rows(range(10, 30), ts=1), column, {5: BAD})
    with pytest.raises(
        InvalidRecordError, match=rf"1 rows cannot .* column '{column}' is not UTF-8, such as X'78fffe'"
    ):
        Engine(path, WAYS[way]).write(1, batch)
    assert contents(path) == before
    Engine(path, WAYS[way]).write(1, rows(range(10, 30), ts=1))


@pytest.mark.parametrize(("index", "column"), [*((index, "id") for index in IndexType), ("BLOOM", "p")])
def test_a_delete_with_bad_bytes_deletes_nothing_of_that_row(tmp_path, index, column):
    path, aside = str(tmp_path / "t"), str(tmp_path / "aside")
    options = {**WAYS[index], **QUARANTINE}
    Engine(path, options, aside=LocalStorage(aside)).write(0, rows(range(20)))
    engine = Engine(path, {**options, "hoodie.datasource.write.operation": "delete"}, aside=LocalStorage(aside))
    summary = engine.write(1, with_bytes(rows(range(10)), column, {4: BAD}))
    assert (summary.rows_deleted, summary.bad_rows) == (9, 1)
    assert {row[0] for row in contents(path)} == {"k4", *(f"k{n}" for n in range(10, 20))}
    [row] = put_aside(aside)
    assert "X'78fffe'" in row["_hudistream_reason"]


def test_bad_bytes_of_a_hot_path_go_through_both_exchanges(tmp_path):
    path, aside = str(tmp_path / "t"), str(tmp_path / "aside")
    engine = Engine(path, {**UPSERT, **QUARANTINE}, aside=LocalStorage(aside))
    hot = rows(range(3000), lambda n: "hot" if n % 10 else "cold")
    engine.write(0, hot)
    engine.writer._profiles.forget()
    from streaming.plan import plan_tasks as batch_plan

    plain = batch_plan.plan_change_routes

    def apart(*args, **kwargs):
        return plain(*args, **kwargs)[0], True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_plan, "plan_change_routes", apart)
        for column in ("id", "p", "v"):
            batch = with_bytes(rows(range(2990, 3010), lambda _: "hot", ts=1), column, {0: BAD, 19: BAD})
            summary = engine.write({"id": 1, "p": 2, "v": 3}[column], batch)
            assert summary.bad_rows == 2
            assert engine.plans[-1].changes.apart
    assert len(put_aside(aside)) == 6
    assert {row[0] for row in contents(path)} == {f"k{n}" for n in range(3009)}


# values: text, or bytes in the place of a text; and the same as Python would have it
TEXTS = st.binary(max_size=4) | st.text(max_size=4).map(lambda text: text.encode("utf-8", "ignore"))
VALUES = st.fixed_dictionaries(
    {
        "t": st.none() | TEXTS,
        "s": st.none() | st.fixed_dictionaries({"a": st.none() | TEXTS, "n": st.integers(0, 9)}),
        "l": st.none() | st.lists(st.none() | TEXTS, max_size=3),
        "m": st.none() | st.lists(st.tuples(TEXTS, st.none() | TEXTS), max_size=2),
        "d": st.none() | st.lists(st.none() | st.fixed_dictionaries({"x": st.lists(TEXTS, max_size=2)}), max_size=2),
        "n": st.none() | st.integers(0, 9),
        "b": st.none() | st.binary(max_size=3),
    }
)


def shape(text):
    return pa.schema(
        [
            ("t", text),
            ("s", pa.struct([("a", text), ("n", pa.int64())])),
            ("l", pa.list_(pa.field("element", text))),
            ("m", pa.map_(text, pa.field("value", text))),
            ("d", pa.list_(pa.field("element", pa.struct([("x", pa.list_(pa.field("element", text)))])))),
            ("n", pa.int64()),
            ("b", pa.binary()),
        ]
    )


def as_strings(values):
    """The values as Spark hands them over: nobody has looked at the bytes."""
    table = pa.Table.from_pylist(values, schema=shape(pa.binary()))

    def viewed(array, kind):
        if array.type.equals(kind):
            return array
        if pa.types.is_string(kind):
            return array.view(pa.string())
        if pa.types.is_struct(kind):
            parts = [viewed(array.field(n), kind.field(n).type) for n in range(kind.num_fields)]
            return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
        if pa.types.is_map(kind):
            parts = [array.offsets, viewed(array.keys, kind.key_type), viewed(array.items, kind.item_type)]
            valid = array.is_valid()
            offsets = pa.array(
                [o if n == len(array) or valid[n].as_py() else None for n, o in enumerate(parts[0].to_pylist())],
                pa.int32(),
            )
            return pa.MapArray.from_arrays(offsets, *parts[1:], type=kind)
        return pa.ListArray.from_arrays(
            array.offsets, viewed(array.values, kind.value_type), type=kind, mask=array.is_null()
        )

    wanted = shape(pa.string())
    columns = [viewed(table.column(n).combine_chunks(), wanted.field(n).type) for n in range(len(wanted))]
    return pa.Table.from_arrays([c.chunk(0) if isinstance(c, pa.ChunkedArray) else c for c in columns], schema=wanted)


def decoded(value, how="strict"):
    if isinstance(value, bytes):
        return value.decode("utf-8", how)
    if isinstance(value, dict):
        return {key: decoded(held, how) for key, held in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(decoded(held, how) for held in value)
    return value


def is_bad(row):
    try:
        decoded({key: value for key, value in row.items() if key != "b"})
    except UnicodeDecodeError:
        return True
    return False


@given(st.lists(VALUES, min_size=1, max_size=12), st.integers(0, 5))
@settings(max_examples=examples(100), deadline=None)
def test_bad_rows_are_those_that_python_cannot_decode_and_are_readable_afterwards(values, skipped):
    table = as_strings([*values[:1] * skipped, *values]).slice(skipped)
    flags = [False] * len(values)
    for part in find_bad_text(table):
        flags = [one or bool(other) for one, other in zip(flags, part.rows, strict=True)]
        with pytest.raises(UnicodeDecodeError):
            part.example.decode()
        assert part.column.split(".")[0] in "tslmd"
    assert flags == [is_bad(row) for row in values]
    readable = made_readable(table)
    readable.validate(full=True)
    expected = [{k: v if k == "b" else decoded(v, "backslashreplace") for k, v in row.items()} for row in values]
    assert readable.to_pylist() == expected
    assert find_bad_text(readable) == []


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=12), st.sampled_from(sorted(WAYS)))
@settings(max_examples=examples(15), deadline=None)
def test_whatever_bytes_arrive_good_rows_are_stored_and_bad_ones_put_aside(tmp_path_factory, batch, way):
    folder = tmp_path_factory.mktemp("any")
    path, aside = str(folder / "t"), str(folder / "aside")
    engine = Engine(path, {**WAYS[way], **QUARANTINE}, aside=LocalStorage(aside))
    columns = list(zip(*batch, strict=True))
    parts = [pa.array(column, pa.binary()).view(pa.string()) for column in columns]
    table = pa.table([parts[0], parts[1], pa.array([1] * len(batch), pa.int64()), parts[2]], schema=SCHEMA)
    summary = engine.write(0, table)
    assert summary.bad_rows == len(put_aside(aside))
    assert summary.bad_rows >= sum(any(is_bad({"x": value}) for value in row) for row in batch)
    engine.write(1, rows(range(10), ts=2))
    engine.write(2, rows(range(5, 15), ts=3))
    assert {f"k{n}" for n in range(15)} <= set(read_table(path).column("id").to_pylist())


NESTED = """named_struct('a', CAST(id AS STRING), 'b', array({0})) s, array(named_struct('x', {0})) l,
    map({0}, 'v') m, map('k', {0}) w"""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("index", quick(1, ["", "GLOBAL_BLOOM", "BLOOM", "BUCKET"]))
def test_on_spark_bad_bytes_are_found_in_every_column(spark, tmp_path, index):
    path = str(tmp_path / "t")
    way = WAYS[index] if index else {}
    sink = HudiSink(path, {**OPTIONS, **way, **QUARANTINE})
    value = "CASE WHEN id % 10 = {} THEN CAST(X'78FFFE' AS STRING) ELSE concat('v', id) END"
    key, where = value.format(1), value.format(2).replace("concat('v', id)", "concat('p', id % 3)")
    nested = NESTED.format(value.format(3))
    day = "CASE WHEN id % 10 = 3 THEN DATE'9999-12-31' ELSE DATE'0001-01-01' END day"
    query = f"SELECT {key} id, {where} p, id ts, {value.format(4)} v, {nested}, {day} FROM range(100)"
    sink.write(spark.sql(query))
    assert (sink.last_batch.rows, sink.last_batch.bad_rows) == (60, 40)
    found = spark.read.parquet(path + "_bad_rows").collect()
    assert len(found) == 40
    reasons = {row["_hudistream_reason"].split("'")[1] for row in found}
    assert {"id", "p", "v"} < reasons
    assert {row["id"] for row in found if row["ts"] % 10 == 1} == {"x\\xff\\xfe"}
    nested = next(row for row in found if row["ts"] % 10 == 3)
    assert nested["s"]["b"] == [nested["l"][0]["x"]] == list(nested["m"]) == [nested["w"]["k"]] == ["x\\xff\\xfe"]
    assert nested["day"] == dt.date(9999, 12, 31)
    # later batches into the same files
    sink.write(spark.sql(query.replace("78FFFE", "78").replace("id ts", "id + 100 ts")))
    assert sink.last_batch.bad_rows == 0
    assert len(read_table(path)) >= 80
    with pytest.raises(Exception, match="column 'v' is not UTF-8, such as X'78fffe'"):
        HudiSink(path, {**OPTIONS, **way}).write(spark.sql(query).where("ts % 10 = 4"))
