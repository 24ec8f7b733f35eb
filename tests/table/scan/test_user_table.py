"""HudiTable as users hold it: history, partitions, files, services."""

import os
from decimal import Decimal

import pyarrow as pa
import pytest
from engine import Engine, rows

import hudistream
from hudistream import HudiTable, TableNotFoundError, UnsupportedTableError, write_hudi
from table import CleanSettings, InvalidConfigError, clock, hudi_table, read_table
from table.inspect.contents import FILES, HISTORY, PARTITIONS


@pytest.fixture
def lake(tmp_path):
    path = str(tmp_path / "t")
    upsert = {"hoodie.datasource.write.operation": "upsert"}
    times = [Engine(path, upsert).write(None, rows(range(9), ts=n, v=f"v{n}")).instant_time for n in range(4)]
    return HudiTable.open(path), times


def test_it_is_a_table_for_every_function_that_takes_one(lake):
    table, times = lake
    assert hudistream.HudiTable is HudiTable
    assert isinstance(table, hudi_table.HudiTable)
    assert hudistream.create_savepoint(table) == times[-1]


def test_history_says_what_each_instant_did(lake):
    table, times = lake
    history = table.history()
    assert history.schema.equals(HISTORY)
    assert history["instant"].to_pylist() == times[::-1]
    assert history["rows_updated"].to_pylist() == [9, 9, 9, 0]
    assert history["rows_added"].to_pylist() == [0, 0, 0, 9]
    told = history["requested_at"].cast("int64").to_pylist()
    assert told == [clock.parse_instant_time(time) for time in times[::-1]]
    assert table.history(limit=1)["instant"].to_pylist() == times[-1:]


def test_partitions_and_files_say_where_the_rows_are(lake):
    table, times = lake
    partitions, files = table.partitions(), table.files()
    assert partitions.schema.equals(PARTITIONS)
    assert files.schema.equals(FILES)
    assert partitions["partition_path"].to_pylist() == ["p0", "p1", "p2"]
    assert partitions["newest_instant"].to_pylist() == [times[-1]] * 3
    assert partitions["size_bytes"].to_pylist() == files["size_bytes"].to_pylist()
    assert all(table.storage.exists(path) for path in files["path"].to_pylist())
    assert files["kind"].to_pylist() == ["base"] * 3


def test_files_of_a_table_with_logs_are_listed(golden):
    files = HudiTable.open(golden("mor_avro_logs")[0]).files()
    assert "log" in files["kind"].to_pylist()


def test_services_are_methods(lake):
    table, times = lake
    table.create_savepoint(times[0])
    assert table.clean(CleanSettings(commits_retained=1, grace_ms=0))
    table.restore_to_savepoint(times[0])
    assert set(read_table(table.storage.base_uri)["v"].to_pylist()) == {"v0"}
    table.delete_savepoint(times[0])
    assert not table.archive().instants
    Engine(table.storage.base_uri).write(None, rows(range(9, 12)))
    assert table.scan(["id"]).to_arrow().num_rows == 12
    table.roll_back(table.history(1)["instant"][0].as_py())
    assert table.scan(["id"]).to_arrow().num_rows == 9
    with pytest.raises(InvalidConfigError, match="no savepoint"):
        table.delete_savepoint(times[0])


@pytest.mark.parametrize(
    ("operator", "value", "keys"),
    [
        ("=", 1, ["a"]), ("=", "2.50", ["b"]), ("<=", 2.5, ["a", "b"]), (">", 10**12, []), ("=", 10**40, []),
        ("in", [1, "2.5"], ["a", "b"]), ("!=", 1, ["b", "c"]), ("=", "1.001", []), ("<", -3, []),
        ("=", Decimal("2.5"), ["b"]),
    ],
)  # fmt: skip
def test_a_decimal_is_compared_with_numbers_and_text(tmp_path, operator, value, keys):
    numbers = pa.array([Decimal("1.00"), Decimal("2.50"), Decimal("99999999.99")], pa.decimal128(10, 2))
    write_hudi(str(tmp_path / "t"), pa.table({"id": ["a", "b", "c"], "n": numbers}), key="id")
    found = HudiTable.open(tmp_path / "t").scan(where=[("n", operator, value)]).to_arrow()
    assert sorted(found.column("id").to_pylist()) == keys


def test_what_is_no_decimal_is_named(tmp_path):
    write_hudi(str(tmp_path / "t"), pa.table({"id": ["a"], "n": pa.array([1], pa.decimal128(10, 2))}), key="id")
    with pytest.raises(InvalidConfigError, match=r"'x' is no decimal128\(10, 2\)"):
        HudiTable.open(tmp_path / "t").scan(where=[("n", "=", "x")]).to_arrow()


def test_services_take_a_path(tmp_path):
    path = tmp_path / "t"
    times = []
    for number in range(3):
        write_hudi(str(path), pa.table({"id": ["a"], "n": [number]}), key="id")
        times.append(HudiTable.open(path).newest_instant)
    assert hudistream.check(path).is_sound
    assert hudistream.check(str(path)) == hudistream.check(HudiTable.open(path))
    assert hudistream.create_savepoint(path) == times[-1]
    hudistream.delete_savepoint(path, times[-1])
    hudistream.roll_back(path, times[-1])
    assert HudiTable.open(path).scan(["n"]).to_arrow().to_pylist() == [{"n": 1}]
    hudistream.create_savepoint(path, times[0])
    hudistream.restore_to_savepoint(path, times[0])
    assert HudiTable.open(path).scan(["n"]).to_arrow().to_pylist() == [{"n": 0}]
    assert hudistream.clean(path) == []
    assert hudistream.archive(path).instants == ()
    assert hudistream.cluster(path) is None
    with pytest.raises(UnsupportedTableError, match="copy-on-write"):
        hudistream.compact(path)
    with pytest.raises(TableNotFoundError, match="there is no Hudi table at"):
        hudistream.check(tmp_path / "none")


@pytest.mark.parametrize("version", ["6", "9"])
def test_history_says_how_long_instants_took(tmp_path, version):
    path = str(tmp_path / "t")
    write_hudi(path, pa.table({"id": ["a"]}), key="id", options={"hoodie.write.table.version": version})
    HudiTable.open(path).create_savepoint()
    table = HudiTable.open(path)

    def seconds_of(action):
        return [row["seconds"] for row in table.history().to_pylist() if row["action"] == action]

    assert [0 <= seconds < 60 for seconds in seconds_of("commit")] == [True]
    assert seconds_of("savepoint") == [None]
    instant = table.load_timeline().instants[0]
    if version == "6":
        begin = os.stat(f"{path}/.hoodie/{instant.time}.commit.requested").st_mtime_ns // 10**6 / 1000
        os.utime(f"{path}/.hoodie/{instant.time}.commit", (begin + 7, begin + 7))
        assert seconds_of("commit") == [pytest.approx(7, abs=0.002)]
        os.remove(f"{path}/.hoodie/{instant.time}.commit.requested")
        assert seconds_of("commit") == [None]
