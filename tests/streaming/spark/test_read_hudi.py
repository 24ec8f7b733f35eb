"""read_hudi: which rows, read by whom, and how much of a table is opened for them."""

import random
import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from engine import Engine, rows
from every_type import comparable, random_batch
from s3_server import serve_s3
from tiers import quick
from values import frame_rows, shown

from hudistream import HudiTable
from streaming import HudiSink, read_hudi
from streaming.spark import scan_frame, split_rows
from streaming.spark.conditions import spark_condition
from table import InvalidConfigError, clock

pytestmark = pytest.mark.spark

UPSERT = {"hoodie.datasource.write.operation": "upsert"}
MERGED = ["mor_avro_logs", "mor_compaction_pending", "v9_mor_logs"]
QUERY_TYPE = "hoodie.datasource.query.type"
BEGIN, END = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"


@pytest.fixture
def lake(tmp_path):
    path = str(tmp_path / "t")
    return path, [Engine(path, UPSERT).write(None, rows(range(6), ts=n, v=f"v{n}")).instant_time for n in range(3)]


@pytest.fixture
def utc_session(spark):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def plan_of(frame, capsys):
    """Spark's physical plan as text."""
    capsys.readouterr()
    frame.explain("formatted")
    return capsys.readouterr().out


def pushed_filters(plan):
    return re.findall(r"PushedFilters: \[(.*?)\]", plan)


def opened(frame):
    """Names of the files that Spark's own reader is to open."""
    return sorted(name.rsplit("/", 1)[-1] for name in frame.inputFiles())


def test_every_commit_can_be_seen_again(spark, lake):
    path, times = lake
    for number, time in enumerate(times):
        moment = datetime.fromtimestamp(clock.parse_instant_time(time) / 1000, tz=timezone.utc)
        for as_of in (time, moment):
            assert {row.v for row in read_hudi(spark, path, as_of=as_of).collect()} == {f"v{number}"}
        frame = read_hudi(spark, path, options={"as.of.instant": time, QUERY_TYPE: "snapshot"})
        assert {row.v for row in frame.collect()} == {f"v{number}"}
    assert {row.v for row in read_hudi(spark, path).collect()} == {"v2"}
    with pytest.raises(InvalidConfigError, match=times[0]):
        read_hudi(spark, path, as_of="2020-01-01")


def test_columns_come_in_the_order_asked_for(spark, lake):
    path, _ = lake
    frame = read_hudi(spark, path, columns=["v", "p", "_hoodie_record_key"])
    assert frame.columns == ["v", "p", "_hoodie_record_key"]
    assert sorted(row.p for row in frame.collect()) == ["p0", "p0", "p1", "p1", "p2", "p2"]
    with pytest.raises(InvalidConfigError, match="'nope'"):
        read_hudi(spark, path, columns=["nope"])


def test_a_filter_on_a_partition_column_reaches_the_files(spark, lake, capsys):
    path, _ = lake
    one = read_hudi(spark, path).where("p = 'p1' AND ts > 1")
    [pushed] = pushed_filters(plan_of(one, capsys))
    assert "EqualTo(_hoodie_partition_path,p1)" in pushed
    assert "GreaterThan(ts,1)" in pushed
    assert sorted(row.id for row in one.collect()) == ["k1", "k4"]


def test_a_filter_reaches_the_files_beside_a_default_partition(spark, tmp_path, capsys):
    path = str(tmp_path / "t")
    sink = HudiSink(path, key="id", partition_by="p", order_by="ts")
    sink.write(
        spark.range(8).selectExpr(
            "concat('k', id) id", "element_at(array(NULL, '', 'a', 'b'), CAST(id % 4 AS INT) + 1) p", "id ts"
        )
    )
    sink.stop()
    frame = read_hudi(spark, path)
    # as Hudi shows them: the path of both says that there is no value
    assert sorted(row.p or "-" for row in frame.collect()) == ["-"] * 4 + ["a", "a", "b", "b"]
    some = frame.where("p = 'a'")
    assert any("EqualTo(_hoodie_partition_path,a)" in pushed for pushed in pushed_filters(plan_of(some, capsys)))
    assert sorted(row.id for row in some.collect()) == ["k2", "k6"]
    assert frame.where("p IS NULL").count() == 4


