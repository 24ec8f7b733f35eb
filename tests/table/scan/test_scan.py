"""Scans: rows by columns, condition, time and limit, in every form; what is pruned; parts that travel."""

import dataclasses
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from engine import Engine, rows
from faults import FaultyStorage, Fuse
from needs import require

from hudistream import HudiTable
from table import CorruptFileError, InvalidConfigError, Scan, StorageError, UnsupportedTableError, read_table
from table.scan.predicate import with_terms
from table.schema.avro_schema import META_COLUMNS, without_meta_columns
from table.storage.local import LocalStorage

UPSERT = {"hoodie.datasource.write.operation": "upsert"}
FIELD = pc.field


def by_key(table):
    return sorted(table.to_pylist(), key=lambda row: (row["p"], row["id"]))


@pytest.fixture
def lake(tmp_path):
    """Sixty rows in three partitions; twenty of them updated, and a column that older files lack."""
    path = str(tmp_path / "t")
    Engine(path).write(None, rows(range(60)))
    newer = rows(range(0, 60, 3), ts=1, v="new")  # all in p0
    Engine(path, UPSERT).write(None, newer.append_column("w", pa.array(range(20), pa.int64())))
    return HudiTable.open(path)


CONDITIONS = [
    [("p", "=", "p1")],
    [("p", "in", ["p0", "p2"]), ("ts", "=", 0)],
    [[("id", "=", "k3")], [("id", "=", "k4")]],
    [("id", "in", ["k1", "k2", "nobody"])],
    [("w", ">", 5)],
    [("w", "!=", 5)],
    [("id", "not in", ["k1", "k2"])],
    [("_hoodie_partition_path", "=", "p1"), ("id", "<", "k3")],
    FIELD("p") == "p1",
    FIELD("id") == "k7",
    (FIELD("id") == "k7") & (FIELD("p") != "p1"),
    (FIELD("id") == "k7") | (FIELD("p") == "p0"),
    ~(FIELD("p") == "p0") & FIELD("w").is_null(),
    FIELD("w").is_valid(),
    FIELD("_hoodie_record_key") == "k9",
    pc.starts_with(FIELD("id"), "k5"),
]


@pytest.mark.parametrize("where", CONDITIONS, ids=str)
def test_a_condition_keeps_the_rows_that_filtering_the_whole_table_keeps(lake, where):
    import pyarrow.parquet as pq

    whole = read_table(lake.storage.base_uri, meta_columns=True)
    expression = where if isinstance(where, pc.Expression) else pq.filters_to_expression(where)
    expected = by_key(whole.filter(expression))
    scan = lake.scan(where=where, meta_columns=True)
    assert by_key(scan.to_arrow()) == expected
    assert by_key(scan.to_batches().read_all()) == expected
    assert by_key(scan.to_dataset().to_table()) == expected
    parts = [pickle.loads(pickle.dumps(split)) for split in scan.splits()]
    assert by_key(pa.concat_tables([whole.slice(0, 0), *(part.to_arrow() for part in parts)])) == expected
    narrow = lake.scan(["v", "id"], where)
    assert narrow.to_arrow().column_names == ["v", "id"]
    assert sorted(narrow.to_arrow()["id"].to_pylist()) == sorted(row["id"] for row in expected)


def test_meta_columns_are_there_if_they_are_asked_for(lake):
    own = [name for name in lake.schema.names if name not in META_COLUMNS]
    key = [("_hoodie_record_key", "=", "k7")]
    for scan in (lake.scan(), lake.scan(where=key)):
        assert scan.schema.names == scan.to_arrow().column_names == scan.to_batches().schema.names == own
        assert scan.to_duckdb().sql("select * from t").columns == own
        assert scan.splits()[0].to_arrow().column_names == own
    assert lake.scan(where=key).count() == lake.scan(where=key).to_arrow().num_rows == 1
    assert lake.lookup(["k7"]).column_names == read_table(lake.storage.base_uri).column_names == own
    every = [*META_COLUMNS, *own]
    assert lake.scan(meta_columns=True).to_arrow().column_names == lake.changes().to_arrow().column_names == every
    assert lake.lookup(["k7"], meta_columns=True).column_names == every
    assert lake.scan(["_hoodie_record_key"], where=key).to_arrow().to_pylist() == [{"_hoodie_record_key": "k7"}]


