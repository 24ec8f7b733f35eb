"""A global index that keeps rows in their partition path: readers show the path's value, as Hudi 1.0.2 does."""

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudistream
from hudistream import ArrowSink
from table.hudi_table import HudiTable
from table.keys.folder_values import folder_values
from table.scan.lookup import lookup
from table.scan.partition_guarantee import with_folder_values
from table.scan.scan import make_scan

GLOBAL = {
    "GLOBAL_BLOOM": "hoodie.bloom.index.update.partition.path",
    "GLOBAL_SIMPLE": "hoodie.simple.index.update.partition.path",
}
KINDS = {"text": ("p0", "p1"), "number": (7, 8)}


@pytest.fixture(params=[(i, k, m) for i in GLOBAL for k in KINDS for m in ("COPY_ON_WRITE", "MERGE_ON_READ")], ids=str)
def table(request, tmp_path):
    """`a` was written to the first path, and arrived again with the value of the second one; `b` is in the second."""
    index, kind, table_type = request.param
    first, second = KINDS[kind]
    path = str(tmp_path / "t")
    options = {"hoodie.index.type": index, GLOBAL[index]: "false", "hoodie.datasource.write.table.type": table_type}
    with ArrowSink(path, options, key="id", partition_by="p", order_by="ts") as sink:
        sink.write(pa.table({"id": ["a", "b"], "p": [first, second], "ts": [1, 1]}))
        sink.write(pa.table({"id": ["a"], "p": [second], "ts": [2]}))
    return HudiTable.open(path), first, second


def ids(rows):
    return sorted(rows.column("id").to_pylist())


def test_a_condition_on_the_partition_column_and_the_rows_agree(table):
    found, first, second = table
    shown = {row["id"]: (row["p"], row["ts"]) for row in make_scan(found).to_arrow().to_pylist()}
    assert shown == {"a": (first, 2), "b": (second, 1)}
    for condition, wanted in (
        ([("p", "=", first)], ["a"]),
        ([("p", "=", second)], ["b"]),
        ([("p", "!=", first)], ["b"]),
        ([("p", "in", [second])], ["b"]),
        ([("p", "=", second), ("id", "=", "a")], []),
    ):
        assert ids(make_scan(found, where=condition).to_arrow()) == wanted
        parts = [part.to_arrow() for part in make_scan(found, where=condition).splits()]
        assert sorted(key for part in parts for key in ids(part)) == wanted


def test_every_reader_gives_the_same_answer(table):
    found, first, second = table
    wanted = [("a", first), ("b", second)]
    assert sorted((row["id"], row["p"]) for row in lookup(found, ["a", "b"]).to_pylist()) == wanted
    connection = make_scan(found).to_duckdb(duckdb.connect(), "t")
    assert connection.execute("select id, p from t order by id").fetchall() == wanted
    only = connection.execute("select id from t where p = ?", [second]).fetchall()
    assert only == [("b",)]


def test_a_column_that_the_path_does_not_tell_shows_what_the_file_holds(table):
    found, *_ = table
    config, schema = found.config, pa.schema([("id", pa.string()), ("p", pa.float64())])
    assert folder_values(config, schema, "7") == {}
    rows = pa.table({"id": ["a"], "p": [1.5]}, schema=schema)
    assert with_folder_values(rows, config, "7") is rows


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_statistics_of_the_files_hide_no_row_that_is_shown_with_the_value_of_its_path(tmp_path, table_type):
    path = str(tmp_path / "t")
    options = {
        "hoodie.write.table.version": "8",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.index.type": "GLOBAL_BLOOM",
        "hoodie.bloom.index.update.partition.path": "false",
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
    }

    def write(rows):
        with ArrowSink(path, options, key="id", partition_by="p", order_by="ts", operation="upsert") as sink:
            sink.write(pa.Table.from_pylist(rows))

    write([{"id": str(n), "p": f"p{n}", "ts": 1} for n in range(30)])
    write([{"id": "28", "p": "p99", "ts": 2}])
    table = hudistream.HudiTable.open(path)
    if table_type == "MERGE_ON_READ":
        table.compact()
    where = [("p", ">=", "p2"), ("p", "<=", "p28")]
    assert table.count(where) == sum("p2" <= p <= "p28" for p in table.scan().to_arrow()["p"].to_pylist()) == 10
    assert table.count([("ts", "=", 2)]) == 1


@pytest.mark.parametrize(("table_type", "styled"), [("cow", "false"), ("cow", "true"), ("mor", "false")])
def test_all_rows_in_the_path_of_nulls_show_null_and_conditions_go_by_it(tmp_path, table_type, styled):
    path = str(tmp_path / "t")
    options = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"}
    options["hoodie.datasource.write.hive_style_partitioning"] = styled
    with ArrowSink(path, options, key="id", partition_by="p", order_by="ts", table_type=table_type) as sink:
        named = ["n", "y", "e", "l"], [None, "y", "", "__HIVE_DEFAULT_PARTITION__"]
        sink.write(pa.table({"id": named[0], "p": named[1], "ts": [1] * 4}))
        sink.write(pa.table({"id": ["n"], "p": ["x"], "ts": [2]}))
    table = HudiTable.open(path)
    shown = make_scan(table, ["id", "p"]).to_arrow()
    found = dict(zip(shown["id"].to_pylist(), shown["p"].to_pylist(), strict=True))
    assert found == {"e": None, "l": None, "n": None, "y": "y"}
    for value in ("x", "", "__HIVE_DEFAULT_PARTITION__"):
        assert make_scan(table, ["id"], [("p", "=", value)]).count() == 0
    assert make_scan(table, ["id"], pc.field("p").is_null()).count() == 3