def test_a_filter_leaves_folders_out_that_are_named_after_their_column(spark, tmp_path, capsys):
    path = str(tmp_path / "t")
    values = ["007", "1.50", "a=b", "a b", "ü", None, ""]
    texts = ", ".join("NULL" if value is None else f"'{value}'" for value in values)
    hive = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    sink = HudiSink(path, hive, key="id", partition_by="p", order_by="ts")
    sink.write(
        spark.range(14).selectExpr(
            "concat('k', id) id", f"element_at(array({texts}), CAST(id % 7 AS INT) + 1) p", "id ts"
        )
    )
    sink.stop()
    frame = read_hudi(spark, path)
    shown = {row.id: row.p for row in frame.collect()}
    assert shown == {f"k{number}": values[number % 7] or None for number in range(14)}
    assert frame.columns == HudiTable.open(path).scan(meta_columns=True).schema.names
    for number, value in enumerate(values[:5]):
        one = frame.where(f"p = '{value}'")
        plan = plan_of(one, capsys)
        assert f"= {value})" in "".join(re.findall(r"PartitionFilters: \[(.*?)\]", plan))
        assert not any("EqualTo(p" in pushed for pushed in pushed_filters(plan))
        assert sorted(row.id for row in one.collect()) == sorted([f"k{number}", f"k{number + 7}"])
    assert frame.where("p IS NULL").count() == 4
    assert read_hudi(spark, path, where=[("p", "=", "007")]).count() == 2


def test_where_opens_no_other_file_than_it_needs(spark, lake):
    path, _ = lake
    files = {row["partition_path"]: row["path"].rsplit("/", 1)[-1] for row in HudiTable.open(path).files().to_pylist()}
    assert opened(read_hudi(spark, path)) == sorted(files.values())
    assert opened(read_hudi(spark, path, where=[("p", "=", "p1")])) == [files["p1"]]
    assert opened(read_hudi(spark, path, where=[("id", "in", ["k0", "k2"])])) == sorted([files["p0"], files["p2"]])
    assert opened(read_hudi(spark, path, where=pc.field("id") == "k2")) == []  # Arrow reads, on the workers
    for where in ([("id", "=", "k2")], pc.field("id") == "k2"):
        [row] = read_hudi(spark, path, columns=["v"], where=where).collect()
        assert row.asDict() == {"v": "v2"}
    assert read_hudi(spark, path, where=[("p", "=", "nowhere")]).count() == 0
    with pytest.raises(InvalidConfigError, match="'nope'"):
        read_hudi(spark, path, where=[("nope", "=", 1)])


UTC = timezone.utc
VALUES = {
    "id": ["k0", "k1", "k2", "k3", "k4", "k5"],
    "n": pa.array([1, 2, 3, None, -5, 2**62]),
    "x": pa.array([1.5, float("nan"), None, -0.0, float("inf"), 2.0]),
    "s": ["a", None, "ä", "", "Z", "b"],
    "f": [True, False, None, True, False, None],
    "d": pa.array([date(2026, 1, n) if n != 3 else None for n in range(1, 7)]),
    "at": pa.array([None, *(datetime(2026, 1, 1, 12, n, tzinfo=UTC) for n in range(5))], pa.timestamp("us", "UTC")),
    "m": pa.array([Decimal(n) / 4 if n else None for n in range(6)], pa.decimal128(9, 2)),
    "p": ["p0", "p1", "p0", "p1", "p0", "p1"],
    "ts": pa.array([0] * 6, pa.int64()),
}  # fmt: skip
ELSEWHERE = timezone(timedelta(hours=5))
CONDITIONS = [
    [("n", ">", 1)], [("n", "!=", 2)], [("n", "in", [1, 3, None])], [("n", "not in", [1, 3])], [("n", "in", [])],
    [("n", "not in", [])], [("n", "=", "3")], [("n", ">", 2**40)],
    [("x", ">", 1.0)], [("x", "!=", 2.0)], [("x", "<=", 2)], [("x", "=", 0.0)], [("x", "in", [float("nan"), 1.5])],
    [("s", "<", "b")], [("s", "!=", "a")], [("s", "not in", ["a", "b"])], [("s", "=", "")], [("s", ">", "Z")],
    [("f", "=", True)], [("f", "!=", True)], [("f", "in", [False])],
    [("d", ">=", "2026-01-04")], [("d", "=", date(2026, 1, 1))], [("d", "not in", [date(2026, 1, 1)])],
    [("at", ">", "2026-01-01T12:02:00Z")], [("at", "<=", datetime(2026, 1, 1, 17, 1, tzinfo=ELSEWHERE))],
    [("m", ">", Decimal("0.5"))], [("m", "=", Decimal("0.25"))],
    [("n", ">", 1), ("s", "!=", "b")], [[("n", "=", 1)], [("p", "=", "p1"), ("f", "=", False)]],
    (pc.field("n") > 1) | pc.field("s").is_null(), pc.field("x").is_nan(), ~(pc.field("f")),
]  # fmt: skip