def test_the_whole_scan_is_what_read_table_gives(lake):
    whole = read_table(lake.storage.base_uri)
    assert lake.scan().to_arrow().equals(whole)
    assert lake.scan().to_batches().read_all().equals(whole)
    assert without_meta_columns(lake.schema).equals(whole.schema)
    assert whole["w"].null_count == 40


def test_a_scan_reads_nothing_until_its_rows_are_wanted(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(None, rows(range(9)))
    fuse = Fuse()
    opened = HudiTable.open(path)
    table = HudiTable(FaultyStorage(LocalStorage(path), fuse), opened.config)
    before = len(fuse.calls)
    scan = table.scan(["id"], [("p", "=", "p1")], limit=2)
    assert len(fuse.calls) == before
    assert scan.to_arrow().num_rows == 2
    read = [call for call in fuse.calls[before:] if call.startswith("open_input") and ".parquet" in call]
    assert len(read) == 1
    assert "p1/" in read[0]


def test_a_scan_is_asked_anew_each_time(lake):
    scan = lake.scan(["id"])
    assert scan.to_arrow().num_rows == 60
    more = rows(range(60, 70))
    Engine(lake.storage.base_uri).write(None, more.append_column("w", pa.nulls(10, pa.int64())))
    assert scan.to_arrow().num_rows == 70


def test_no_thread_of_arrow_waits_for_the_interpreter_to_open_a_file_of_a_local_disk(lake):
    # queries of DuckDB stood still: pyarrow holds the interpreter's lock while it waits for such a thread
    filesystem = lake.scan().to_dataset().filesystem
    assert filesystem.type_name == "subtree"
    assert filesystem.base_fs.type_name == "local"


def test_a_limit_cuts_rows(lake):
    for limit in (0, 1, 7, 59, 60, 61):
        expected = min(limit, 60)
        assert lake.scan(limit=limit).to_arrow().num_rows == expected
        assert lake.scan(limit=limit).to_batches().read_all().num_rows == expected
    assert lake.scan(where=[("p", "=", "p1")], limit=30).to_arrow().num_rows == 20
    with pytest.raises(InvalidConfigError, match="limit=-1"):
        lake.scan(limit=-1)
    for form in (Scan.to_dataset, Scan.splits):
        with pytest.raises(InvalidConfigError, match="limit=3"):
            form(lake.scan(limit=3))


def test_a_scan_survives_pickling(lake):
    scan = pickle.loads(pickle.dumps(lake.scan(["id"], FIELD("p") == "p2")))
    assert scan.to_arrow().num_rows == 20
    assert pickle.loads(pickle.dumps(lake)) == lake


def test_what_is_pruned_is_counted(lake):
    every = lake.scan().explain()
    assert (every.pruning.partitions, every.pruning.files, every.files_read) == (3, 3, 3)
    one = lake.scan(where=[("p", "=", "p1")]).explain()
    assert (one.pruning.partitions_pruned, one.pruning.files_in_pruned_partitions, one.files_read) == (2, 2, 1)
    assert lake.scan(where=FIELD("p") == "p1").explain() == one
    key = lake.scan(where=[("id", "=", "k7")]).explain()  # k7 is in p1
    cut = key.pruning
    assert key.files_read == 1
    assert cut.files_pruned_by_key_range + cut.files_pruned_by_bloom_filter == 2
    assert lake.scan(where=FIELD("id") == "k7").explain() == key
    outside = lake.scan(where=[("id", "=", "zzz")]).explain()
    assert outside.pruning.files_pruned_by_key_range == 3
    between = lake.scan(where=[("id", "=", "k30x")]).explain()
    assert between.pruning.files_pruned_by_bloom_filter == 3
    newer = lake.scan(where=[("ts", ">", 0)]).explain()
    assert (newer.files_read, newer.files_pruned_by_statistics, newer.row_groups_pruned) == (3, 2, 2)
    assert "skipped by partition path: 2" in str(one)
    assert one.to_json()["partitions_pruned"] == 2


def test_an_or_over_other_columns_asks_for_no_key(lake):
    both = lake.scan(where=[[("id", "=", "k7")], [("ts", "=", 1)]]).explain()
    assert both.pruning.files_pruned_by_bloom_filter == both.pruning.files_pruned_by_key_range == 0
    both = lake.scan(where=(FIELD("id") == "k7") | (FIELD("ts") == 1)).explain()
    assert both.pruning.files_pruned_by_bloom_filter == both.pruning.files_pruned_by_key_range == 0


@pytest.mark.parametrize(("where", "told"), [
    ([("nope", "=", 1)], "no column 'nope'"),
    (FIELD("nope") == 1, "nope"),
    ([("ts", "=", "soon")], "'soon' is no int64"),
    ([("ts", "~", 1)], "operator"),
    ([], "operator"),
    ("p = 'p1'", "operator"),
    ([("p", "in", "p1")], "list of values"),
    (FIELD("p") == 1, "where="),
])  # fmt: skip
def test_a_condition_that_cannot_be_asked_is_refused(lake, where, told):
    with pytest.raises(InvalidConfigError, match=told):
        lake.scan(where=where).to_arrow()


def test_none_of_no_keys_is_found(lake):
    scan = lake.scan(where=[("id", "in", [])])
    assert scan.to_arrow().num_rows == 0
    assert scan.explain().files_read == 0


def test_unknown_columns_are_refused(lake):
    with pytest.raises(InvalidConfigError, match="'nope'"):
        lake.scan(["nope"]).to_arrow()
    with pytest.raises(InvalidConfigError, match=r"\['id'\]"):
        lake.scan("id")
    with pytest.raises(InvalidConfigError, match="'ts'"):
        lake.scan(["id"], [("ts", "=", 1)]).to_dataset()


def test_files_with_other_types_are_conformed(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(None, rows(range(9)).append_column("n", pa.array(range(9), pa.int32())))
    second = rows(range(9, 12)).append_column("n", pa.array([9.5, 10.5, 11.5], pa.float64()))
    widens = {"hudistream.schema.integers.to.floats": "true"}
    Engine(path, {"hoodie.parquet.small.file.limit": "0", **widens}).write(None, second)
    table = HudiTable.open(path)
    scan = table.scan(["id", "n"], [("n", ">=", 7)])
    expected = {("k7", 7.0), ("k8", 8.0), ("k9", 9.5), ("k10", 10.5), ("k11", 11.5)}
    assert {tuple(row.values()) for row in scan.to_arrow().to_pylist()} == expected
    assert {tuple(row.values()) for row in scan.to_batches().read_all().to_pylist()} == expected
    assert scan.explain().files_conformed == 3
    with pytest.raises(UnsupportedTableError, match="other types"):
        scan.to_dataset()


def test_pandas_polars_and_duckdb_get_the_same_rows(lake):
    polars, duckdb = require("polars"), require("duckdb")
    scan = lake.scan(["id", "p", "w"], [("p", "=", "p0")])
    expected = by_key(scan.to_arrow())
    assert len(expected) == 20
    assert sorted(scan.to_pandas()["id"]) == sorted(row["id"] for row in expected)
    assert by_key(scan.to_polars().to_arrow()) == expected
    assert isinstance(scan.to_polars(), polars.DataFrame)
    assert scan.to_duckdb().sql("select count(*) from t").fetchall() == [(20,)]
    connection = scan.to_duckdb(duckdb.connect(), "t")
    assert connection.sql("select count(*), sum(w) from t where w > 3").fetchall() == [(16, sum(range(4, 20)))]
    lake.scan(["id"], limit=5).to_duckdb(connection, "few")
    assert connection.sql("select count(*) from few").fetchall() == [(5,)]


def test_duckdb_gets_nothing_that_its_threads_read_in_python(lake, monkeypatch):
    """It starts a scan with the lock of the interpreter held, and so can wait for ever for a file opened in Python."""
    from pyarrow.fs import PyFileSystem

    given = []

    class Connection:
        def register(self, name, rows):
            given.append(rows)

    lake.scan().to_duckdb(Connection())
    assert isinstance(given[0], ds.Dataset)
    assert not isinstance(given[0].filesystem, PyFileSystem)
    assert given[0].to_table().num_rows == lake.scan().count()
    # a store that Arrow does not know
    remote = HudiTable.open(lake.storage.base_uri)
    elsewhere = FaultyStorage(remote.storage, Fuse())
    Scan(dataclasses.replace(remote, storage=elsewhere)).to_duckdb(Connection())
    assert isinstance(given[1], pa.Table)
    assert given[1].num_rows == lake.scan().count()


@pytest.mark.parametrize("seconds", ["2", pytest.param("1800", marks=pytest.mark.slow)])
def test_every_query_of_every_engine_ends_and_so_does_the_process(seconds):
    """In a process of its own, which must end as it should: threads of engines may still run then."""
    require("polars")
    require("duckdb")
    script = Path(__file__).parents[2] / "support" / "random_queries.py"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, script, seconds],
        env=environment,
        capture_output=True,
        text=True,
        timeout=int(seconds) + 120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout.splitlines()[-1]) > 0


