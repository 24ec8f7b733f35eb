"""Tables that real Hudi wrote, read to their expected rows; and what is no table."""

import pytest
from snapshots import list_snapshot_files
from values import rows_of

from table import InvalidConfigError, TableNotFoundError, read_table
from table.hudi_table import HudiTable
from table.scan.plan import plan_scan

TABLES = ["cow_insert_partitioned", "cow_nonpartitioned", "cow_upsert_delete", "cow_insert_overwrite",
          "cow_schema_evolved", "cow_cleaned", "cow_archived", "cow_savepoint", "cow_rolled_back", "streaming_sink",
          "cow_with_failed_inflight", "cow_with_failed_inflight_direct", "cow_metadata_table", "types_all",
          "types_all_3level_lists"]  # fmt: skip
WITH_LOGS = ["mor_avro_logs", "mor_parquet_logs", "mor_compacted", "mor_compaction_pending", "mor_rolled_back"]


def by_key(rows, keys):
    return sorted(rows, key=lambda row: [str(row[key]) for key in keys])


@pytest.mark.parametrize("name", TABLES)
def test_golden_tables_read_to_their_expected_rows(golden, name):
    path, expected = golden(name)
    assert by_key(rows_of(read_table(path)), expected["keys"]) == by_key(expected["rows"], expected["keys"])
    files = [file.path for file in list_snapshot_files(HudiTable.open(path))]
    assert sorted(files) == sorted(expected["live_base_files"])


@pytest.mark.parametrize("name", WITH_LOGS)
def test_golden_tables_with_log_files_read_to_their_expected_rows(golden, name):
    path, expected = golden(name)
    assert by_key(rows_of(read_table(path)), expected["keys"]) == by_key(expected["rows"], expected["keys"])
    files = [file.path for found in plan_scan(HudiTable.open(path)).slices for file in found.files]
    assert sorted(files) == sorted([*expected["live_base_files"], *expected["live_log_files"]])


def test_the_meta_columns_of_log_records_say_which_write_they_are_of(golden):
    path, _ = golden("mor_avro_logs")
    rows = read_table(path, ["_hoodie_commit_time", "_hoodie_file_name", "_hoodie_record_key", "id"]).to_pylist()
    assert all(row["_hoodie_record_key"] == row["id"] for row in rows)
    of_logs = [row for row in rows if not row["_hoodie_file_name"].endswith(".parquet")]
    assert {row["_hoodie_commit_time"] for row in of_logs} == {"20261121163050647", "20261121163056150"}


@pytest.mark.parametrize("name", ["cow_insert_partitioned", "mor_avro_logs"])
def test_columns_are_chosen_by_name(golden, name):
    path, expected = golden(name)
    found = read_table(path, ["region", "_hoodie_record_key"])
    assert found.column_names == ["region", "_hoodie_record_key"]
    assert sorted(found["region"].to_pylist()) == sorted(row["region"] for row in expected["rows"])
    with pytest.raises(InvalidConfigError, match="'nope'"):
        read_table(path, ["nope"])


def test_no_table_is_no_table(tmp_path):
    with pytest.raises(TableNotFoundError, match=str(tmp_path)):
        read_table(tmp_path)


def test_show(golden, capsys):
    from table.cli.main import main
    from table.inspect.overview import load_overview

    path, expected = golden("cow_cleaned")
    overview = load_overview(path)
    assert overview.live_files == len(expected["live_base_files"])
    assert sorted(overview.partitions) == ["asia", "eu", "us"]
    assert overview.total_bytes > overview.live_bytes
    assert main(["show", path]) == 0
    said = capsys.readouterr().out
    assert "cow_cleaned" in said
    assert overview.instants[-1].time in said
    assert main(["show", path + "x"]) == 1
    assert "no Hudi table" in capsys.readouterr().err