@pytest.fixture(scope="module")
def odd_values(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("odd") / "t")
    Engine(path).write(0, pa.table(VALUES))
    return path


def ids_of_scan(path, where):
    return sorted(HudiTable.open(path).scan(["id"], where).to_arrow().column("id").to_pylist())


def test_a_condition_means_the_same_to_spark_as_to_a_scan(spark, odd_values):
    schema = HudiTable.open(odd_values).schema
    asked = [(where, spark_condition(where, None, schema)) for where in CONDITIONS]
    asked = [(where, column) for where, column in asked if column is not None]
    assert len(asked) > 20
    columns = [column.alias(f"c{number}") for number, (_, column) in enumerate(asked)]
    found = read_hudi(spark, odd_values).select("id", *columns).collect()
    for number, (where, _) in enumerate(asked):
        assert sorted(row.id for row in found if row[f"c{number}"]) == ids_of_scan(odd_values, where), where


def test_what_spark_takes_for_something_else_is_left_to_arrow(spark, odd_values):
    schema = HudiTable.open(odd_values).schema
    left = [where for where in CONDITIONS if spark_condition(where, None, schema) is None]
    assert [("x", ">", 1.0)] in left
    for where in ([("x", ">", 1.0)], [("x", "in", [float("nan"), 1.5])], left[-1]):
        read = read_hudi(spark, odd_values, columns=["id"], where=where)
        assert sorted(row.id for row in read.collect()) == ids_of_scan(odd_values, where)


@pytest.mark.parametrize("year", [1, 99, 1500, 9999])
def test_dates_and_times_of_any_year_are_compared(spark, tmp_path, year):
    path, day = str(tmp_path / "t"), date(year, 1, 1)
    time = datetime(year, 1, 1, 12, tzinfo=timezone.utc)
    rows = {"id": ["a", "b"], "p": ["p"] * 2, "ts": pa.array([0, 1], pa.int64()), "d": [day, date(2024, 2, 29)]}
    rows["t"] = pa.array([time, datetime(2024, 2, 29, tzinfo=timezone.utc)], pa.timestamp("us", "UTC"))
    Engine(path).write(0, pa.table(rows), parallelism=1)
    for where in ([("d", "=", day)], [("d", "in", [day])], [("t", "=", time)], [("t", "in", [time])]):
        assert [row.id for row in read_hudi(spark, path, columns=["id"], where=where).collect()] == ["a"]


def test_files_that_name_no_calendar_are_read_by_the_one_of_arrow(spark, tmp_path):
    """Hudi's writers name none. Spark refuses to choose for dates before 1582 and times before 1900."""
    path, day, time = str(tmp_path / "t"), date(1, 1, 1), datetime(1, 1, 1, tzinfo=timezone.utc)
    rows = {
        "id": ["a"],
        "p": ["p"],
        "ts": pa.array([0], pa.int64()),
        "d": [day],
        "t": pa.array([time], pa.timestamp("us", "UTC")),
    }
    Engine(path).write(0, pa.table(rows), parallelism=1)
    [file] = (tmp_path / "t" / "p").glob("*.parquet")
    pq.write_table(pq.ParquetFile(file).read().replace_schema_metadata(), file)
    [row] = read_hudi(spark, path).selectExpr("string(d) d", "unix_micros(t) t").collect()
    assert (row.d, row.t) == ("0001-01-01", -62135596800000000)


def test_no_condition_on_floats_reaches_the_files(spark, tmp_path):
    """Spark passes over row groups by bounds, which leave NaN out; other columns it may use."""
    path, nan = str(tmp_path / "t"), float("nan")
    rows = {"id": ["a", "b", "c"], "p": ["p"] * 3, "ts": pa.array([0, 1, 2], pa.int64()), "x": [3.0, nan, 3.0]}
    Engine(path).write(0, pa.table({**rows, "s": [{"f": value} for value in rows["x"]]}), parallelism=1)
    [file] = (tmp_path / "t" / "p").glob("*.parquet")
    pq.write_table(pq.ParquetFile(file).read(), file)  # with the bounds of the numbers
    frame = read_hudi(spark, path)
    for condition in ("x <> 3.0D", "x > 100", "x = double('NaN')", "s.f <> 3.0D", "x > 100 AND ts > 0"):
        assert [row.id for row in frame.where(condition).collect()] == ["b"], condition
    plan = frame.where("x > 100 AND ts > 0")._jdf.queryExecution().toString()
    [pushed] = {line.split("PushedFilters: ")[1] for line in plan.splitlines() if "PushedFilters: " in line}
    assert "GreaterThan(ts,0)" in pushed
    assert "x" not in pushed.split("]")[0].replace("Not", "")
    assert frame.where("x <> 3.0D").select("x", "s").collect()[0].x != 3.0