def test_rows_are_counted_with_and_without_log_files(lake, tmp_path):
    whole = lake.scan().to_arrow().num_rows
    assert lake.scan().count() == whole
    assert lake.scan(where=[("p", "=", "p0")]).count() == 20
    assert lake.scan(limit=7).count() == 7
    options = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.datasource.write.operation": "upsert"}
    path = str(tmp_path / "logs")
    for number in range(2):
        Engine(path, options).write(number, rows(range(number * 5, 10), ts=number))
    assert HudiTable.open(path).scan().count() == 10
    assert HudiTable.open(path).scan(where=[("id", "<=", "k3")]).count() == 4


def test_a_table_and_a_scan_say_in_a_line_what_they_are(lake):
    address = lake.storage.base_uri
    assert repr(lake) == f"HudiTable({address!r}: {lake.config.name}, copy-on-write, version 6)"
    assert repr(lake.scan(["id"])).startswith(f"Scan(table={lake!r}, columns=('id',)")
    assert lake.check().is_sound


def test_an_empty_table_has_no_rows_in_any_form(tmp_path):
    from hudistream import create_table
    from table.config.table_config import TableConfig

    table = create_table(LocalStorage(str(tmp_path / "t")), TableConfig("t", ("id",)))
    assert isinstance(table, HudiTable)
    assert table.scan().to_arrow().num_rows == table.scan().count() == 0
    assert table.scan().to_arrow().column_names == [name for name in table.schema.names if name not in META_COLUMNS]
    assert table.scan().to_dataset().to_table().num_rows == 0
    assert table.scan().splits() == ()
    assert table.scan().explain().as_of is None
    with pytest.raises(InvalidConfigError, match="no commit yet, hence no columns"):
        table.to_duckdb()
    with pytest.raises(InvalidConfigError, match="no commit yet"):
        table.scan(as_of="2024-01-01").to_arrow()


def test_slices_with_log_files_are_merged_before_a_condition_is_asked(golden):
    table = HudiTable.open(golden("mor_avro_logs")[0])
    whole = table.scan().to_arrow()
    value = whole["name"][0].as_py()
    wanted = [row for row in whole.to_pylist() if row["name"] == value]
    scan = table.scan(where=[("name", "==", value)])
    assert wanted
    for found in (scan.to_arrow(), scan.to_batches().read_all(), pa.concat_tables(s.to_arrow() for s in scan.splits())):
        assert found.to_pylist() == wanted
    assert table.scan(["qty"], [("name", "==", value)]).to_arrow().to_pylist() == [{"qty": r["qty"]} for r in wanted]
    with pytest.raises(UnsupportedTableError, match="log files"):
        table.scan().to_dataset()


@pytest.mark.parametrize("ask", [
    lambda table: table.scan().to_arrow(),
    lambda table: table.scan().to_batches().read_all(),
    lambda table: table.scan(where=[("id", "=", "k1")]).to_arrow(),
    lambda table: table.lookup(["k1"]),
])  # fmt: skip
def test_a_file_that_is_deleted_while_it_is_read_is_named_and_the_way_out(lake, monkeypatch, ask):
    import os

    from table.scan import plan

    listed = plan._slices_of

    def deletes(*arguments, **how):
        found = listed(*arguments, **how)
        for one in found[0]:
            os.remove(os.path.join(lake.storage.base_uri, one.base_file.path))
        return found

    monkeypatch.setattr(plan, "_slices_of", deletes)
    with pytest.raises(StorageError, match="deleted while it was read"):
        ask(lake)