@pytest.mark.parametrize("name", MERGED)
def test_log_files_are_merged_on_the_workers(utc_session, golden, name, utc):
    path, expected = golden(name)
    frame = read_hudi(utc_session, path)
    assert shown(frame_rows(frame)) == shown(expected["rows"])
    some = read_hudi(utc_session, path, columns=["id", "region"], where=[("region", "=", "eu")])
    assert shown(frame_rows(some)) == shown(
        [{"id": row["id"], "region": "eu"} for row in expected["rows"] if row["region"] == "eu"]
    )


def test_slices_without_log_files_are_left_to_spark(spark, golden, utc):
    path, expected = golden("mor_avro_logs")
    files = HudiTable.open(path).files().to_pylist()
    logged = {row["file_id"] for row in files if row["kind"] == "log"}
    plain = [row["path"].rsplit("/", 1)[-1] for row in files if row["file_id"] not in logged]
    assert plain, "every slice has log files: this table shows nothing"
    frame = read_hudi(spark, path)
    assert opened(frame) == sorted(plain)
    assert frame.count() == len(expected["rows"])


def test_read_optimized_shows_base_files_alone(spark, golden, utc):
    path, expected = golden("mor_avro_logs")
    files = HudiTable.open(path).files().to_pylist()
    based = sorted(row["path"].rsplit("/", 1)[-1] for row in files if row["kind"] == "base")
    frame = read_hudi(spark, path, options={QUERY_TYPE: "read_optimized"})
    assert opened(frame) == based
    assert frame.count() != len(expected["rows"])


def test_parcels_of_splits_are_bounded():
    class Split:
        size_bytes = 10

        def __reduce__(self):
            return str, ("split",)

    parcels = split_rows.pack_splits([Split()] * 7, most_bytes=3 * (10 + 4 * 1024 * 1024))
    assert len(parcels) == 3
    assert len(split_rows.pack_splits([Split()] * 2, most_bytes=1)) == 2


def test_a_range_of_commits(spark, tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, UPSERT)
    first, second, third = (
        engine.write(None, rows(keys, ts=n, v=f"v{n}")).instant_time
        for n, keys in enumerate([range(9), range(3, 6), range(5, 7)])
    )

    def changed(**asked):
        return sorted((row.id, row.v) for row in read_hudi(spark, path, **asked).collect())

    assert changed(since=first) == [("k3", "v1"), ("k4", "v1"), ("k5", "v2"), ("k6", "v2")]
    assert changed(since=first, until=second) == [("k3", "v1"), ("k4", "v1"), ("k5", "v1")]
    assert changed(since=second, where=[("p", "=", "p2")]) == [("k5", "v2")]
    assert changed(since=second, where=pc.field("id") == "k6") == [("k6", "v2")]
    assert changed(since=third) == []
    assert len(changed(since="earliest")) == 9
    options = {QUERY_TYPE: "incremental", BEGIN: first, END: second}
    assert changed(options=options) == changed(since=first, until=second)
    assert changed(options={"hoodie.datasource.view.type": "incremental", BEGIN: "000"}) == changed(until=third)
    assert len(opened(read_hudi(spark, path, since=second))) == 2


def test_a_range_of_commits_of_a_table_that_orders_by_completion(spark, golden, utc):
    path, _ = golden("v8_mor_logs")
    table = HudiTable.open(path)
    seen = sorted(table.load_timeline().visible_times.values())
    for since, some in ((seen[0], True), (seen[1], False)):  # the last commit deletes
        scanned = sorted(table.changes(since, columns=["id"]).to_arrow().column("id").to_pylist())
        assert bool(scanned) == some
        assert sorted(row.id for row in read_hudi(spark, path, since=since, columns=["id"]).collect()) == scanned
    with pytest.raises(InvalidConfigError, match="give since="):
        read_hudi(spark, path, options={QUERY_TYPE: "incremental", BEGIN: seen[0]})


def test_options_are_refused_or_told(spark, lake, logs):
    path, _ = lake
    with pytest.raises(InvalidConfigError, match="did you mean"):
        read_hudi(spark, path, options={"hoodie.datasource.query.typ": "snapshot"})
    assert read_hudi(spark, path, options={"hoodie.metadata.enable": "true"}).count() == 6
    [told] = [entry for entry in logs if entry["event"] == "option_without_effect"]
    assert told["key"] == "hoodie.metadata.enable"