def test_a_damaged_file_is_named_and_the_whole_ones_are_not(lake):
    import os

    first, second, _ = lake.files()["path"].to_pylist()
    path = os.path.join(lake.storage.base_uri, second)
    with open(path, "r+b") as file:
        file.seek(4)
        file.write(b"\xff" * 3000)
    for form in (lambda scan: scan.to_arrow(), lambda scan: scan.to_batches().read_all()):
        with pytest.raises(CorruptFileError) as told:
            form(lake.scan())
        assert second in str(told.value)
        assert first not in str(told.value)


def test_a_reader_that_stops_early_lets_go_of_its_files(lake):
    import gc
    import os

    reader = lake.scan().to_batches()
    assert reader.read_next_batch().num_rows
    del reader
    gc.collect()
    here = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    assert not [name for name in here if name.endswith(".parquet")]


@pytest.mark.parametrize(("operator", "value", "kept"), [
    ("<", 2.5, [-3, 2]), ("<=", 2.5, [-3, 2]), (">", 2.5, [3, 2**62]), (">=", 2.5, [3, 2**62]),
    ("<", 3.0, [-3, 2]), ("<=", 3.0, [-3, 2, 3]), ("=", 3.0, [3]), (">", -2.5, [2, 3, 2**62]), ("<", -2.5, [-3]),
])  # fmt: skip
def test_whole_numbers_of_any_size_are_compared_with_fractions(tmp_path, operator, value, kept):
    path = str(tmp_path / "t")
    numbers = [-3, 2, 3, 2**62]
    Engine(path).write(None, rows(range(4)).append_column("n", pa.array(numbers, pa.int64())))
    assert sorted(HudiTable.open(path).scan(["n"], [("n", operator, value)]).to_arrow()["n"].to_pylist()) == kept


def test_terms_narrow_every_alternative():
    term, a, b = ("n", "=", 1), ("id", "=", "a"), ("id", "=", "b")
    assert with_terms(None, []) is None
    assert with_terms([a], []) == [a]
    assert with_terms(None, [term]) == [term]
    assert with_terms([a], [term]) == [[a, term]]
    assert with_terms([[a], [b]], [term]) == [[a, term], [b, term]]
    assert with_terms(pc.field("id") == "a", [term]).equals((pc.field("id") == "a") & (pc.field("n") == 1))
    with pytest.raises(InvalidConfigError, match="give a pyarrow expression, or tuples"):
        with_terms("id = 1", [term])


class Replaced(LocalStorage):
    """A store on which somebody replaces each file while it is read, as s3fs says it."""

    def open_input(self, path, size=None):
        inner = super().open_input(path, size)

        class Expired:
            closed = False

            def read(self, count=-1):
                if not path.endswith(".parquet"):
                    return inner.read(count)
                raise OSError(16, "The remote file no longer exists.")

            def seek(self, *place):
                return inner.seek(*place)

            def tell(self):
                return inner.tell()

            def close(self):
                inner.close()

            def seekable(self):
                return True

            def readable(self):
                return True

            def flush(self):
                pass

        return pa.PythonFile(Expired(), mode="r")


def test_a_file_that_is_replaced_while_it_is_read_is_named(lake):
    table = HudiTable(Replaced(lake.storage.base_uri), lake.config)
    for question in (table.scan(where=[("id", "=", "k7")]), table.scan()):
        with pytest.raises(StorageError, match=r"\.parquet.*The remote file no longer exists"):
            question.to_arrow()