def test_every_type_comes_through_python(spark, tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    table = random_batch(random.Random(5), 0, 60)
    Engine(path).write(0, table)
    by_spark = read_hudi(spark, path, columns=table.schema.names)
    monkeypatch.setattr(scan_frame, "_unless_without_connector", lambda *_: None)
    by_python = read_hudi(spark, path, columns=table.schema.names)
    assert opened(by_python) == []
    assert by_python.dtypes == by_spark.dtypes
    assert shown(frame_rows(by_python)) == shown(frame_rows(by_spark))
    assert len(comparable(table)) == by_python.count() == 60


@pytest.mark.slow
def test_where_spark_has_no_connector_python_reads_through_fsspec(spark, logs):
    scan_frame._tell_no_connector.cache_clear()
    with serve_s3() as address:
        storage = {
            "key": "test",
            "secret": "test",
            "client_kwargs": {"endpoint_url": address, "region_name": "eu-west-1"},
        }
        for scheme in ("s3a", "s3"):
            path = f"{scheme}://lake/{scheme}"
            sink = HudiSink(path, key="id", partition_by="p", order_by="ts", storage_options=storage)
            sink.write(spark.range(30).selectExpr("concat('k', id) id", "concat('p', id % 3) p", "id ts"))
            sink.stop()
            frame = read_hudi(spark, path, storage, where=[("p", "=", "p1")])
            assert sorted(row.ts for row in frame.collect()) == list(range(1, 30, 3))
            assert read_hudi(spark, path, storage).where("p = 'p2'").count() == 10
    told = [entry["scheme"] for entry in logs if entry["event"] == "spark_has_no_connector"]
    assert told == ["s3a", "s3"]


WIDENED = [
    ("int", "bigint", "7", "8000000000"),
    ("struct<x:int>", "struct<x:bigint,y:string>", "named_struct('x', 7)", "named_struct('x', 8000000000, 'y', 'new')"),
    ("int", "float", "16777217", "0.5"),
    ("bigint", "double", "9007199254740993", "8.5"),
    ("float", "double", "7.1", "8.1"),
    ("array<float>", "array<double>", "array(7.1)", "array(8.1)"),
]


@pytest.mark.parametrize(("old", "new", "before", "after"), quick(2, WIDENED))
def test_files_from_before_a_widening_are_read_with_their_own_types(
    spark, tmp_path, monkeypatch, old, new, before, after
):
    """Flat numbers by Spark, other types by Python; the files behind the widening by Spark alone."""
    path = str(tmp_path / "t")
    sink = HudiSink(path, {"hudistream.schema.integers.to.floats": "true"}, key="id", partition_by="p", order_by="ts")
    sink.write(spark.sql(f"SELECT 'a' id, 'p0' p, 1L ts, CAST({before} AS {old}) v, 1 w"))
    sink.write(spark.sql(f"SELECT 'b' id, 'p1' p, 1L ts, CAST({after} AS {new}) v, 1 w"))
    sink.stop()
    by_python, inner = [], scan_frame.FrameMaker._read_by_python

    def noted(self, slices):
        by_python.append([found.partition_path for found in slices])
        return inner(self, slices)

    monkeypatch.setattr(scan_frame.FrameMaker, "_read_by_python", noted)
    wanted = {row["id"]: row["v"] for row in HudiTable.open(path).scan().to_arrow().to_pylist()}
    found = {row.id: row.v.asDict() if hasattr(row.v, "asDict") else row.v for row in read_hudi(spark, path).collect()}
    assert found == wanted
    assert by_python == ([] if old in ("int", "bigint", "float") else [["p0"]])
    by_python.clear()
    assert read_hudi(spark, path, columns=["id", "w"]).count() == 2
    assert not by_python  # the column is not read
    if old in ("int", "bigint", "float"):
        assert [row.id for row in read_hudi(spark, path, where=[("v", ">", wanted["b"])]).collect()] == (
            ["a"] if wanted["a"] > wanted["b"] else []
        )


def test_a_table_without_a_widening_asks_for_one_commit_more(spark, lake, monkeypatch):
    path, _ = lake
    asked, inner = [], scan_frame.find_written_types

    def noted(snapshot, columns, written):
        before = {*snapshot.commits._kept}
        found = inner(snapshot, columns, written)
        asked.append([one.time for one in snapshot.commits._kept if one not in before])
        return found

    monkeypatch.setattr(scan_frame, "find_written_types", noted)
    assert read_hudi(spark, path).count() == 6
    assert len(asked) == 1
    assert len(asked[0]) <= 1
